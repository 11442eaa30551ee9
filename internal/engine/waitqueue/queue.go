package waitqueue

import (
	"container/heap"
	"iter"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Waiter is a caller in the queue. The code that takes the waiter out of the queue sets Permit, Err or Dismissed before it closes Ready.
type Waiter[P any] struct {
	N        int // tokens asked for
	Least    int // tokens that must be there: N, or one if any will do
	UpTo     bool
	Deadline int64  // nanoseconds since the limiter was made; sharing.Never when there is none
	Age      uint64 // rises from caller to caller over all limiters
	Ready    chan struct{}
	Woken    func()       // called after Ready was closed; nil: nobody needs it
	Reason   limit.Reason // why it had to wait

	Permit P
	Err    error

	// Attempt is the draw on several limiters that this place belongs to; nil for a draw on this one. An attempt takes its tokens itself,
	// once it is woken.
	Attempt *Attempt[P]
	// Many says that the attempt has stood in more than one queue at once. Set it before the waiter is placed.
	Many bool
	// Early says that it stands at a limit before it has the tokens of its tag: a new caller wakes it, and it steps aside.
	Early bool
	// WakeFirst says that the attempt may stand at other limits once it comes first here, and is woken then.
	WakeFirst bool
	// Large says that it asks for more than the limit can hold: tokens are collected for it there, and lost with its place.
	Large bool
	// Over says that the attempt leaves for good.
	Over bool
	// Dismissed says that a waiter that is no attempt was taken out of the queue because it is Held. It has neither a permit nor an error,
	// and goes on elsewhere.
	Dismissed bool
	// Late: it stands behind all that are not; see Attempt.
	Late bool
	// Promised is how many tokens are promised to it; see Part.
	Promised int

	// TagQueue is the waiter's tag queue in a fair queue. nil: it has none, and its grants count for nobody.
	TagQueue *TagQueue[P]
	// Held reports whether something other than this limiter now holds back a waiter that is no attempt; nil: nothing can.
	Held func() bool

	prev, next *Waiter[P]
	queued     bool
	inTagQueue bool // stands in its tag queue
	passed     bool // is set aside
	stood      bool // has stood in a queue
}

// Latest is the age of a caller that comes after all waiting callers.
const Latest = math.MaxUint64

// arrivals counts the callers that had to wait, over all limiters of the process.
var arrivals atomic.Uint64

// A Queue holds the callers that wait at one limiter. It is guarded by the limiter's lock. The zero Queue is empty, and first come first
// served.
//
// A fair queue has tag queues. The tag queue with the smallest start comes first, and in a tag queue the oldest waiter. Attempts that stand in several
// queues at once, or have done so, come before all others there, the oldest first. They have to: if A stood before B in one queue and
// behind it in another, both would wait for ever. So
//
//   - an attempt of this kind waits only for older ones of its kind, and in queues that are not fair for any older waiter;
//   - the tag buckets of tags have SeveralFirst, so that it never waits there for a waiter whose tokens are promised to callers behind it here;
//   - a waiter that has always stood in one queue may wait for any waiter before it there.
//
// This allows no circle. In a fair queue, only waiters of the second kind and of the same queue wait for one of the second kind, and these
// are in one order. In all other cases the one waited for is older. So the oldest attempt of the first kind is served; it took its places
// only when its turn was near, see Attempt.
//
// A step takes O(log tag queues) in a fair queue and O(1) in any other. In both, placing a waiter between others of its line also visits up to
// half of the waiters.
type Queue[P any] struct {
	// First is served next; nil: nobody waits, or all are set aside.
	First *Waiter[P]
	// Len is the number of waiters, and Tokens the sum of their Least: in units it might not fit.
	Len    int
	Tokens int
	// Bounded is how many of them have a deadline.
	Bounded int
	// Collected is the amount already drawn for the first waiter, in units, when a caller asks for more than the bucket holds. Invariant:
	// in a queue that is not fair it leaves at least one token of the first waiter to draw.
	Collected int64

	line   line[P]  // everybody, or in a fair queue those that stand in several
	passed line[P]  // those that are set aside
	fair   *fair[P] // nil: the order is that of age
}

// MakeFair makes an empty queue fair.
func (q *Queue[P]) MakeFair() { q.fair = &fair[P]{} }

// MakeOrdered makes an empty queue fair, whose tag queues have the starts of SetStart.
func (q *Queue[P]) MakeOrdered() { q.fair = &fair[P]{now: math.Inf(-1), latest: math.Inf(-1)} }

// SetStart sets the start of a tag queue: the smallest one is served first. Grants do not move it.
func (q *Queue[P]) SetStart(l *TagQueue[P], start float64) {
	if l.start == start {
		return
	}
	if l.start = start; l.line.first != nil {
		heap.Fix(&q.fair.busy, l.at)
		q.turn()
	}
}

// SeveralFirst puts attempts that stand in several queues before all others in a queue that is not fair, and is empty.
func (q *Queue[P]) SeveralFirst() { q.line.several = true }

// Fair reports whether the queue is fair.
func (q *Queue[P]) Fair() bool { return q.fair != nil }

// Queued reports whether the waiter has a place in a queue.
func (w *Waiter[P]) Queued() bool { return w.queued }

// Misses reports whether the waiter's deadline comes before wait is over.
func (w *Waiter[P]) Misses(now int64, wait time.Duration) bool {
	return w.Deadline != sharing.Never && int64(wait) > w.Deadline-now
}

// Serve ends the call of a waiter that was taken out of the queue, with a permit.
func (w *Waiter[P]) Serve(p P) {
	w.Permit = p
	w.end()
}

// Fail ends the call of a waiter that was taken out of the queue, with an error.
func (w *Waiter[P]) Fail(err error) {
	w.Err = err
	w.end()
}

// end lets the caller of a waiter go on.
func (w *Waiter[P]) end() {
	close(w.Ready)
	if w.Woken != nil {
		w.Woken()
	}
}

// Dismiss ends the place of a waiter that was taken out of the queue because it is Held.
func (w *Waiter[P]) Dismiss() {
	w.Dismissed = true
	w.end()
}

// Empty reports whether nobody waits.
func (q *Queue[P]) Empty() bool { return q.Len == 0 }

// SetAside lets others pass w, which stands in the queue, until Refit. It reports whether it did.
func (q *Queue[P]) SetAside(w *Waiter[P]) bool {
	if w.passed {
		return false
	}
	q.pass(w)
	q.turn()
	return true
}

func (q *Queue[P]) pass(w *Waiter[P]) {
	q.unplace(w)
	q.passed.insert(w)
	w.passed = true
}

// place puts w into its line or its tag queue.
func (q *Queue[P]) place(w *Waiter[P]) {
	if w.inTagQueue {
		q.fair.insert(w)
		return
	}
	q.line.insert(w)
}

// unplace takes w from where it stands.
func (q *Queue[P]) unplace(w *Waiter[P]) {
	switch {
	case w.passed:
		q.passed.remove(w)
		w.passed = false
	case w.inTagQueue:
		q.fair.remove(w)
	default:
		q.line.remove(w)
	}
}

// Recall ends SetAside for w.
func (q *Queue[P]) Recall(w *Waiter[P]) {
	if w.passed {
		q.unplace(w)
		w.inTagQueue = q.fair != nil && !w.Many
		q.place(w)
		q.turn()
	}
}

// Refit sets aside what does not fit, and ends that for what does. A tag queue then starts at the virtual time at the earliest: it has no claim to
// what others had meanwhile.
func (q *Queue[P]) Refit(fits func(w *Waiter[P]) bool) {
	for _, w := range slices.Collect(q.All()) {
		switch ok := fits(w); {
		case ok && w.passed:
			q.unplace(w)
			q.place(w)
		case !ok && !w.passed:
			q.pass(w)
		}
	}
	q.turn()
}

// Aside iterates over the waiters that others pass, the oldest first.
func (q *Queue[P]) Aside() iter.Seq[*Waiter[P]] {
	return func(yield func(*Waiter[P]) bool) {
		for w := q.passed.first; w != nil; w = w.next {
			if !yield(w) {
				return
			}
		}
	}
}

// IsAside reports whether others pass w.
func (q *Queue[P]) IsAside(w *Waiter[P]) bool { return w.passed }

// Push puts a new caller into its place: behind all others, or in a fair queue behind its tag queue.
func (q *Queue[P]) Push(w *Waiter[P]) {
	w.Age = arrivals.Add(1)
	q.Insert(w)
}

// Insert puts w into its place. Units that the first waiter had collected pass on to a waiter that takes its place.
func (q *Queue[P]) Insert(w *Waiter[P]) {
	if w.inTagQueue = q.fair != nil && !w.Many; w.inTagQueue && q.Empty() {
		q.fair.now = q.fair.latest
	}
	q.place(w)
	w.queued, w.stood = true, true
	q.Len++
	if w.Deadline != sharing.Never {
		q.Bounded++
	}
	q.Tokens += w.Least
	q.turn()
}

// turn finds the next waiter to be served. An early waiter is woken when callers of other tags wait too, to check whether it may stay.
func (q *Queue[P]) turn() {
	q.First = q.first()
	if w := q.First; w != nil && (w.WakeFirst || w.Early && !q.Alone(w)) {
		w.Attempt.Wake()
	}
}

// first returns the next waiter to be served.
func (q *Queue[P]) first() *Waiter[P] {
	if q.line.first == nil && q.fair != nil && len(q.fair.busy) > 0 {
		return q.fair.busy[0].line.first
	}
	return q.line.first
}

// Alone reports whether only waiters of w's tag queue wait, beside those that are set aside.
func (q *Queue[P]) Alone(w *Waiter[P]) bool {
	return q.First == nil || q.fair != nil && q.fair.tagQueue(w).line.tokens == q.Tokens-q.passed.tokens
}

// Remove takes w out, and returns the units that it had collected.
func (q *Queue[P]) Remove(w *Waiter[P]) (collected int64) {
	if q.First == w {
		collected, q.Collected = q.Collected, 0
	}
	q.unplace(w)
	w.queued = false
	q.Len--
	if w.Deadline != sharing.Never {
		q.Bounded--
	}
	q.Tokens -= w.Least
	q.turn()
	return collected
}

// Move puts a waiter of the queue where it belongs now, and reports whether that is another place. Collected units stay with the first
// place.
func (q *Queue[P]) Move(w *Waiter[P]) bool {
	inOrder := (w.prev == nil || q.line.sooner(w.prev, w)) && (w.next == nil || q.line.sooner(w, w.next))
	if inOrder && w.inTagQueue == (q.fair != nil && !w.Many) {
		return false
	}
	collected := q.Collected
	q.Remove(w)
	q.Insert(w)
	q.Collected = collected
	return true
}

// IsNext reports whether nobody stands before w, which need not be in the queue.
func (q *Queue[P]) IsNext(w *Waiter[P]) bool {
	v := q.First
	switch {
	case v == w:
		return true
	case w.queued:
		return false
	case v == nil:
		return true
	case q.fair == nil || w.Many && v.Many:
		return q.line.sooner(w, v)
	case w.Many != v.Many:
		return w.Many
	}
	return sooner(q.fair.next(q.fair.tagQueue(w)), w, q.fair.tagQueue(v).start, v)
}

// IsLast reports whether nobody stands behind w, as far as that can be told at once: in a fair queue it cannot.
func (q *Queue[P]) IsLast(w *Waiter[P]) bool { return q.fair == nil && q.line.last == w }

// Before returns the sum of Least over all waiters before w, which need not be in the queue. In a fair queue it looks at every tag queue.
func (q *Queue[P]) Before(w *Waiter[P]) (tokens int) {
	if q.fair == nil || w.Many {
		return q.line.before(w)
	}
	return q.line.tokens + q.fair.before(w)
}

// About is Before, but in a fair queue an estimate that does not take longer with more tag queues. It exceeds Before when others of large weight
// want little.
func (q *Queue[P]) About(w *Waiter[P]) (tokens int) {
	if q.fair == nil || w.Many {
		return q.line.before(w)
	}
	return q.line.tokens + q.fair.about(w, q.Tokens-q.line.tokens-q.passed.tokens)
}

// All iterates over the waiters in the order in which they would be served if nobody came. Waiters may be taken out meanwhile.
func (q *Queue[P]) All() iter.Seq[*Waiter[P]] {
	return func(yield func(*Waiter[P]) bool) {
		for _, first := range []*Waiter[P]{q.line.first, q.passed.first} {
			for w := first; w != nil; {
				next := w.next
				if !yield(w) {
					return
				}
				w = next
			}
		}
		if q.fair != nil {
			q.fair.each(yield)
		}
	}
}

// Unordered is All in any order, which takes no sorting. Nobody may be taken out meanwhile.
func (q *Queue[P]) Unordered() iter.Seq[*Waiter[P]] {
	return func(yield func(*Waiter[P]) bool) {
		lines := []*line[P]{&q.line, &q.passed}
		if q.fair != nil {
			for _, l := range q.fair.busy {
				lines = append(lines, &l.line)
			}
		}
		for _, l := range lines {
			for w := l.first; w != nil; w = w.next {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// Served counts n tokens that were granted to w, which has left the queue, for its tag queue. A waiter that never stood there counts only while
// others wait.
func (q *Queue[P]) Served(w *Waiter[P], n int) {
	if q.fair == nil || !w.stood && q.Empty() {
		return
	}
	q.fair.served(q.fair.tagQueue(w), n)
	w.stood = false
	q.turn()
}

// SetWeight sets a tag queue's part of the service, relative to the others: any rate will do.
func (q *Queue[P]) SetWeight(l *TagQueue[P], w float64) {
	q.fair.weigh(l, w)
	q.turn()
}
