//go:build numathrottle_mutants

package consensus

import (
	"fmt"
	"slices"
)

// left holds the rules that are left out. Only the tests of the protocol set it,
// before they start what uses it.
var left [rules]bool

// skip tells whether a rule of the protocol is left out by a test.
func skip(r rule) bool { return left[r] }

var ruleNames = map[string]rule{
	"freeze":          ruleFreeze,
	"freeze-removal":  ruleFreezeRemoval,
	"clock-clamp":     ruleClockClamp,
	"removal-margin":  ruleRemovalMargin,
	"sequence":        ruleSequence,
	"clone":           ruleClone,
	"replaced-claim":  ruleReplacedClaim,
	"tombstone":       ruleTombstone,
	"room":            ruleRoom,
	"own-tags":        ruleOwnTags,
	"claim-falls":     ruleClaimFalls,
	"late-answer":     ruleLateAnswer,
	"broken-lease":    ruleBrokenLease,
	"lease-from-send": ruleLeaseFromSend,
	"draw-check":      ruleDrawCheck,
	"removal":         ruleRemoval,
}

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string {
	var names []string
	for name := range ruleNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// LeaveOut leaves a rule of the protocol out of every record and processor until
// restore is called. It exists only with the build tag numathrottle_mutants, for
// tests that show that they notice. Not to be called while one of them is in use.
func LeaveOut(name string) (restore func(), err error) {
	r, ok := ruleNames[name]
	if !ok {
		return nil, fmt.Errorf("consensus: rule is %q, allowed: %q", name, RuleNames())
	}
	left[r] = true
	return func() { left[r] = false }, nil
}
