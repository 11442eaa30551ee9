//go:build numathrottle_mutants

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// storeRules are the rules that have a schedule in TestSchedules.
var storeRules = []string{
	"freeze", "freeze-removal", "clock-clamp", "removal-margin", "sequence", "clone", "replaced-claim", "tombstone", "room", "claim-falls",
}

// TestEveryScheduleNeedsItsRule plays each schedule of TestSchedules without its
// rule: the bound must break.
func TestEveryScheduleNeedsItsRule(t *testing.T) {
	covered := map[string]bool{}
	for _, s := range schedules {
		covered[s.rule] = true
		t.Run(s.rule+"/"+s.name, func(t *testing.T) {
			mutants.LeaveOut(t, s.rule)
			tr := s.play(t, false)
			require.Greater(t, max(tr.inUse, tr.claims), Whole, "the schedule does not need the rule")
		})
	}
	for _, name := range storeRules {
		require.True(t, covered[name], "no schedule needs the rule %q", name)
	}
}
