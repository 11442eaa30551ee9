package throttle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
)

// A member is a limiter of this package as All sees it: one that can tell how long
// a draw has to wait, and keep a place for it, without granting anything.
type member interface {
	quick
	// position and mutex order the locks: a bid holds those of all its members.
	position() uint64
	mutex() *sync.Mutex
	// tells and keeper are for the one who holds the lock.
	teller
	keeper
}

// quick is what needs no lock.
type quick interface {
	// peek tells whether n tokens are at hand for someone who comes now.
	peek(n int) bool
	// take takes n tokens if they are at hand, and notes no refusal.
	take(n int) (Permit, bool)
	// untake undoes take as if it had never happened.
	untake(p Permit)
	// undo is untake for a permit that a bid drew.
	undo(p Permit)
	// noteRefused notes that n tokens were refused.
	noteRefused(n int)
	// ask says that it was a draw that does not wait.
	ask(n int)
	// why says what n tokens are refused for. The lock is not held.
	why(n int) Reason
	// counts is where waits and refusals are counted by reason.
	counts() *heldLog
	// onClosing calls ring once when the limiter is closed. No lock is held.
	onClosing(ring func()) (stop func())
	// watch begins to watch a wait. The lock is not held.
	watch(ctx context.Context, r Reason, n int) vigil
}

// A teller answers questions. The lock is held.
type teller interface {
	// impossible returns why a draw of n tokens is refused for good; nil when it
	// is not.
	impossible(n int) *Error
	// atHand returns how many tokens w can take now: none while others stand
	// before it.
	atHand(w *waiter) int
	// dueFor returns how long w has to wait at its place, not counting what is given
	// back; ok is false while the share in force is not enough.
	dueFor(w *waiter) (d time.Duration, ok bool)
	// earns returns how long it takes to earn n tokens; 0 for what is not earned
	// but given back.
	earns(n int) time.Duration
	// lead is for how long n tokens may be collected before the draw: as long as it takes to
	// earn them, unless some would be void by then.
	lead(n int) time.Duration
	// refusalOf returns the error for w as things stand. RetryAfter is only what the
	// store's freeze takes, or a pause of slots.
	refusalOf(w *waiter) *Error
	// thawing returns how long the store's freeze goes on yet, while no share is in force; else 0.
	thawing() time.Duration
	// left returns the time until then.
	left(then time.Time) time.Duration
	// afterFunc calls f once d has passed.
	afterFunc(d time.Duration, f func()) Timer
}

// A keeper changes what a bid has. The lock is held.
type keeper interface {
	// seat prepares a place for a bid that asks for n tokens, and can go on with
	// least.
	seat(b *bid, n, least int) waiter
	// stand gives w its place in the queue, by its age.
	stand(w *waiter)
	// leave gives up the place of w, if it has one.
	leave(w *waiter)
	// drawFor takes n tokens that are at hand for w, which keeps its place.
	drawFor(w *waiter, n int) (Permit, bool)
	// undrawFor undoes a draw at once.
	undrawFor(w *waiter, p Permit)
	// drawn ends the place of w, which has what it came for.
	drawn(w *waiter)
}

var ranks atomic.Uint64

// nextRank returns the position of a new member in the order of locks.
func nextRank() uint64 { return ranks.Add(1) }

var _ member = (*Throttle)(nil)

func (t *Throttle) position() uint64   { return t.rank }
func (t *Throttle) mutex() *sync.Mutex { return &t.mu }

// peek tells whether a draw would succeed.
func (t *Throttle) peek(n int) bool {
	return n <= t.bucket.Largest && t.bucket.Peek(t.bucket.Units(n), t.read())
}

func (t *Throttle) take(n int) (Permit, bool) {
	if n > t.bucket.Largest {
		return Permit{}, false
	}
	pos, ok := t.bucket.Draw(t.bucket.Units(n), t.read())
	if !ok {
		return Permit{}, false
	}
	return Permit{n: n, pos: pos, by: t.cell(pos)}, true
}

// untake takes the total of grants back to where it was, as long as nothing was
// added to it. It is then as if nothing had been drawn: every change that a draw must
// not miss leaves the total above (see draw), so that this fails. Otherwise the
// tokens go back by the rules of a new grant: into the bucket, up to its capacity,
// unless the share has gone since.
func (t *Throttle) untake(p Permit) {
	units := t.bucket.Units(p.n)
	if t.bucket.Undraw(p.pos, units) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putBack(p.pos, units)
}

// undo is untake for a permit that a bid drew.
func (t *Throttle) undo(p Permit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putBack(p.pos, t.bucket.Units(p.n))
}

func (t *Throttle) putBack(pos, units int64) {
	now := t.now()
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

func (t *Throttle) noteRefused(n int) {
	t.lacks(n)
	t.short(n, t.read())
}

func (t *Throttle) why(n int) Reason { return t.reasonNow(n, t.read()) }

func (t *Throttle) counts() *heldLog { return &t.held }

func (t *Throttle) impossible(n int) *Error {
	switch {
	case t.closed.Load():
		return t.refusal(ReasonClosed, n, 0)
	case n > t.limit.maxCost():
		return t.refusal(ReasonTooLarge, n, 0)
	}
	return nil
}

func (t *Throttle) atHand(w *waiter) int {
	now := t.now()
	if !t.queue.isNext(w) || !t.bucket.Law().Valid(now) || t.paused(now) {
		return 0
	}
	if t.issuing() {
		t.ripen(now)
	}
	level := min(t.bucket.Level(now), t.room())
	if w.queued {
		level += t.queue.collected
	}
	return int(max(level, 0) >> t.bucket.Shift)
}

func (t *Throttle) dueFor(w *waiter) (time.Duration, bool) {
	if !t.fits(w.units) {
		return 0, false
	}
	return t.due(t.now(), t.queue.before(w)+w.least)
}

func (t *Throttle) earns(n int) time.Duration {
	if t.issuing() {
		return time.Duration(min(float64(n)*float64(t.issue.spacing), never/2))
	}
	d, _ := t.bucket.Law().Wait(t.bucket.Units(n))
	return d
}

func (t *Throttle) lead(n int) time.Duration {
	if t.issuing() { // a slot that comes earlier than the rest by more is void by then
		return min(t.earns(n), bucket.Validity(t.issue.spacing)/2)
	}
	return t.earns(n)
}

func (t *Throttle) refusalOf(w *waiter) *Error {
	now := t.now()
	e := t.refusal(t.reason(now, w.units), w.n, t.thaw(now))
	e.Frozen = e.RetryAfter
	return e
}

func (t *Throttle) thawing() time.Duration { return t.thaw(t.now()) }

func (t *Throttle) left(then time.Time) time.Duration {
	return then.Sub(t.base) - time.Duration(t.now())
}

func (t *Throttle) seat(b *bid, n, least int) waiter {
	w := waiter{n: n, least: least, age: b.age, bid: b, deadline: never}
	w.units = t.bucket.Units(min(least, t.limit.maxCost()))
	if b.bounded {
		w.deadline = int64(b.deadline.Sub(t.base))
	}
	return w
}

func (t *Throttle) stand(w *waiter) {
	if w.queued {
		return
	}
	now := t.now()
	t.queue.insert(w)
	if t.queue.first == w { // perhaps it asks for less than was collected
		if over := t.queue.collected - (w.units - t.bucket.Units(1)); over > 0 {
			t.queue.collected -= over
			t.uncollect(now, over)
		}
	}
	t.publish()
	t.bucket.Fence() // nothing overtakes w from here on
	if w.next != nil {
		t.retime(now) // for those behind
	}
	t.serve(now)
	t.noteShort(now)
}

func (t *Throttle) leave(w *waiter) {
	if !w.queued {
		return
	}
	now := t.now()
	t.uncollect(now, t.queue.remove(w))
	t.publish()
	t.serve(now)
}

func (t *Throttle) drawFor(w *waiter, n int) (Permit, bool) {
	now := t.now()
	if !t.queue.isNext(w) || !t.bucket.Law().Valid(now) || t.paused(now) {
		return Permit{}, false
	}
	if t.issuing() {
		t.ripen(now)
	}
	need := t.bucket.Units(n)
	if w.queued {
		need -= t.queue.collected
	}
	pos, ok := t.bucket.TakeFrom(now, need, t.room())
	if !ok {
		return Permit{}, false
	}
	return Permit{n: n, pos: pos, by: t.cell(pos)}, true
}

func (t *Throttle) undrawFor(w *waiter, p Permit) {
	need := t.bucket.Units(p.n)
	if w.queued {
		need -= t.queue.collected
	}
	switch {
	case t.bucket.Undraw(p.pos, need):
	case t.limit.Hard:
		t.giveBack(p.pos+need, need)
	default:
		t.uncollect(t.now(), need)
	}
}

func (t *Throttle) drawn(w *waiter) {
	if w.queued {
		t.queue.remove(w) // what it had collected is part of its permit
		t.publish()
	}
	if !t.queue.empty() {
		now := t.now()
		t.retime(now) // w may have come between those who wait
		t.serve(now)
	}
}
