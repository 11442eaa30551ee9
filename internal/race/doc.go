// Package race tells tests how much to do. The race detector makes everything ten times as slow, so with it tests repeat
// less, and skip what only measures, counts, or tests the judge of other tests. With -short they repeat less too.
//
// `make norace` runs the tests that ask this package, themselves or by a helper, whole and without the race detector:
// scripts/asks-race.sh finds them.
//
// In a bubble of testing/synctest the race detector crashes (a SIGSEGV, or "CHECK failed") when two goroutines at once
// receive from timers that had run out before they looked, such as time.NewTimer(0) or time.After(0): golang/go#78156, in
// Go 1.26. So nothing here waits on a timer of zero.
package race

import "testing"

// Skip skips a test if the race detector is on. why completes the sentence "with the race detector: ...".
func Skip(tb testing.TB, why string) {
	tb.Helper()
	if On {
		tb.Skip("with the race detector: " + why + "; make norace runs it without")
	}
}

// Fewer returns how often a test repeats what it would repeat n times: n, with the race detector or -short a tenth of n,
// at least 1. It must not be called before flags are parsed.
func Fewer(n int) int {
	if On || testing.Short() {
		return max(n/10, 1)
	}
	return n
}

// Some returns which cases a test runs: all, with the race detector or -short every fifth, from the first.
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
