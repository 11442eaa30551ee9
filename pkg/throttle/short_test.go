package throttle

import (
	"testing"
	"time"
)

// lasts returns how long a test in real time goes on that would take d: a tenth with -short.
func lasts(d time.Duration) time.Duration {
	if testing.Short() {
		return d / 10
	}
	return d
}

// long skips a test with -short that takes seconds and that make test runs whole.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds; runs without -short")
	}
}
