//go:build numathrottle_mutants

package consensus

// left holds the rule that is left out. Only the simulation's tests set it.
var left = map[rule]bool{}

// skip tells whether a rule of the protocol is left out by a test.
func skip(r rule) bool { return left[r] }
