//go:build !numathrottle_mutants

package ceiling

// skip tells whether a rule of the law is left out: never, in this build.
func skip(rule) bool { return false }
