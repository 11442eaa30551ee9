//go:build numathrottle_mutants

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// Without any one of these rules of permits, slots come too close. The simulation needs those by which shares and permits are one whole.
func TestMutantsOfPermits(t *testing.T) {
	for name, r := range map[string]string{
		"hold": "permit-hold", "reach": "permit-reach", "freeze": "freeze", "freeze removal": "freeze-removal",
	} {
		t.Run(name, func(t *testing.T) {
			mutants.LeaveOut(t, r)
			found := 0
			for seed := uint64(0); seed < 400 && found == 0; seed++ {
				is := newIssue(t, seed)
				is.run(2_500)
				found += is.violations()
			}
			require.Positive(t, found)
		})
	}
}
