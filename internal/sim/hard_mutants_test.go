//go:build numathrottle_mutants

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// TestMutantsUnderALoweredLimit leaves out what a hard limit rests on, in runs in which the limit changes: the
// check of windows has to see it while the limit in force is below the configured one.
func TestMutantsUnderALoweredLimit(t *testing.T) {
	for _, rule := range []string{"hard-clocks", "fall-clamps"} {
		t.Run(rule, func(t *testing.T) {
			mutants.LeaveOut(t, rule)
			for seed := range uint64(400) {
				p := planOf(seed, 0)
				if !p.limit.Hard || p.changes == 0 {
					continue
				}
				res := Run(Config{Seed: seed})
				if v := res.Violation; v != nil && v.Kind == CheckWindow && res.Counters.Lowered.Ratio > 1 {
					t.Log(seed, v)
					return
				}
			}
			require.Fail(t, "no run needs the rule")
		})
	}
}
