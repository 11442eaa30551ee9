package throttle

import "slices"

// This file is about callers that wait in a lane of the limit when something else comes to hold their tag: a bound, because the called
// service refuses its calls, a pause, or a quota. They go on as those do who come later (see tagView.wait), and stand among these by the
// time at which they came.

// An elsewhere is the error that ends the wait of such a caller. It is for tagView.wait alone.
type elsewhere struct {
	age uint64 // of the waiter; 0: it did not wait yet
}

func (elsewhere) Error() string { return "throttle: something else than the limit holds the caller" }

// isBarred tells whether something else than the limit may hold draws back: a tag may lack tokens of its own, or is paused.
func (l *tagView) isBarred() bool {
	if slices.ContainsFunc(l.tags, func(g *tag) bool { return g.holds.Load() }) {
		return true
	}
	_, paused := l.paused()
	return paused
}

// sendElsewhere takes those out of the queue whom something else has come to hold. A bound and a pause begin under the same lock, so
// that none of them gets a token meanwhile. Attempts are left: each looks at everything that holds it when its turn comes, and if it goes
// elsewhere, the next one's turn comes at once. The lock is held.
func (t *Throttle) sendElsewhere(now int64) {
	sent := false
	for w := range t.queue.All() {
		if w.Held != nil && w.Held() {
			t.leaveQueue(now, w)
			w.Fail(elsewhere{w.Age})
			sent = true
		}
	}
	if sent {
		t.publish()
		t.serve(now)
	}
}
