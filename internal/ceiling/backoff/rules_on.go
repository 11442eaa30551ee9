//go:build numathrottle_mutants

package backoff

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

var board = failpoints.New("backoff", map[string]failpoints.Rule{
	"lag":        {Number: int(ruleLag), Says: "one cut per lag, and for calls that were granted after it"},
	"binding":    {Number: int(ruleBinding), Says: "the ceiling rises only while it is what holds callers back"},
	"worst":      {Number: int(ruleWorst), Says: "the worst processor is left out of the judgement"},
	"configured": {Number: int(ruleConfigured), Says: "the ceiling is never above the configured limit"},
})

// skip tells whether a rule of the law is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string { return board.Names() }

// LeaveOut leaves a rule of the law out until restore is called. It exists only with the
// build tag numathrottle_mutants, for tests that show that they notice.
func LeaveOut(name string) (restore func(), err error) { return board.LeaveOut(name) }
