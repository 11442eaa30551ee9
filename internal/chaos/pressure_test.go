//go:build numathrottle_faults

package chaos

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// TestQuotasUnderPressure runs the quota demo's processes on real servers: impatient callers, large calls, a name that nobody knows and a hog of
// ten times the limit get what their quotas say.
func TestQuotasUnderPressure(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "quotas")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../demo/quotas")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, store := range map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string { return "redis://" + testenv.Redis(t).Addr() },
		"nats":  func(*testing.T) string { return "" }, // one of its own
	} {
		t.Run(name, func(t *testing.T) { // one after the other: a hog keeps a processor busy
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			demo := exec.CommandContext(ctx, program)
			demo.Env = append(os.Environ(), "DEMO_STORE="+store(t))
			out, err := demo.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
		})
	}
}
