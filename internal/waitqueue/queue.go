package waitqueue

import (
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
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
	// Early says that it stands at a limit before it has the tokens of its tag: who comes wakes it, and it steps aside.
	Early bool
	// Over says that the attempt leaves for good.
	Over bool
	// Taken is how many tokens an attempt has drawn for it, and Promised how many are promised to it; see Part.
	Taken, Promised int

	// Lane is the waiter's lane in a fair queue; nil: it has none, and what it is granted counts for nobody.
	Lane *Lane[P]
	// Held tells whether something else than this limiter has come to hold back a waiter that is no attempt; nil: nothing can.
	Held func() bool

	prev, next *Waiter[P]
	queued     bool
	inLane     bool // stands in its lane
	stood      bool // has stood in a queue
}

// Latest is the age of a caller who comes after everyone that waits.
const Latest = math.MaxUint64

// arrivals counts the callers that had to wait, over all limiters of the process.
var arrivals atomic.Uint64

// A Queue is the callers that wait at one limiter. It is guarded by the limiter's lock. The
// zero Queue is empty, and first come first served.
//
// A fair queue has lanes: the one whose start is the smallest comes first, and in a lane the oldest waiter. Attempts that stand in
// several queues at once, or have done so, come before all others there, the oldest first. They have
// to: if A stood before B in one queue and behind it in another, both would wait for ever. So
//
//   - an attempt of this kind waits only for older ones of its kind, and in queues that are not fair for anyone older;
//   - the stocks of tags have SeveralFirst, so that it waits there for none that waits for tokens which are promised to callers behind it here;
//   - who has always stood in one queue may wait for anyone before it there.
//
// No circle can come of that. Where somebody of the second kind is waited for in a fair queue, it is by one of the same kind and the same
// queue, and these are in one order. In all other cases the one that is waited for is older. So the oldest attempt of
// the first kind is served; it took its places only when its turn was near, see Attempt.
//
// A fair queue takes O(log lanes) for a step, one that is not fair O(1), and both up to half of the waiters more for one who takes a place
// between others of its line.
type Queue[P any] struct {
	// First is who is served next; nil: nobody waits.
	First *Waiter[P]
	// Len is how many wait, and Tokens the sum of what must be there for all: in units it
	// might not fit.
	Len    int
	Tokens int
	// Bounded is how many of them have a deadline.
	Bounded int
	// Collected is what was already drawn for the first waiter, in units, because somebody asks for
	// more than the bucket holds.
	// Invariant: in a queue that is not fair it leaves at least one token of the first waiter to draw.
	Collected int64

	line line[P]  // everybody, or in a fair queue those that stand in several
	fair *fair[P] // nil: the order is that of age
}

// MakeFair makes an empty queue fair.
func (q *Queue[P]) MakeFair() { q.fair = &fair[P]{} }

// SeveralFirst puts attempts that stand in several queues before all others in a queue that is not fair, and is empty.
func (q *Queue[P]) SeveralFirst() { q.line.several = true }

// Fair tells whether the queue is fair.
func (q *Queue[P]) Fair() bool { return q.fair != nil }

// Queued tells whether the waiter has a place in a queue.
func (w *Waiter[P]) Queued() bool { return w.queued }

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
	if w.inLane = q.fair != nil && !w.Many; w.inLane {
		if q.First == nil {
			q.fair.now = max(q.fair.now, q.fair.latest)
		}
		q.fair.insert(w)
	} else {
		q.line.insert(w)
	}
	w.queued, w.stood = true, true
	q.Len++
	if w.Deadline != limit.Never {
		q.Bounded++
	}
	q.Tokens += w.Least
	q.turn()
}

// turn finds the next waiter to be served. An early one is woken when callers of other tags wait too, to check whether it may stay.
func (q *Queue[P]) turn() {
	q.First = q.first()
	if w := q.First; w != nil && w.Early && !q.Alone(w) {
		w.Attempt.Wake()
	}
}

// first finds who is served next.
func (q *Queue[P]) first() *Waiter[P] {
	if q.line.first == nil && q.fair != nil && len(q.fair.busy) > 0 {
		return q.fair.busy[0].line.first
	}
	return q.line.first
}

// Alone tells whether nobody waits but those of w's lane.
func (q *Queue[P]) Alone(w *Waiter[P]) bool {
	return q.First == nil || q.fair != nil && q.line.first == nil && q.fair.lane(w).line.tokens == q.Tokens
}

// Remove takes w out, and returns the units that it had collected.
func (q *Queue[P]) Remove(w *Waiter[P]) (collected int64) {
	if q.First == w {
		collected, q.Collected = q.Collected, 0
	}
	if w.inLane {
		q.fair.remove(w)
	} else {
		q.line.remove(w)
	}
	w.queued = false
	q.Len--
	if w.Deadline != limit.Never {
		q.Bounded--
	}
	q.Tokens -= w.Least
	q.turn()
	return collected
}

// Move puts a waiter of the queue where it belongs now, and tells whether that is another place. What was collected stays with
// the first place.
func (q *Queue[P]) Move(w *Waiter[P]) bool {
	inOrder := (w.prev == nil || q.line.sooner(w.prev, w)) && (w.next == nil || q.line.sooner(w, w.next))
	if inOrder && w.inLane == (q.fair != nil && !w.Many) {
		return false
	}
	collected := q.Collected
	q.Remove(w)
	q.Insert(w)
	q.Collected = collected
	return true
}

// IsNext tells whether nobody stands before w, which need not be in the queue.
func (q *Queue[P]) IsNext(w *Waiter[P]) bool {
	v := q.First
	switch {
	case v == nil || v == w:
		return true
	case w.queued:
		return false
	case q.fair == nil || w.Many && v.Many:
		return q.line.sooner(w, v)
	case w.Many != v.Many:
		return w.Many
	}
	l, first := q.fair.lane(w), q.fair.lane(v)
	if l == first {
		return w.Age < v.Age
	}
	if l.line.first != nil && l.line.first.Age < w.Age {
		return false
	}
	start := q.fair.next(l)
	return start < first.start || start == first.start && w.Age < v.Age
}

// IsLast tells whether nobody stands behind w, as far as that can be told at once: in a fair queue it cannot.
func (q *Queue[P]) IsLast(w *Waiter[P]) bool { return q.fair == nil && q.line.last == w }

// Before returns the sum of what must be there for all who come before w, which need not be in the queue. In a fair queue it looks at every lane.
func (q *Queue[P]) Before(w *Waiter[P]) (tokens int) {
	if q.fair == nil || w.Many {
		return q.line.before(w)
	}
	return q.line.tokens + q.fair.before(w)
}

// About is Before, but in a fair queue an estimate that does not take longer where there are more lanes. It is more than Before where others of
// large weight want little.
func (q *Queue[P]) About(w *Waiter[P]) (tokens int) {
	if q.fair == nil || w.Many {
		return q.line.before(w)
	}
	return q.line.tokens + q.fair.about(w, q.Tokens-q.line.tokens)
}

// All iterates over those who wait in the order in which they would be served if nobody came. Waiters may be taken out meanwhile.
func (q *Queue[P]) All() iter.Seq[*Waiter[P]] {
	return func(yield func(*Waiter[P]) bool) {
		for w := q.line.first; w != nil; {
			next := w.next
			if !yield(w) {
				return
			}
			w = next
		}
		if q.fair != nil {
			q.fair.each(yield)
		}
	}
}

// Served counts n tokens that were granted to w, who stands in the queue no more, for its lane. One that never stood there counts only while others
// wait.
func (q *Queue[P]) Served(w *Waiter[P], n int) {
	if q.fair == nil || !w.stood && q.First == nil {
		return
	}
	q.fair.served(q.fair.lane(w), n)
	w.stood = false
	q.turn()
}

// SetWeight sets the part of what is served that a lane gets, against the others: any rate will do.
func (q *Queue[P]) SetWeight(l *Lane[P], w float64) {
	q.fair.weigh(l, w)
	q.turn()
}
