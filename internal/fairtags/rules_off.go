//go:build !numathrottle_mutants

package fairtags

// skip tells whether a rule of the policy is left out: never, in this build.
func skip(rule) bool { return false }
