//go:build !numathrottle_mutants

package pooldoc

// skip tells whether a rule of documents is left out: never, in this build.
func skip(rule) bool { return false }
