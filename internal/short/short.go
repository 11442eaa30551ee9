// Package short skips slow tests with -short.
package short

import "testing"

// Skip skips a test with -short. why names the slow part.
func Skip(tb testing.TB, why string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}
