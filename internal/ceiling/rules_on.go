//go:build numathrottle_mutants

package ceiling

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

var board = failpoints.New("ceiling", map[string]failpoints.Rule{
	"lowest-limit":  {Number: int(ruleLowest), Says: "of several configured limits the lowest is in force"},
	"hard-override": {Number: int(ruleHard), Says: "no override raises a hard limit"},
	"ramp-resume":   {Number: int(ruleResume), Says: "a ramp of another clock goes on from where it stood"},
})

// skip tells whether a rule of the law is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string { return board.Names() }

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return board.Says(name) }

// LeaveOut leaves a rule of the law out until restore is called. It exists only with the
// build tag numathrottle_mutants, for tests that show that they notice.
func LeaveOut(name string) (restore func(), err error) { return board.LeaveOut(name) }
