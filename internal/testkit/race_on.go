//go:build race

package testkit

// Race reports whether this was built with the race detector.
const Race = true
