package testkit

import "testing"

// SkipShort skips a test with -short. why names the slow part.
func SkipShort(tb testing.TB, why string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}
