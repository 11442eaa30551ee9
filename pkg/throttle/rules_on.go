//go:build numathrottle_mutants

package throttle

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

var board = failpoints.New("throttle", map[string]failpoints.Rule{
	"lease-at-draw": {Number: int(ruleLeaseAtDraw), Says: "compare clock and lease at each draw"},
	"starts-empty":  {Number: int(ruleStartsEmpty), Says: "a processor that had no share starts with an empty bucket"},
	"fall-clamps":   {Number: int(ruleFallClamps), Says: "a share that falls takes its part of the bucket along"},
	"give-back":     {Number: int(ruleGiveBack), Says: "credit what is given back only while little was granted since"},
	"debt-at-leave": {Number: int(ruleDebtAtLeave), Says: "debt is paid before the share is left to others"},

	"hard-clocks":    {Number: int(ruleHardClocks), Says: "hard: the rate allows for clocks that run fast"},
	"hard-whole":     {Number: int(ruleHardWhole), Says: "hard: no bucket is rounded up to one token"},
	"hard-collect":   {Number: int(ruleHardCollect), Says: "hard: nobody collects more than the bucket holds"},
	"pause":          {Number: int(rulePause), Says: "grant nothing while a pause holds"},
	"hard-give-back": {Number: int(ruleHardGiveBack), Says: "hard: credit what is given back only if it would not have overflowed"},
})

// skip tells whether a rule of the engine is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string { return board.Names() }

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return board.Says(name) }

// LeaveOut leaves a rule of the engine out of every Throttle until restore is called. It
// exists only with the build tag numathrottle_mutants, for tests that show that they
// notice. Not to be called while a Throttle is in use.
func LeaveOut(name string) (restore func(), err error) { return board.LeaveOut(name) }
