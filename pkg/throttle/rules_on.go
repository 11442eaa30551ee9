//go:build numathrottle_mutants

package throttle

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/failpoints"
	"github.com/numaproj-contrib/numathrottle/internal/gate"
)

var board = failpoints.New("throttle", map[string]failpoints.Rule{
	"debt-at-leave": {Number: int(ruleDebtAtLeave), Says: "debt is paid before the share is left to others"},
})

// skip tells whether a rule of the engine is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// boards are the switches of all rules of the engine.
var boards = []*failpoints.Board{board, bucket.Rules, gate.Rules}

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() (names []string) {
	for _, b := range boards {
		names = append(names, b.Names()...)
	}
	slices.Sort(names)
	return names
}

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) (says string) {
	for _, b := range boards {
		says += b.Says(name)
	}
	return says
}

// LeaveOut leaves a rule of the engine out of every Throttle until restore is called. It
// exists only with the build tag numathrottle_mutants, for tests that show that they
// notice. Not to be called while a Throttle is in use.
func LeaveOut(name string) (restore func(), err error) {
	for _, b := range boards {
		if slices.Contains(b.Names(), name) {
			return b.LeaveOut(name)
		}
	}
	return nil, fmt.Errorf("throttle: rule is %q, allowed: %q", name, RuleNames())
}
