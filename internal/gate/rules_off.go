//go:build !numathrottle_mutants

package gate

// skip tells whether a rule of the gate is left out: never, in this build.
func skip(rule) bool { return false }
