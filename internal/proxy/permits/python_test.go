package permits_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// The Python package passes its tests against the real program. Those of what needs other packages run in the environment that
// scripts/test-deps.sh has made, and are skipped without it.
func TestPython(t *testing.T) {
	testkit.SkipShort(t, "it builds the command and starts processes")
	python, err := filepath.Abs("../../../.bin/pyclients/bin/python")
	require.NoError(t, err)
	if _, err := os.Stat(python); err != nil {
		require.Empty(t, os.Getenv("NUMATHROTTLE_REQUIRE_STORES"), "httpx and langchain-core are not there: run scripts/test-deps.sh")
		if python, err = exec.LookPath("python3"); err != nil {
			t.Skip("python3 is not installed")
		}
	}
	program := filepath.Join(t.TempDir(), "numathrottle")
	build := exec.Command("go", "build", "-o", program, "../../../cmd/numathrottle")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	tests := exec.CommandContext(t.Context(), python, "-W", "error", "-m", "unittest", "-v")
	tests.Dir = "../../../python"
	tests.Env = append(os.Environ(), "PERMITS_PROGRAM="+program, "PYTHONDONTWRITEBYTECODE=1")
	out, err = tests.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
