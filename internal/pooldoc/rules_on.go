//go:build numathrottle_mutants

package pooldoc

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

var board = failpoints.New("pooldoc", map[string]failpoints.Rule{
	"document-return": {Number: int(ruleReturn), Says: "give back the documents that the store has lost"},
	"return-seen":     {Number: int(ruleReturnSeen), Says: "pauses are given back only in the place of what was seen there"},
})

// skip tells whether a rule of documents is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string { return board.Names() }

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return board.Says(name) }

// LeaveOut leaves a rule of documents out until restore is called. It exists only with the
// build tag numathrottle_mutants, for tests that show that they notice.
func LeaveOut(name string) (restore func(), err error) { return board.LeaveOut(name) }
