package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A rateSource is a rateLimiter as a child of an All.
type rateSource struct{ *rateLimiter }

var (
	_ native                = rateSource{}
	_ join.LockFree[Permit] = rateSource{}
)

func (t rateSource) Part() part { return part{Source: t, Gate: &t.gate} }

// Lock and Unlock are those of the rateLimiter.
func (t rateSource) Lock()   { t.gate.Lock() }
func (t rateSource) Unlock() { t.gate.Unlock() }

// Peek reports whether a draw would succeed.
func (t rateSource) Peek(n int) bool {
	return n <= t.bucket.Largest && t.bucket.Peek(t.bucket.Units(n), t.gate.Now())
}

func (t rateSource) Draw(n int) (Permit, bool) {
	if n > t.bucket.Largest {
		return Permit{}, false
	}
	pos, ok := t.bucket.Draw(t.bucket.Units(n), t.gate.Now())
	if !ok {
		return Permit{}, false
	}
	return Permit{n: n, pos: pos, by: t.cell(pos)}, true
}

// Undraw takes the total of grants back to where it was, if nothing was added to it since. It is then as if nothing had been drawn: every
// change that a draw must not miss raises the total (see draw), so that this fails. Otherwise the tokens go back by the rules of a new
// grant: into the bucket, up to its capacity, unless the share has gone since.
func (t rateSource) Undraw(p Permit) {
	units := t.bucket.Units(p.n)
	if t.bucket.Undraw(p.pos, units) {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.putBack(p.pos, units)
}

// putBack gives back units that were drawn at a position, by the rules of a new grant. The lock is held.
func (t *rateLimiter) putBack(pos, units int64) {
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

func (t rateSource) NoteRefused(n int, waited bool) {
	t.lacks(n)
	t.short(n, t.gate.Now())
	if !waited {
		t.ask(n)
	}
}

func (t rateSource) Why(n int) Reason { return t.reasonNow(n, t.gate.Now()) }

func (t rateSource) Largest() int { return t.maxCost }

func (t rateSource) AtHand(w *waiter) int {
	now := t.gate.Now()
	if !t.isNext(now, w) || !t.bucket.Law().Valid(now) || t.gate.Paused(now) {
		return 0
	}
	if t.issuing() {
		t.releaseDue(now)
	}
	level := min(t.bucket.Level(now), t.room()) - t.kept(now, w)
	if w.Queued() && level >= t.bucket.Units(1) {
		level += t.queue.Collected
	}
	return int(max(level, 0) >> t.bucket.Shift)
}

func (t rateSource) Due(w *waiter) (time.Duration, bool) {
	if !t.fits(t.units(w)) {
		return 0, false
	}
	now := t.gate.Now()
	wait, ok := t.dueBehind(now, w, t.queue.About(w))
	if ok && w.Misses(now, wait) { // an estimate: look exactly
		wait, ok = t.dueBehind(now, w, t.queue.Before(w))
	}
	return wait, ok
}

// soonestFor is soonest for w at its place. The lock is held.
func (t rateSource) soonestFor(w *waiter) time.Duration {
	wait, ok := t.Due(w)
	if !ok {
		return wait
	}
	now := t.gate.Now()
	soonest := t.soonest(now, t.queue.About(w)+w.Least, wait)
	if w.Misses(now, soonest) { // an estimate: look exactly
		soonest = t.soonest(now, t.queue.Before(w)+w.Least, wait)
	}
	return soonest
}

// dueBehind is due for w behind so many tokens of others. The lock is held.
func (t *rateLimiter) dueBehind(now int64, w *waiter, before int) (time.Duration, bool) {
	if stay := t.kept(now, w); stay > 0 {
		return t.dueWith(now, before+w.Least, stay)
	}
	return t.due(now, before+w.Least)
}

func (t rateSource) Earns(n int) (takes, ahead time.Duration) {
	if t.issuing() { // a slot that comes earlier than the rest by more than its validity is void by then
		takes = time.Duration(min(float64(n)*float64(t.issue.spacing), never/2))
		return takes, min(takes, bucket.Validity(t.issue.spacing)/2)
	}
	takes, _ = t.bucket.Law().Wait(t.bucket.Units(n))
	return takes, takes
}

func (t rateSource) Refusal(w *waiter) sharing.Refusal {
	now := t.gate.Now()
	thaw := t.thaw(now)
	return sharing.Refusal{Reason: t.reason(now, t.units(w)), Cost: w.N, RetryAfter: thaw, Frozen: thaw}
}

func (t rateSource) Stand(w *waiter) {
	now := t.gate.Now()
	w.Large = t.units(w) > t.bucket.Law().Capacity
	switch {
	case !w.Queued():
		t.queue.Insert(w)
	case !t.queue.Move(w):
		t.noteHeld() // it may now be early, or have its tokens
		t.rearm(now, w)
		return
	}
	t.setAside(w)
	if t.queue.First == w && !t.queue.Fair() { // perhaps it asks for less than was collected
		if over := t.queue.Collected - (t.units(w) - t.bucket.Units(1)); over > 0 {
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

func (t rateSource) Leave(w *waiter, n int) {
	if n >= 0 {
		t.drawn(w, n)
		return
	}
	if !w.Queued() {
		return
	}
	now := t.gate.Now()
	t.leaveQueue(now, w)
	t.publish()
	t.serve(now)
}

func (t rateSource) Take(w *waiter, n int) (Permit, bool) {
	now := t.gate.Now()
	if !t.isNext(now, w) || !t.bucket.Law().Valid(now) || t.gate.Paused(now) {
		return Permit{}, false
	}
	if t.issuing() {
		t.releaseDue(now)
	}
	need := t.bucket.Units(n)
	if w.Queued() {
		need -= t.collectedFor(need)
	}
	pos, ok := t.bucket.TakeFrom(now, need, t.room())
	if !ok {
		return Permit{}, false
	}
	return Permit{n: n, pos: pos, by: t.cell(pos)}, true
}

func (t rateSource) Untake(w *waiter, p Permit) {
	need := t.bucket.Units(p.n)
	if w == nil {
		t.putBack(p.pos, need)
		return
	}
	if w.Queued() {
		need -= t.collectedFor(need)
	}
	switch {
	case t.bucket.Undraw(p.pos, need):
	case t.limit.Hard:
		t.giveBack(p.pos+need, need)
	default:
		t.uncollect(t.gate.Now(), need)
	}
}

// drawn ends the place of w, which has drawn n tokens. If it was served as the first of the queue, the rest is done once all are served. The
// lock is held.
func (t *rateLimiter) drawn(w *waiter, n int) {
	if w.Queued() {
		t.dequeue(t.gate.Now(), w, t.collectedFor(t.bucket.Units(n))) // its collected tokens are part of its permit
		if !t.serving {
			t.publish()
		}
	}
	t.queue.Served(w, n)
	if !t.serving && !t.queue.Empty() {
		now := t.gate.Now()
		t.retimeSoon(now) // w may have come between other waiters
		t.serve(now)
	}
}
