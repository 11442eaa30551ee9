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

var ruleNames = map[string]struct {
	rule rule
	says string
}{
	"freeze":          {ruleFreeze, "freeze when the store has forgotten something"},
	"freeze-removal":  {ruleFreezeRemoval, "freeze for a removal time of the longest lease, not for a lease"},
	"clock-clamp":     {ruleClockClamp, "bound what one step adds to the logical clock"},
	"removal-margin":  {ruleRemovalMargin, "remove a row later than its lease ends"},
	"sequence":        {ruleSequence, "refuse a request older than the newest recorded"},
	"clone":           {ruleClone, "close an incarnation that two processes use"},
	"replaced-claim":  {ruleReplacedClaim, "keep the claim of a replaced incarnation until removal"},
	"tombstone":       {ruleTombstone, "keep the row of a processor that left"},
	"room":            {ruleRoom, "cap the share in use by the room, too"},
	"own-tags":        {ruleOwnTags, "count the processor's own other tags"},
	"claim-falls":     {ruleClaimFalls, "lower a claim only when less is reported in use"},
	"late-answer":     {ruleLateAnswer, "take only the answer to the newest request"},
	"broken-lease":    {ruleBrokenLease, "a share that lapsed since it was reported is not renewed"},
	"lease-from-send": {ruleLeaseFromSend, "the lease runs from the send, not from the receipt"},
	"draw-check":      {ruleDrawCheck, "void the share when its lease is over"},
	"recall":          {ruleRecall, "a row that is older than its processor is its own only if it has sent the newest request"},
	"removal":         {ruleRemoval, "remove rows that are silent for a removal time, with their claims"},
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

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return ruleNames[name].says }

// LeaveOut leaves a rule of the protocol out of every record and processor until
// restore is called. It exists only with the build tag numathrottle_mutants, for
// tests that show that they notice. Not to be called while one of them is in use.
func LeaveOut(name string) (restore func(), err error) {
	r, ok := ruleNames[name]
	if !ok {
		return nil, fmt.Errorf("consensus: rule is %q, allowed: %q", name, RuleNames())
	}
	left[r.rule] = true
	return func() { left[r.rule] = false }, nil
}
