package throttle

import (
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
// that comes on request. ok is false while there is no share, or no known end of a pause. The lock is held.
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
	held := min(t.bucket.Level(now+int64(over)), t.bucket.Law().Capacity) + t.queue.Collected
	wait, ok = t.bucket.Law().Wait(t.bucket.Units(min(n, bucket.MaxUnits>>t.bucket.Shift)) - held)
	return over + min(t.evened(wait), never-over), ok
}

// evened shortens a wait at the share in force, if the pool leaves more to a processor that lacks tokens. The share then grows as soon as
// that is reported. With a reserver the pool divides the limit in another way, and nobody can tell. The lock is held.
func (t *rateLimiter) evened(wait time.Duration) time.Duration {
	l := &t.bucket.Law().Lease
	if l.Even <= l.Share || l.Share <= 0 || t.reserver != nil {
		return wait
	}
	return time.Duration(float64(wait) * float64(l.Share) / float64(l.Even))
}

// comesLate reports whether the deadline of w, which arrives now, is before its turn, and how long that takes. The lock is held.
func (t *rateLimiter) comesLate(now int64, w *waiter) (wait time.Duration, late bool) {
	last := waiter{Age: waitqueue.Latest, Lane: w.Lane}
	wait, ok := t.due(now, t.queue.About(&last)+w.Least)
	if !ok || !t.fits(t.units(w)) || !w.Misses(now, wait) {
		return wait, false
	}
	wait, _ = t.due(now, t.queue.Before(&last)+w.Least)
	return wait, w.Misses(now, wait)
}

// retimeSoon is retime after a caller has come before others. retime looks at every waiting caller, so retimeSoon delays it until it takes
// little of the time. The lock is held.
func (t *rateLimiter) retimeSoon(now int64) {
	every := int64(t.queue.Len) * int64(10*time.Microsecond)
	if t.retimeDue = t.queue.Bounded > 0 && now-t.retimed < every; !t.retimeDue && t.queue.Bounded > 0 {
		t.retime(now)
	}
}

// retime fails the waiters that cannot be served before their deadlines at the share in force now. The lock is held.
func (t *rateLimiter) retime(now int64) {
	t.retimed, t.retimeDue = now, false
	if t.queue.Bounded == 0 {
		return
	}
	var late []*waiter
	var ahead int
	for w := range t.queue.All() {
		wait, ok := t.due(now, ahead+w.Least)
		switch missed := ok && t.fits(t.units(w)) && w.Misses(now, wait); {
		case missed && w.Attempt == nil:
			t.leaveQueue(now, w)
			late = append(late, w)
		case missed:
			w.Attempt.Wake() // and finds out itself
			ahead += w.Least
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
