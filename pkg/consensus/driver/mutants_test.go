//go:build numathrottle_mutants

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// storeRules are the rules that the store keeps; the others are the processor's.
var storeRules = map[rule]string{
	ruleFreeze:        "freeze",
	ruleFreezeRemoval: "freeze removal",
	ruleClockClamp:    "clock clamp",
	ruleRemovalMargin: "removal margin",
	ruleSequence:      "sequence",
	ruleClone:         "clone",
	ruleReplacedClaim: "replaced claim",
	ruleTombstone:     "tombstone",
	ruleRoom:          "room",
	ruleClaimFalls:    "claim falls",
}

// TestEveryScheduleNeedsItsRule plays each schedule of TestSchedules without its
// rule: the bound must break.
func TestEveryScheduleNeedsItsRule(t *testing.T) {
	covered := map[rule]bool{}
	for _, s := range schedules {
		covered[s.rule] = true
		t.Run(storeRules[s.rule]+"/"+s.name, func(t *testing.T) {
			defer board.Leave(int(s.rule))()
			tr := s.play(t, false)
			require.Greater(t, max(tr.inUse, tr.claims), Whole, "the schedule does not need the rule")
		})
	}
	for r, name := range storeRules {
		require.True(t, covered[r], "no schedule needs the rule %q", name)
	}
}
