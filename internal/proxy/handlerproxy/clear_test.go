package handlerproxy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A file that somebody has named by mistake is neither deleted nor written over.
func TestFilesOfOthersStay(t *testing.T) {
	precious := strings.Repeat("a document of another kind ", 5000)
	for name, spoil := range map[string]func(c *handlerproxy.Config) (path string){
		"socket":     func(c *handlerproxy.Config) string { return c.Socket },
		"serverInfo": func(c *handlerproxy.Config) string { return c.ServerInfo },
	} {
		c := configured(t, handlerproxy.Map, throttletest.New())
		path := spoil(&c)
		require.NoError(t, os.WriteFile(path, []byte(precious), 0o600))
		require.ErrorContains(t, handlerproxy.Run(t.Context(), c), name+" is")
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, precious, string(left))

		c = configured(t, handlerproxy.Map, throttletest.New())
		path = spoil(&c)
		require.NoError(t, os.Symlink("/etc/hostname", path))
		require.ErrorContains(t, handlerproxy.Run(t.Context(), c), "a file of another kind")
		_, err = os.Lstat(path)
		require.NoError(t, err, name)
	}
}
