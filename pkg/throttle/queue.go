package throttle

import (
	"math"
	"sync/atomic"
	"time"
)

// A waiter is a caller in the queue. Its result fields are set before ready is
// closed, by whoever takes it out of the queue.
type waiter struct {
	n        int   // tokens asked for
	least    int   // tokens that must be there: n, or one if any will do
	units    int64 // the same in units
	upTo     bool
	deadline int64  // nanoseconds since base; never when there is none
	age      uint64 // rises from caller to caller over all limiters
	ready    chan struct{}
	reason   Reason // why it had to wait

	permit Permit
	err    error

	// bid is the draw on several limiters that this is the place of; nil for a
	// draw on this one. A bid takes its tokens itself, once it is woken.
	bid *bid

	prev, next *waiter
	queued     bool
}

// latest is the age of a caller who comes after everyone that waits.
const latest = math.MaxUint64

// arrivals counts the callers that had to wait, over all limiters of the process.
var arrivals atomic.Uint64

// A queue is the callers that wait, first come first served. It is guarded by
// the limiter's lock.
//
// Invariant: ages rise from the first waiter to the last.
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

// push puts a caller that comes now behind all others.
func (q *queue) push(w *waiter) {
	w.age = arrivals.Add(1)
	q.insert(w)
}

// insert puts w behind everyone who came before it. What the first waiter had
// collected passes on to a waiter that takes its place.
func (q *queue) insert(w *waiter) {
	prev := q.last
	for prev != nil && prev.age > w.age {
		prev = prev.prev
	}
	next := q.first
	if prev != nil {
		next = prev.next
	}
	w.prev, w.next, w.queued = prev, next, true
	if prev == nil {
		q.first = w
	} else {
		prev.next = w
	}
	if next == nil {
		q.last = w
	} else {
		next.prev = w
	}
	q.len++
	q.tokens += w.least
}

// isNext tells whether nobody stands before w, which need not be in the queue.
func (q *queue) isNext(w *waiter) bool { return q.first == nil || q.first.age >= w.age }

// before returns the sum of what must be there for all who came before w.
func (q *queue) before(w *waiter) (tokens int) {
	if q.last == nil || q.last.age < w.age {
		return q.tokens
	}
	for v := q.first; v != nil && v.age < w.age; v = v.next {
		tokens += v.least
	}
	return tokens
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
