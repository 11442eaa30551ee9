package throttle

import "slices"

// This file is about callers that wait in a lane of the limit when something else begins to hold their tag. That is a bound, because the
// called service refuses its calls, a pause, or a quota. These callers then continue like later ones (see tagView.wait), ordered among them
// by time of arrival.

// An elsewhere is the error that ends the wait of such a caller. It is for tagView.wait alone.
type elsewhere struct {
	age uint64 // of the waiter; 0: it did not wait yet
}

func (elsewhere) Error() string { return "throttle: something else than the limit holds the caller" }

// isBarred reports whether something else than the limit may hold draws back: a tag may lack tokens of its own, or is paused.
func (l *tagView) isBarred() bool {
	if slices.ContainsFunc(l.tags, func(g *tag) bool { return g.holds.Load() }) {
		return true
	}
	_, paused := l.paused()
	return paused
}

// sendElsewhere removes callers from the queue that something else has begun to hold. A bound and a pause begin under the same lock, so
// none of these callers gets a token meanwhile. Attempts stay: each looks at everything that holds it when its turn comes. If it goes
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
