//go:build numathrottle_mutants

package throttle

import (
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/leftout"
)

var board = leftout.New("throttle", map[string]leftout.Rule{
	"debt-at-leave": {Number: int(ruleDebtAtLeave), Says: "debt is paid before the share is left to others"},
	"pause":         {Number: int(rulePause), Says: "grant nothing while a pause holds"},
})

// skip tells whether a rule of the engine is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, those of the bucket too, in the order of
// their names.
func RuleNames() []string {
	names := slices.Concat(board.Names(), bucket.Rules.Names())
	slices.Sort(names)
	return names
}

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return board.Says(name) + bucket.Rules.Says(name) }

// LeaveOut leaves a rule of the engine out of every Throttle until restore is called. It
// exists only with the build tag numathrottle_mutants, for tests that show that they
// notice. Not to be called while a Throttle is in use.
func LeaveOut(name string) (restore func(), err error) {
	if slices.Contains(bucket.Rules.Names(), name) {
		return bucket.Rules.LeaveOut(name)
	}
	return board.LeaveOut(name)
}
