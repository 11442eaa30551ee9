package waitqueue

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/lanes"
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
	// Many says that the attempt has stood in more than one queue at once. Set it before the waiter is placed.
	Many bool
	// Over says that the attempt leaves for good.
	Over bool
	// Taken is how many tokens an attempt has drawn for it.
	Taken int

	// Lane is the waiter's lane in a fair queue; nil: it has none. Start is its place in the lane, which it keeps while it
	// stands elsewhere.
	Lane  *lanes.Lane
	Start lanes.Start
	// Held tells whether something else than this limiter has come to hold back a waiter that is no attempt; nil: nothing can.
	Held func() bool

	prev, next *Waiter[P]
	queued     bool
}

// Latest is the age of a caller who comes after everyone that waits.
const Latest = math.MaxUint64

// arrivals counts the callers that had to wait, over all limiters of the process.
var arrivals atomic.Uint64

// A Queue is the callers that wait at one limiter. It is guarded by the limiter's lock. The
// zero Queue is empty, and first come first served.
//
// A queue with a Clock is fair between lanes: of two waiters the one with the smaller start comes first, and of equal starts
// the older one. Attempts that stand in several queues at once, or have done so, come before all others there, the oldest first. They have
// to: if A stood before B in one queue and behind it in another, both would wait for ever. So
//
//   - an attempt of this kind waits only for older ones of its kind, and in queues without a clock for anyone older;
//   - who has always stood in one queue may wait for anyone before it there.
//
// No circle can come of that. Where somebody of the second kind is waited for in a fair queue, it is by one of the same kind and the same
// queue, and these are in one order. In all other cases the one that is waited for is older. So the oldest attempt of
// the first kind is served; it took its places only when its turn was near, see Attempt.
//
// Invariant: the waiters are in order, each is behind all that come before it.
type Queue[P any] struct {
	// First is who is served next; nil: nobody waits.
	First *Waiter[P]
	last  *Waiter[P]
	// Clock makes the queue fair; nil: the order is that of age.
	Clock *lanes.Clock
	// Len is how many wait, and Tokens the sum of what must be there for all: in units it
	// might not fit.
	Len    int
	Tokens int
	// Collected is what was already drawn for the first waiter, in units, because somebody asks for
	// more than the bucket holds.
	// Invariant: in a queue without a clock it leaves at least one token of the first waiter to draw.
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

// Push puts a caller that comes now into its place: behind all others, or in a fair queue behind
// those of its lane.
func (q *Queue[P]) Push(w *Waiter[P]) {
	w.Age = arrivals.Add(1)
	q.Insert(w)
}

// Insert puts w into its place. What the first waiter had
// collected passes on to a waiter that takes its place.
func (q *Queue[P]) Insert(w *Waiter[P]) {
	if q.Clock != nil && !w.Start.Given() {
		w.Start = q.Clock.Enter(w.Lane, w.Least)
	}
	prev := q.behind(w)
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

// behind returns the last waiter that comes before w; nil: none. It looks from both ends.
func (q *Queue[P]) behind(w *Waiter[P]) *Waiter[P] {
	head, tail := q.First, q.last
	for head != nil && tail != nil {
		if !q.before(head, w) {
			return head.prev
		}
		if q.before(tail, w) {
			return tail
		}
		head, tail = head.next, tail.prev
	}
	return nil
}

// before tells whether v comes before w, which need not be in the queue.
func (q *Queue[P]) before(v, w *Waiter[P]) bool {
	switch {
	case q.Clock == nil:
	case v.Many != w.Many:
		return v.Many
	case !v.Many:
		if a, b := q.start(v), q.start(w); a != b {
			return a < b
		}
	}
	return v.Age < w.Age
}

// start is where w has its start, or would have it.
func (q *Queue[P]) start(w *Waiter[P]) float64 {
	if w.Start.Given() {
		return w.Start.At
	}
	return q.Clock.Next(w.Lane)
}

// IsNext tells whether nobody stands before w, which need not be in the queue.
func (q *Queue[P]) IsNext(w *Waiter[P]) bool { return q.First == nil || !q.before(q.First, w) }

// Before returns the sum of what must be there for all who come before w.
func (q *Queue[P]) Before(w *Waiter[P]) (tokens int) {
	if q.last == nil || q.before(q.last, w) {
		return q.Tokens
	}
	rest := q.Tokens
	for head, tail := q.First, q.last; head != nil && tail != nil; head, tail = head.next, tail.prev {
		if !q.before(head, w) {
			return tokens
		}
		if q.before(tail, w) {
			return rest
		}
		tokens += head.Least
		rest -= tail.Least
	}
	return tokens
}

// Move puts a waiter of the queue where it belongs now, and tells whether that is another place. What was collected stays with
// the first place.
func (q *Queue[P]) Move(w *Waiter[P]) bool {
	if (w.prev == nil || q.before(w.prev, w)) && (w.next == nil || q.before(w, w.next)) {
		return false
	}
	collected := q.Collected
	q.Remove(w)
	q.Insert(w)
	q.Collected = collected
	return true
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

// Served counts n tokens that were granted to w for its lane. One that never stood in the queue counts only while
// others wait.
func (q *Queue[P]) Served(w *Waiter[P], n int) {
	if q.Clock == nil || !w.Start.Given() && q.Empty() {
		return
	}
	if !w.Start.Given() {
		w.Start = q.Clock.Enter(w.Lane, w.Least)
	}
	q.Clock.Serve(w.Lane, w.Start, n)
	w.Start = lanes.Start{}
}

// Forget gives up the start of a waiter that is granted nothing.
func (q *Queue[P]) Forget(w *Waiter[P]) {
	if q.Clock != nil && w.Start.Given() {
		q.Clock.Leave(w.Lane, w.Start)
		w.Start = lanes.Start{}
	}
}

// Restart gives all waiters of the queue new starts by the weights that are in force now.
func (q *Queue[P]) Restart() {
	if q.Clock == nil || q.First == nil {
		return
	}
	all := make([]*Waiter[P], 0, q.Len)
	collected := q.Collected
	for w := q.First; w != nil; w = q.First {
		q.Remove(w)
		q.Clock.Restart(w.Lane)
		w.Start = lanes.Start{}
		all = append(all, w)
	}
	for _, w := range all {
		q.Insert(w)
	}
	q.Collected = collected
}
