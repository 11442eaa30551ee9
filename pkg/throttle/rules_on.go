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

var ruleNames = map[string]rule{
	"lease-at-draw": ruleLeaseAtDraw,
	"starts-empty":  ruleStartsEmpty,
	"fall-clamps":   ruleFallClamps,
	"give-back":     ruleGiveBack,
	"debt-at-leave": ruleDebtAtLeave,
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

// LeaveOut leaves a rule of the engine out of every Throttle until restore is
// called. It exists only with the build tag numathrottle_mutants, for tests that show
// that they notice. Not to be called while a Throttle is in use.
func LeaveOut(name string) (restore func(), err error) {
	r, ok := ruleNames[name]
	if !ok {
		return nil, fmt.Errorf("throttle: rule is %q, allowed: %q", name, RuleNames())
	}
	left[r] = true
	return func() { left[r] = false }, nil
}
