package testkit

import "testing"

// SkipRace skips a test if the race detector is on. why completes the sentence "with the race detector: ...".
func SkipRace(tb testing.TB, why string) {
	tb.Helper()
	if Race {
		tb.Skip("with the race detector: " + why + "; make norace runs it without")
	}
}

// Fewer returns how often to repeat a test with n repetitions: n, or a tenth of it, but at least 1, with the race detector or -short. It
// must not be called before flags are parsed.
func Fewer(n int) int {
	if Race || testing.Short() {
		return max(n/10, 1)
	}
	return n
}

// Some returns the cases to test: all, or every fifth, from the first, with the race detector or -short.
func Some[T any](cases []T) []T {
	if !Race && !testing.Short() {
		return cases
	}
	var some []T
	for i := 0; i < len(cases); i += 5 {
		some = append(some, cases[i])
	}
	return some
}
