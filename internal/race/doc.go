// Package race tells tests whether the race detector is on, with which everything takes ten
// times as long. What runs in one goroutine, only counts, or shows that the judge of other tests
// sees what is broken, is left to a run without it.
package race

// A test is a testing.TB.
type test interface {
	Helper()
	Skip(args ...any)
}

// Skip skips a test if the race detector is on. make counted finds the tests that call it, and runs them
// without; see scripts/without-race.sh.
func Skip(t test) {
	t.Helper()
	if On {
		t.Skip("takes ten times as long with the race detector: make counted runs it without")
	}
}
