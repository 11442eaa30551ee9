package waitqueue

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// A Waiter is a caller in the queue. Permit and Err are set before Ready is closed, by
// whoever takes the waiter out of the queue.
type Waiter[P any] struct {
	N        int   // tokens asked for
	Least    int   // tokens that must be there: N, or one if any will do
	Units    int64 // Least in units of the bucket
	UpTo     bool
	Deadline int64  // nanoseconds since the limiter was made; limit.Never when there is none
	Age      uint64 // rises from caller to caller over all limiters
	Ready    chan struct{}
	Reason   limit.Reason // why it had to wait

	Permit P
	Err    error

	// Attempt is the draw on several limiters that this is the place of; nil for a draw on
	// this one. An attempt takes its tokens itself, once it is woken.
	Attempt *Attempt[P]

	prev, next *Waiter[P]
	queued     bool
}

// Latest is the age of a caller who comes after everyone that waits.
const Latest = math.MaxUint64

// arrivals counts the callers that had to wait, over all limiters of the process.
var arrivals atomic.Uint64

// A Queue is the callers that wait at one limiter. It is guarded by the limiter's lock. The
// zero Queue is empty.
//
// Invariant: ages rise from the first waiter to the last.
type Queue[P any] struct {
	// First is who is served next; nil: nobody waits.
	First *Waiter[P]
	last  *Waiter[P]
	// Len is how many wait, and Tokens the sum of what must be there for all: in units it
	// might not fit.
	Len    int
	Tokens int
	// Collected is what the first waiter has already drawn, in units, because it asks for
	// more than the bucket holds.
	// Invariant: it leaves at least one token of the first waiter to draw.
	Collected int64
}

// Queued tells whether the waiter has a place in a queue.
func (w *Waiter[P]) Queued() bool { return w.queued }

// Next is who stands behind the waiter; nil: nobody.
func (w *Waiter[P]) Next() *Waiter[P] { return w.next }

// Misses tells whether the waiter's deadline comes before wait is over.
func (w *Waiter[P]) Misses(now int64, wait time.Duration) bool {
	return w.Deadline != limit.Never && int64(wait) > w.Deadline-now
}

// Serve ends the call of a waiter that was taken out of the queue, with a permit.
func (w *Waiter[P]) Serve(p P) {
	w.Permit = p
	close(w.Ready)
}

// Fail ends the call of a waiter that was taken out of the queue, with an error.
func (w *Waiter[P]) Fail(err error) {
	w.Err = err
	close(w.Ready)
}

// Empty tells whether nobody waits.
func (q *Queue[P]) Empty() bool { return q.First == nil }

// Push puts a caller that comes now behind all others.
func (q *Queue[P]) Push(w *Waiter[P]) {
	w.Age = arrivals.Add(1)
	q.Insert(w)
}

// Insert puts w behind everyone who came before it. What the first waiter had
// collected passes on to a waiter that takes its place.
func (q *Queue[P]) Insert(w *Waiter[P]) {
	prev := q.last
	for prev != nil && prev.Age > w.Age {
		prev = prev.prev
	}
	next := q.First
	if prev != nil {
		next = prev.next
	}
	w.prev, w.next, w.queued = prev, next, true
	if prev == nil {
		q.First = w
	} else {
		prev.next = w
	}
	if next == nil {
		q.last = w
	} else {
		next.prev = w
	}
	q.Len++
	q.Tokens += w.Least
}

// IsNext tells whether nobody stands before w, which need not be in the queue.
func (q *Queue[P]) IsNext(w *Waiter[P]) bool { return q.First == nil || q.First.Age >= w.Age }

// Before returns the sum of what must be there for all who came before w.
func (q *Queue[P]) Before(w *Waiter[P]) (tokens int) {
	if q.last == nil || q.last.Age < w.Age {
		return q.Tokens
	}
	for v := q.First; v != nil && v.Age < w.Age; v = v.next {
		tokens += v.Least
	}
	return tokens
}

// Remove takes w out, and returns the units that it had collected.
func (q *Queue[P]) Remove(w *Waiter[P]) (collected int64) {
	if q.First == w {
		collected, q.Collected = q.Collected, 0
		q.First = w.next
	} else {
		w.prev.next = w.next
	}
	if q.last == w {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.Len--
	q.Tokens -= w.Least
	return collected
}
