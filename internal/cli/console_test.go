package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The console serves until it is told to stop, and says where.
func TestConsole(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(canary+"-token\n"), 0o600))
	for want, set := range map[string][2]string{
		"it only shows: there is no token": {"--listen=127.0.0.1:0", "X="},
		"log in with the token":            {"--token-file=" + file, "NUMATHROTTLE_CONSOLE_LISTEN=127.0.0.1:0"},
	} {
		tm := newTerminal(store, set[1])
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tm.Run(ctx, []string{"console", set[0]}) }()
		address := regexp.MustCompile(`console: (http://127\.0\.0\.1:\d+) \((.*)\)\n`)
		var said []string
		require.Eventually(t, func() bool { said = address.FindStringSubmatch(tm.out.String()); return said != nil }, 10*time.Second, time.Millisecond)
		require.Equal(t, want, said[2])
		resp, err := http.Get(said[1])
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(body), "<title>numathrottle console</title>")
		require.NotContains(t, string(body), canary)
		stop()
		require.NoError(t, <-ended)
		require.NotContains(t, tm.errOut.String(), canary)
	}
}

// The quotas of its settings name the tags of a pool that has the same.
func TestConsoleKnowsItsQuotas(t *testing.T) {
	store := memstore.New()
	q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 30}}}.WithDefaults(time.Second)
	p := protocol.NewProcessor(protocol.ProcessorConfig{Pool: "p", ID: "a"}, "1")
	limit := throttle.Limit{Max: 100, Per: time.Second}
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limit), Quotas: &q})
	m := join(store, "p", "a", "1 0 100 1000000 0 0", driver.Whole, 1)
	m.req.Busy = p.Request(0, 1, protocol.Observation{}).Busy
	m.sync(t)
	tm := newTerminal(store, "NUMATHROTTLE_MAX=100", "NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 30}}}")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tm.Run(ctx, []string{"console", "--listen=127.0.0.1:0"}) }()
	var said []string
	require.Eventually(t, func() bool {
		said = regexp.MustCompile(`console: (http://\S+)`).FindStringSubmatch(tm.out.String())
		return said != nil
	}, 10*time.Second, time.Millisecond)
	resp, err := http.Get(said[1] + "/api/pool?name=p")
	require.NoError(t, err)
	received := ""
	for lines := bufio.NewScanner(resp.Body); !strings.Contains(received, `"quotas":{`) && lines.Scan(); {
		received = lines.Text()
	}
	require.Contains(t, received, `"known":true,"tags":[{"id":"other"`)
	require.Contains(t, received, `"name":"acme"`)
	require.NoError(t, resp.Body.Close())
	stop()
	require.NoError(t, <-ended)
}

func TestConsoleTakesOneToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"NUMATHROTTLE_CONSOLE_TOKEN=" + canary, "NUMATHROTTLE_CONSOLE_TOKEN_FILE=" + file}, "the token is given twice"},
		{[]string{"NUMATHROTTLE_CONSOLE_TOKEN_FILE=" + file}, "is empty"},
		{[]string{"NUMATHROTTLE_CONSOLE_TOKEN=short"}, "the token has 5 bytes, allowed: at least 16"},
	} {
		_, err := newTerminal(memstore.New(), c.environ...).run(t, "console", "--listen=127.0.0.1:0")
		require.ErrorContains(t, err, c.want)
		require.Equal(t, ExitUsage, ExitCode(err))
	}
	_, err := newTerminal(nil, "NUMATHROTTLE_CONSOLE_TOKEN="+canary).run(t, "check")
	require.NoError(t, err, "it is none of a limiter's variables")
}
