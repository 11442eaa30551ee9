// Package race reduces the work of tests under the race detector, which makes everything ten times as slow. With it tests repeat less, and
// skip parts that only measure, count, or test the judge of other tests. With -short they repeat less, too.
//
// `make norace` runs the tests that use this package, directly or through a helper, in full and without the race detector:
// scripts/asks-race.sh finds them.
//
// In a bubble of testing/synctest the race detector crashes (a SIGSEGV, or "CHECK failed") when two goroutines at once receive from timers
// that had already expired, such as time.NewTimer(0) or time.After(0): golang/go#78156, in Go 1.26. So nothing here waits on a timer of
// zero.
package race

import "testing"

// Skip skips a test if the race detector is on. why completes the sentence "with the race detector: ...".
func Skip(tb testing.TB, why string) {
	tb.Helper()
	if On {
		tb.Skip("with the race detector: " + why + "; make norace runs it without")
	}
}

// Fewer returns how often to repeat a test with n repetitions: n, or a tenth of it, but at least 1, with the race detector or -short. It
// must not be called before flags are parsed.
func Fewer(n int) int {
	if On || testing.Short() {
		return max(n/10, 1)
	}
	return n
}

// Some returns the cases to test: all, or every fifth, from the first, with the race detector or -short.
func Some[T any](cases []T) []T {
	if !On && !testing.Short() {
		return cases
	}
	var some []T
	for i := 0; i < len(cases); i += 5 {
		some = append(some, cases[i])
	}
	return some
}
