package throttle

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// This file estimates when callers get their tokens, and refuses those whose deadlines come before.

// dueWith is due where so many units have to stay in the bucket, as long as they are kept there. The lock is held.
func (t *rateLimiter) dueWith(now int64, n int, stay int64) (wait time.Duration, ok bool) {
	unit := t.bucket.Units(1)
	wait, ok = t.due(now, n+int((stay+unit-1)/unit))
	if over := t.keptFor(now); ok && wait > over {
		all, _ := t.due(now, n)
		wait = max(all, over)
	}
	return wait, ok
}

// due returns how long it takes until n tokens are there, counting those in the bucket. It assumes the present share, or the larger one
// that comes on request; see foreseen. ok is false while there is no share, or no known end of a pause. The lock is held.
func (t *rateLimiter) due(now int64, n int) (wait time.Duration, ok bool) {
	over, known := t.gate.PauseLeft(now)
	switch {
	case !known:
		return 0, false
	case !t.bucket.Law().Valid(now):
		return over, over > 0 // not before the pause is over, that much is sure
	case t.issuing():
		return max(over, t.dueIssued(now, n)), true
	}
	units := t.missing(now+int64(over), n)
	wait, ok = t.bucket.Law().Wait(units)
	return over + min(t.foreseen(now, wait, units), never-over), ok
}

// missing returns how many units the bucket will lack at a time for n tokens. The lock is held.
func (t *rateLimiter) missing(at int64, n int) int64 {
	held := min(t.bucket.Level(at), t.bucket.Law().Capacity) + t.queue.Collected
	return t.bucket.Units(min(n, bucket.MaxUnits>>t.bucket.Shift)) - held
}

// foreseen shortens a wait for so many units at the share in force, if the pool leaves more to a processor that lacks tokens. The share then
// grows as soon as that is reported: up to the even share, or with quotas to any part of the limit. The lock is held.
func (t *rateLimiter) foreseen(now int64, wait time.Duration, units int64) time.Duration {
	l := &t.bucket.Law().Lease
	switch {
	case t.reserver != nil && l.Soon > 0:
		return min(wait, t.atLimit(now, units)+l.Soon)
	case l.Even <= l.Share || t.reserver != nil:
		return wait
	}
	return time.Duration(float64(wait) * float64(l.Share) / float64(l.Even))
}

// atLimit is how long the whole limit takes to earn so many units, from the end of a freeze on: no share grows before. The lock is held.
func (t *rateLimiter) atLimit(now, units int64) time.Duration {
	earns := float64(max(units, 0)) / (t.bucket.Whole * t.raised())
	return t.gate.Thawing(t.bucket.Law().Lease, now) + time.Duration(min(math.Ceil(earns), never/4))
}

// soonest is the shortest wait for n tokens that is possible, where due says wait. A deadline is judged by it: a share that changes with
// the pool's next answer is no reason to refuse a call. The lock is held.
func (t *rateLimiter) soonest(now int64, n int, wait time.Duration) time.Duration {
	s := t.bucket.Law()
	if t.reserver == nil || s.Lease.Soon == 0 || s.Lease.Degraded || t.issuing() || !s.Valid(now) {
		return wait // without the store no answer comes that raises a share
	}
	over, _ := t.gate.PauseLeft(now)
	return min(wait, over+t.atLimit(now, t.missing(now+int64(over), n)))
}

// scant reports whether a share is as good as none: it earns no token in its lease, and the pool has a larger one for callers that lack some.
func (t *rateLimiter) scant(s *bucket.Segment) bool {
	l := &s.Lease
	return l.Soon > 0 && l.Even > l.Share && s.At(s.Until)-s.Earned < t.bucket.Units(1)
}

// misses reports whether n tokens come after the deadline of w, and how long they take. The lock is held.
func (t *rateLimiter) misses(now int64, w *waiter, n int) (wait time.Duration, late bool) {
	wait, ok := t.due(now, n)
	return wait, ok && t.fits(t.units(w)) && w.Misses(now, t.soonest(now, n, wait))
}

// comesLate reports whether the deadline of w, which arrives now, is before its turn, and how long that takes. The lock is held.
func (t *rateLimiter) comesLate(now int64, w *waiter) (wait time.Duration, late bool) {
	last := waiter{Age: waitqueue.Latest, TagQueue: w.TagQueue}
	if wait, late = t.misses(now, w, t.queue.About(&last)+w.Least); late {
		wait, late = t.misses(now, w, t.queue.Before(&last)+w.Least)
	}
	return wait, late
}

// retimeSoon is retime after a caller has come before others. retime looks at every waiting caller, so retimeSoon delays it until it takes
// little of the time. The lock is held.
func (t *rateLimiter) retimeSoon(now int64) {
	if t.queue.Bounded == 0 {
		return // nobody has a deadline
	}
	every := int64(t.queue.Len) * int64(10*time.Microsecond)
	if t.retimeDue = now-t.retimed < every; !t.retimeDue {
		t.retime(now)
	}
}

// retime fails the waiters that cannot be served before their deadlines as things stand now; see soonest. The lock is held.
func (t *rateLimiter) retime(now int64) {
	t.retimed, t.retimeDue = now, false
	if t.queue.Bounded == 0 {
		return
	}
	var late []*waiter
	var ahead int
	for w := range t.queue.All() {
		switch _, missed := t.misses(now, w, ahead+w.Least); {
		case missed && w.Attempt == nil:
			t.leaveQueue(now, w)
			late = append(late, w)
		case missed:
			w.Attempt.Wake() // and finds out itself that it has to leave
		case !t.queue.IsAside(w):
			ahead += w.Least
		}
	}
	if len(late) > 0 {
		t.publish() // perhaps nobody waits any more
	}
	for _, w := range late {
		retry, _ := t.due(now, ahead+w.Least) // a caller that comes again stands behind all that stayed
		t.short(w.N, now)
		w.Fail(t.heldUp(now, w, retry))
	}
}

// heldUp is refuse for w, which cannot be served in time. The lock is held.
func (t *rateLimiter) heldUp(now int64, w *waiter, retry time.Duration) *Error {
	e := t.refuse(t.reason(now, t.units(w)), w.N, retry)
	e.Frozen = t.thaw(now)
	e.RetryAfter = max(e.RetryAfter, e.Frozen)
	return e
}
