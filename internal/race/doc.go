// Package race tells tests whether the race detector is on, with which everything takes ten
// times as long. With it, what repeats itself is repeated less often; what only measures, counts, or shows that the judge of
// other tests sees what is broken, is left out. make norace runs these tests without it, and then they are whole.
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

// Skip skips a test if the race detector is on, and says why. make norace finds the tests that call it, as those that
// call Fewer or Some, and runs them without; see scripts/without-race.sh.
func Skip(t test, why string) {
	t.Helper()
	if On {
		t.Skip("with the race detector: " + why + "; make norace runs it without")
	}
}

// Fewer returns how often a test repeats what it would repeat n times without the race detector: a tenth of that, and
// once at least.
func Fewer(n int) int {
	if On {
		return max(n/10, 1)
	}
	return n
}

// Some returns which of the cases of a test it has: with the race detector every fifth, from the first.
func Some[T any](cases []T) []T {
	if !On {
		return cases
	}
	var some []T
	for i := 0; i < len(cases); i += 5 {
		some = append(some, cases[i])
	}
	return some
}
