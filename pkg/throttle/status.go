package throttle

import (
	"time"
)

// status returns the present state.
func (t *rateLimiter) status() Status {
	st := Status{Name: t.name, Limit: t.limit, Closed: t.gate.Closed.Load()}
	if t.limit.Max == 0 {
		st.Lease.Share = WholeShare
		return st
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	st.Lease = t.bucket.Law().Lease
	if t.issuing() {
		t.ripen(now)
		st.Issued = t.issuedStatus(now)
	}
	held := min(t.bucket.Level(now), t.room())
	if t.bucket.Law().Valid(now) {
		st.Rate = t.lawRate()
	} else {
		st.Lease.Share = 0
		held = min(held, 0) // nothing is at hand; debt stays
	}
	st.Tokens = t.bucket.Tokens(held)
	st.Waiting = t.lined() + t.gate.Waits.Beside()
	st.Granted = (t.bucket.Drawn() - t.queue.Collected) >> t.bucket.Shift
	st.Returned = t.bucket.Credited() >> t.bucket.Shift
	st.Refused = t.gate.Refused.Load()
	st.DebtDropped, st.DebtForgiven = t.owed.dropped.Load(), t.owed.forgiven.Load()
	st.Backoff = t.backoffStatus(now)
	st.Paused, st.Pauses = t.gate.Pauses.Status(now, t.gate.Base), t.gate.Pauses.Count
	return st
}

// Throttling says that callers are held back at this moment.
type Throttling struct {
	Reason Reason
	// Limit names the limit, Tag the tag drawn for within it; empty for none.
	Limit, Tag string
	// Waiting counts the callers in the queue.
	Waiting int
	// RetryAfter is when a draw of one token could be granted as things stand; 0 when that is not known. For issued tokens it is the
	// earliest time: other processors may take them.
	RetryAfter time.Duration
	// Frozen is how much longer the store's freeze lasts; it is 0 in the same cases as in Error.
	Frozen time.Duration
	// Issued describes tokens that are issued one by one; see Status.
	Issued Issued
	// Paused is the pause that holds callers back, if ReasonPause is the reason; else nil.
	Paused *Paused
}

// throttled reports whether a draw of one token by w, which comes now, would have to wait, and why.
func (t *rateLimiter) throttled(w *waiter) (Throttling, bool) {
	if t.gate.Closed.Load() {
		return Throttling{Reason: ReasonClosed, Limit: t.name, Tag: t.gate.Tag}, true
	}
	if t.limit.Max == 0 {
		return Throttling{}, false
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	if t.issuing() {
		t.ripen(now)
	}
	least := t.bucket.Units(1)
	if first := t.head(); first != nil && !t.queue.IsNext(w) {
		least = t.units(first) // a cause that holds it back also holds back all behind it
	}
	th := Throttling{Reason: t.reason(now, least), Limit: t.name, Tag: t.gate.Tag, Waiting: t.queue.Len}
	if t.issuing() {
		th.Issued = t.issuedStatus(now)
	}
	wait, ok := t.due(now, t.queue.Before(w)+1)
	if ok && wait == 0 && t.queue.IsNext(w) {
		return Throttling{}, false
	}
	th.Paused = t.gate.Pauses.Status(now, t.gate.Base)
	th.Frozen = t.thaw(now)
	if _, known := t.gate.PauseLeft(now); !known {
		return th, true
	}
	th.RetryAfter = th.Frozen
	if t.fits(least) {
		th.RetryAfter = max(th.RetryAfter, wait)
	}
	return th, true
}

// thaw returns how much longer the pool is frozen while no share is in force; else 0. The lock is held.
func (t *rateLimiter) thaw(now int64) time.Duration {
	if t.bucket.Law().Valid(now) && !t.issuing() {
		return 0
	}
	return t.gate.Thawing(t.bucket.Law().Lease, now)
}

// reason says what holds a draw of so many units back at now. The lock is held.
func (t *rateLimiter) reason(now, units int64) Reason {
	if t.gate.Closed.Load() {
		return ReasonClosed
	}
	r, _ := t.prospect(now, units).At(now)
	return r
}
