//go:build numathrottle_mutants

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryTillScheduleNeedsItsRule plays each schedule of TestTillSchedules without its rule.
func TestEveryTillScheduleNeedsItsRule(t *testing.T) {
	played := map[int]bool{}
	for _, s := range tillSchedules {
		played[int(s.rule)] = true
		t.Run(s.name, func(t *testing.T) {
			defer board.Leave(int(s.rule))()
			require.NotEmpty(t, s.play(newTillTrial()), "the schedule does not need the rule")
		})
	}
	for r := ruleTillHold; r <= ruleTillDropped; r++ {
		require.True(t, played[int(r)], "no schedule needs rule %d", r)
	}
}

// TestMutantsOfTills: random schedules, too, need the rule that what was not used in its time cannot be handed on. The others
// are hidden from them by each other, and need the schedules above.
func TestMutantsOfTills(t *testing.T) {
	defer board.Leave(int(ruleTillBackEarned))()
	for seed := range uint64(400) {
		if _, within := playDrawers(seed); !within {
			return
		}
	}
	require.Fail(t, "no schedule needs the rule")
}
