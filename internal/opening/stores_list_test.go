package opening

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A list of whole URLs, as every client of NATS takes it, is a store: with servers that are away among them, too.
func TestAListOfNATSURLs(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t, func(o *server.Options) { o.Username, o.Password = "app", canary }).URL()
	host := strings.TrimPrefix(url, "nats://")
	for _, list := range []string{
		"nats://app:" + canary + "@" + host + ",nats://127.0.0.1:1",
		"nats://127.0.0.1:1, nats://app:" + canary + "@" + host,
		"nats://app:" + canary + "@127.0.0.1:1,nats://app:" + canary + "@" + host + "?bucket=other",
	} {
		c := short(list, "i")
		var logs testkit.Book
		c.Logger = logs.Logger()
		th, err := Open(t.Context(), c)
		require.NoError(t, err)
		eventually(t, grants(th), "a token")
		require.NoError(t, th.Close())
		require.NotContains(t, logs.String(), canary)
		require.NotContains(t, c.String(), canary)
		require.Contains(t, c.String(), host, "the servers are shown")
	}
	c := short("nats://app:"+canary+"@127.0.0.1:1,nats://127.0.0.1:2", "i")
	_, err := Open(t.Context(), c)
	require.ErrorContains(t, err, "127.0.0.1:2")
	require.NotContains(t, err.Error(), canary)
}
