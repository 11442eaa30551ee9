// Package race tells tests whether the race detector is on, with which everything takes ten
// times as long. What runs in one goroutine, only counts, or shows that the judge of other tests
// sees what is broken, is left to a run without it.
//
// In a bubble of testing/synctest the race detector crashes (a SIGSEGV, or "CHECK failed") when two goroutines at once
// receive from timers that had run out before they looked, such as time.NewTimer(0) or time.After(0): golang/go#78156, in
// Go 1.26. So nothing here waits on a timer of zero.
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
