//go:build numathrottle_mutants

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// TestMutantsOfSlots leaves out rules of quotas of calls in flight: the check of what each is for notices in random runs.
func TestMutantsOfSlots(t *testing.T) {
	for rule, kind := range map[string]Check{
		"slots-total": CheckSlotTotal, "slots-claim": CheckSlotTotal, "slots-first": CheckSlotReserved, "slots-lacking": CheckSlotReserved,
		"slots-time": CheckSlotFair, "slots-part": CheckSlotIdle,
	} {
		t.Run(rule, func(t *testing.T) {
			mutants.LeaveOut(t, rule)
			sum := Sweep(Config{}, FirstSlotted, int(setting(t, "SEEDS", 400)), 1)
			require.NotEmpty(t, sum.Violations, "none of %d runs needs the rule", sum.Counters.Runs)
			v := sum.Violations[0]
			t.Log(v.Seed-FirstSlotted+1, v.Violation)
			require.Equal(t, kind, v.Violation.Kind)
		})
	}
}
