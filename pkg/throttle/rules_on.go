//go:build numathrottle_mutants

package throttle

import (
	"fmt"
	"slices"
)

// left holds the rules that are left out. Only the tests of the engine set it,
// before they start what uses it.
var left [rules]bool

// skip tells whether a rule of the engine is left out by a test.
func skip(r rule) bool { return left[r] }

var ruleNames = map[string]struct {
	rule rule
	says string
}{
	"lease-at-draw": {ruleLeaseAtDraw, "compare clock and lease at each draw"},
	"starts-empty":  {ruleStartsEmpty, "a processor that had no share starts with an empty bucket"},
	"fall-clamps":   {ruleFallClamps, "a share that falls takes its part of the bucket along"},
	"give-back":     {ruleGiveBack, "credit what is given back only while little was granted since"},
	"debt-at-leave": {ruleDebtAtLeave, "debt is paid before the share is left to others"},

	"hard-clocks":    {ruleHardClocks, "hard: the rate allows for clocks that run fast"},
	"hard-whole":     {ruleHardWhole, "hard: no bucket is rounded up to one token"},
	"hard-collect":   {ruleHardCollect, "hard: nobody collects more than the bucket holds"},
	"hard-give-back": {ruleHardGiveBack, "hard: credit what is given back only if it would not have overflowed"},
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

// LeaveOut leaves a rule of the engine out of every Throttle until restore is
// called. It exists only with the build tag numathrottle_mutants, for tests that show
// that they notice. Not to be called while a Throttle is in use.
func LeaveOut(name string) (restore func(), err error) {
	r, ok := ruleNames[name]
	if !ok {
		return nil, fmt.Errorf("throttle: rule is %q, allowed: %q", name, RuleNames())
	}
	left[r.rule] = true
	return func() { left[r.rule] = false }, nil
}
