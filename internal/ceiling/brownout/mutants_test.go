//go:build numathrottle_mutants

package brownout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// Without the lag cuts pile up, and without the limit as a bound the service is asked for more than
// it can do: the figures notice.
func TestMutantsOfTheLaw(t *testing.T) {
	for _, name := range []string{"lag", "configured"} {
		t.Run(name, func(t *testing.T) {
			mutants.LeaveOut(t, name)
			r := Run(Shown(Shared, 1))
			broken := r.promises()
			require.Error(t, broken, "used %.3f, refused %.4f, back after %d s", r.Used(), r.RefusedPart(), r.Back(backAt, 0.8))
			t.Log(broken)
		})
	}
}
