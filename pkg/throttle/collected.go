package throttle

import "github.com/numaproj-contrib/numathrottle/internal/waitqueue"

// This file is about what is collected for a waiter that asks for more than the bucket holds. In a fair queue others may
// come before it: they take from what was collected, and the rest stays for it.

// collectedFor is how much of what was collected the first waiter can use for a draw of so many units: at least a token is left to draw. The
// lock is held.
func (t *Throttle) collectedFor(units int64) int64 {
	return max(min(t.queue.Collected, units-t.bucket.Units(1)), 0)
}

// dequeue takes w, which was granted its tokens, out of the queue; used is how many units it took of what was collected. The lock is
// held.
func (t *Throttle) dequeue(now int64, w *waiter, used int64) {
	rest := t.queue.Remove(w) - used
	switch {
	case rest <= 0:
	case !t.queue.Fair() || t.queue.Empty():
		t.uncollect(now, rest)
	default:
		t.queue.Collected = rest
	}
}

// leaveQueue takes w, which was granted nothing, out of the queue. What was collected goes back if it was for w. The lock is held.
func (t *Throttle) leaveQueue(now int64, w *waiter) {
	collected := t.queue.Remove(w)
	if t.queue.Fair() && collected > 0 && w.Units <= t.bucket.Law().Capacity && !t.queue.Empty() {
		t.queue.Collected = collected
		return
	}
	t.uncollect(now, collected)
}

// ahead is about the sum of what must be there for those who stand before w, if it came now. The lock is held.
func (t *Throttle) ahead(w *waiter) int {
	return t.queue.About(&waiter{Age: waitqueue.Latest, Lane: w.Lane})
}
