package throttle

import "time"

// A waiter is a caller in the queue. Its result fields are set before ready is
// closed, by whoever takes it out of the queue.
type waiter struct {
	n        int   // tokens asked for
	least    int   // tokens that must be there: n, or one if any will do
	units    int64 // the same in units
	upTo     bool
	deadline int64 // nanoseconds since base; never when there is none
	ready    chan struct{}

	permit Permit
	err    error

	prev, next *waiter
	queued     bool
}

// A queue is the callers that wait, first come first served. It is guarded by
// the Throttle's lock.
type queue struct {
	first, last *waiter
	len         int
	tokens      int // sum of what must be there for all; in units it might not fit
	// collected is what the first waiter has already drawn, because it asks for
	// more than the bucket holds.
	// Invariant: it leaves at least one token of the first waiter to draw.
	collected int64
}

// misses tells whether the waiter's deadline comes before wait is over.
func (w *waiter) misses(now int64, wait time.Duration) bool {
	return w.deadline != never && int64(wait) > w.deadline-now
}

// fail ends the call of a waiter that was taken out of the queue.
func (w *waiter) fail(err error) {
	w.err = err
	close(w.ready)
}

func (q *queue) empty() bool { return q.first == nil }

func (q *queue) push(w *waiter) {
	w.prev, w.queued = q.last, true
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.len++
	q.tokens += w.least
}

// remove takes w out, and returns the units that it had collected.
func (q *queue) remove(w *waiter) (collected int64) {
	if q.first == w {
		collected, q.collected = q.collected, 0
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if q.last == w {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.len--
	q.tokens -= w.least
	return collected
}
