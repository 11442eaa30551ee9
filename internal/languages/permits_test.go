package languages_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/permits"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// The examples of programs that ask for permits, in languages for which there is no package.
func TestPermitsOfOtherLanguages(t *testing.T) {
	if os.Getenv("NUMATHROTTLE_LANGUAGES") == "" {
		t.Skip("it compiles programs in Java and Rust: make languages")
	}
	for language, c := range map[string]struct {
		tool  string
		start func(t *testing.T, address string) *exec.Cmd
	}{
		"java": {"java", func(t *testing.T, address string) *exec.Cmd {
			return exec.CommandContext(t.Context(), "java", "permits/Permits.java", "http://"+address)
		}},
		"rust": {"rustc", func(t *testing.T, address string) *exec.Cmd {
			program := filepath.Join(t.TempDir(), "permits")
			out, err := exec.CommandContext(t.Context(), "rustc", "--edition", "2021", "-D", "warnings", "-o", program, "permits/permits.rs").CombinedOutput()
			require.NoError(t, err, "%s", out)
			return exec.CommandContext(t.Context(), program, address)
		}},
	} {
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(c.tool); err != nil {
				require.NotEqual(t, "1", os.Getenv(testenv.RequireStores), "%s is not installed", c.tool)
				t.Skip(c.tool + " is not installed")
			}
			out, err := c.start(t, servePermits(t, "permits-"+language)).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, "refused: in_flight\ndone\n", string(out))
		})
	}
}

// servePermits serves permits of a limit of one call at once, and returns where.
func servePermits(t *testing.T, store string) string {
	t.Helper()
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		ended <- permits.Run(ctx, permits.Config{
			Limits:  proxy.LimitConfig{Pool: numathrottle.Config{Store: "memory://" + store, Pool: "p", ID: "i"}, InFlight: 1},
			Serving: proxy.Serving{Listen: "127.0.0.1:0", Grace: 10 * time.Millisecond},
			Logger:  slog.New(slog.DiscardHandler),
			Ready:   func(addrs []string) { ready <- addrs[0] },
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case at := <-ready:
		return at
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
		return ""
	}
}
