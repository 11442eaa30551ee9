//go:build numathrottle_mutants

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryTillScheduleNeedsItsRule plays each schedule of TestTillSchedules without its rule.
func TestEveryTillScheduleNeedsItsRule(t *testing.T) {
	for _, s := range tillSchedules {
		t.Run(s.name, func(t *testing.T) {
			defer board.Leave(int(s.rule))()
			require.NotEmpty(t, s.play(newTillTrial()), "the schedule does not need the rule")
		})
	}
}
