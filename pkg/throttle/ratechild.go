package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A waiter is a caller in the queue of a limiter; a queue holds the waiters of one limiter.
type (
	waiter  = waitqueue.Waiter[Permit]
	queue   = waitqueue.Queue[Permit]
	attempt = waitqueue.Attempt[Permit]
	lane    = waitqueue.Lane[Permit]
)

// A native is a limiter of this package as All sees it: it takes part in an attempt, and can be drawn from and undrawn without a lock.
type native interface {
	waitqueue.Child[Permit]
	// position orders the locks: an attempt holds those of all its children.
	position() uint64
	// peek reports whether n tokens are at hand for a caller that comes now.
	peek(n int) bool
	// take takes n tokens if they are at hand, and notes no refusal.
	take(n int) (Permit, bool)
	// untake undoes take as if it had never happened.
	untake(p Permit)
	// ask says that n tokens were refused to a draw that does not wait.
	ask(n int)
	// book books n tokens used without a draw; a negative n gives tokens back. The lock is not held.
	book(n int)
	// why returns the reason for refusing n tokens. The lock is not held.
	why(n int) Reason
}

var ranks atomic.Uint64

// nextRank returns the position of a new limiter in the order of locks.
func nextRank() uint64 { return ranks.Add(1) }

// A rateChild is a Throttle as a child of an All.
type rateChild struct{ *Throttle }

var _ native = rateChild{}

func (t rateChild) position() uint64 { return t.rank }

// Lock and Unlock are those of the Throttle.
func (t rateChild) Lock()   { t.gate.Lock() }
func (t rateChild) Unlock() { t.gate.Unlock() }

// peek reports whether a draw would succeed.
func (t rateChild) peek(n int) bool {
	return n <= t.bucket.Largest && t.bucket.Peek(t.bucket.Units(n), t.gate.Now())
}

func (t rateChild) take(n int) (Permit, bool) {
	if n > t.bucket.Largest {
		return Permit{}, false
	}
	pos, ok := t.bucket.Draw(t.bucket.Units(n), t.gate.Now())
	if !ok {
		return Permit{}, false
	}
	return Permit{n: n, pos: pos, by: t.cell(pos)}, true
}

// untake takes the total of grants back to where it was, if nothing was added to it since. It is then as if nothing had been drawn: every
// change that a draw must not miss raises the total (see draw), so that this fails. Otherwise the tokens go back by the rules of a new
// grant: into the bucket, up to its capacity, unless the share has gone since.
func (t rateChild) untake(p Permit) {
	units := t.bucket.Units(p.n)
	if t.bucket.Undraw(p.pos, units) {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.putBack(p.pos, units)
}

// Undo is untake for a permit that an attempt drew.
func (t rateChild) Undo(p Permit) {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.putBack(p.pos, t.bucket.Units(p.n))
}

func (t *Throttle) putBack(pos, units int64) {
	now := t.gate.Now()
	if t.limit.Hard {
		t.giveBack(pos+units, units)
		return
	}
	if t.bucket.Gone(pos + units) { // the share has gone since
		t.bucket.Waste(units)
		return
	}
	t.uncollect(now, units)
	t.serve(now)
}

func (t rateChild) NoteRefused(n int) {
	t.lacks(n)
	t.short(n, t.gate.Now())
}

func (t rateChild) why(n int) Reason { return t.reasonNow(n, t.gate.Now()) }

func (t rateChild) Impossible(n int) (r Reason, never bool) {
	switch {
	case t.gate.Closed.Load():
		return ReasonClosed, true
	case n > t.limit.maxCost():
		return ReasonTooLarge, true
	}
	return "", false
}

func (t rateChild) AtHand(w *waiter) int {
	now := t.gate.Now()
	if !t.isNext(now, w) || !t.bucket.Law().Valid(now) || t.gate.Paused(now) {
		return 0
	}
	if t.issuing() {
		t.ripen(now)
	}
	level := min(t.bucket.Level(now), t.room()) - t.kept(now, w)
	if w.Queued() && level >= t.bucket.Units(1) {
		level += t.queue.Collected
	}
	return int(max(level, 0) >> t.bucket.Shift)
}

func (t rateChild) DueFor(w *waiter) (time.Duration, bool) {
	if !t.fits(w.Units) {
		return 0, false
	}
	now := t.gate.Now()
	wait, ok := t.dueBehind(now, w, t.queue.About(w))
	if ok && w.Misses(now, wait) { // an estimate: look exactly
		wait, ok = t.dueBehind(now, w, t.queue.Before(w))
	}
	return wait, ok
}

// dueBehind is due for w behind so many tokens of others. The lock is held.
func (t *Throttle) dueBehind(now int64, w *waiter, before int) (time.Duration, bool) {
	if stay := t.kept(now, w); stay > 0 {
		return t.dueWith(now, before+w.Least, stay)
	}
	return t.due(now, before+w.Least)
}

func (t rateChild) Earns(n int) time.Duration {
	if t.issuing() {
		return time.Duration(min(float64(n)*float64(t.issue.spacing), never/2))
	}
	d, _ := t.bucket.Law().Wait(t.bucket.Units(n))
	return d
}

func (t rateChild) Lead(n int) time.Duration {
	if t.issuing() { // a slot that comes earlier than the rest by more is void by then
		return min(t.Earns(n), bucket.Validity(t.issue.spacing)/2)
	}
	return t.Earns(n)
}

func (t rateChild) Refusal(w *waiter) limit.Refusal {
	now := t.gate.Now()
	thaw := t.thaw(now)
	return limit.Refusal{Reason: t.reason(now, w.Units), Cost: w.N, RetryAfter: thaw, Frozen: thaw}
}

func (t rateChild) Thawing() time.Duration { return t.thaw(t.gate.Now()) }

func (t rateChild) Left(then time.Time) time.Duration {
	return then.Sub(t.gate.Base) - time.Duration(t.gate.Now())
}

func (t rateChild) Seat(n, least int, deadline time.Time) waiter {
	w := waiter{N: n, Least: least, Deadline: t.deadline(deadline)}
	w.Units = t.bucket.Units(min(least, t.limit.maxCost()))
	return w
}

// deadline converts the deadline of a waiter; the zero Time: none.
func (t *Throttle) deadline(at time.Time) int64 {
	if at.IsZero() {
		return never
	}
	return int64(at.Sub(t.gate.Base))
}

func (t rateChild) Stand(w *waiter) {
	now := t.gate.Now()
	switch {
	case !w.Queued():
		t.queue.Insert(w)
	case !t.queue.Move(w):
		t.noteHeld() // it may now be early, or have its tokens
		t.rearm(now, w)
		return
	}
	if t.queue.First == w && !t.queue.Fair() { // perhaps it asks for less than was collected
		if over := t.queue.Collected - (w.Units - t.bucket.Units(1)); over > 0 {
			t.queue.Collected -= over
			t.uncollect(now, over)
		}
	}
	t.publish()
	t.bucket.Fence() // nothing overtakes w from here on
	if !t.queue.IsLast(w) {
		t.retimeSoon(now) // for those behind
	}
	t.serve(now)
	t.noteShort(now)
}

func (t rateChild) Leave(w *waiter) {
	if !w.Queued() {
		return
	}
	now := t.gate.Now()
	t.leaveQueue(now, w)
	t.publish()
	t.serve(now)
}

func (t rateChild) DrawFor(w *waiter, n int) (Permit, bool) {
	now := t.gate.Now()
	if !t.isNext(now, w) || !t.bucket.Law().Valid(now) || t.gate.Paused(now) {
		return Permit{}, false
	}
	if t.issuing() {
		t.ripen(now)
	}
	need := t.bucket.Units(n)
	if w.Queued() {
		need -= t.collectedFor(need)
	}
	pos, ok := t.bucket.TakeFrom(now, need, t.room())
	if !ok {
		return Permit{}, false
	}
	w.Taken = n
	return Permit{n: n, pos: pos, by: t.cell(pos)}, true
}

func (t rateChild) UndrawFor(w *waiter, p Permit) {
	need := t.bucket.Units(p.n)
	if w.Queued() {
		need -= t.collectedFor(need)
	}
	w.Taken = 0
	switch {
	case t.bucket.Undraw(p.pos, need):
	case t.limit.Hard:
		t.giveBack(p.pos+need, need)
	default:
		t.uncollect(t.gate.Now(), need)
	}
}

func (t rateChild) Drawn(w *waiter) {
	if w.Queued() {
		t.dequeue(t.gate.Now(), w, t.collectedFor(t.bucket.Units(w.Taken))) // its collected tokens are part of its permit
		t.publish()
	}
	t.queue.Served(w, w.Taken)
	if !t.queue.Empty() {
		now := t.gate.Now()
		t.retimeSoon(now) // w may have come between other waiters
		t.serve(now)
	}
}

func (t rateChild) CountWait(r Reason)    { t.gate.Waits.CountWait(r) }
func (t rateChild) CountRefusal(r Reason) { t.gate.Waits.CountRefusal(r) }

func (t rateChild) AfterFunc(d time.Duration, f func()) Timer { return t.gate.AfterFunc(d, f) }

func (t rateChild) OnClosing(ring func()) (stop func()) { return t.onClosing(ring) }

func (t rateChild) Watch(ctx context.Context, r Reason, n int) (over func(n int, err error)) {
	v := t.watch(ctx, r, n)
	return v.end
}

func (t rateChild) Refuse(r limit.Refusal) error                     { return t.errorOf(r) }
func (t rateChild) Ended(ctx context.Context, r limit.Refusal) error { return ended(ctx, t.errorOf(r)) }
