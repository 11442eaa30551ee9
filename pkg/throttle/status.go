package throttle

import (
	"time"
)

// status returns the present state.
func (t *rateLimiter) status() Status {
	st := Status{Name: t.name, Limit: t.limit, Closed: t.gate.Closed.Load()}
	if t.limit.Max == 0 {
		st.Lease.Share = wholeShare
		return st
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	st.Lease = t.bucket.Law().Lease
	if t.issuing() {
		t.releaseDue(now)
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

// Throttling says what holds callers back at one moment. Method Throttled describes a draw of one token, and HoldUp the one cause that holds
// most callers. A field that is unknown, or has no meaning for the reason, is zero.
type Throttling struct {
	Reason Reason
	// Limit names the limit, Tag the tag drawn for within it; empty for none.
	Limit, Tag string
	// Waiting counts the callers in the queue. From HoldUp it counts those that the cause holds; 0: it only refuses calls, or would.
	Waiting int
	// RetryAfter is when a draw of one token could be granted as things stand; 0 when that is not known. For issued tokens it is the
	// earliest time: other processors may take them.
	RetryAfter time.Duration
	// Frozen is how much longer the store's freeze lasts; it is 0 in the same cases as in Error.
	Frozen time.Duration
	// Issued describes tokens that are issued one by one; see Status.
	Issued struct {
		Issuing       bool
		Spacing, Next time.Duration
		Reserved      int
	}
	// Paused is the pause that holds callers back, if ReasonPause is the reason and the pause is of everything; else nil.
	Paused *Paused

	// The rest comes from HoldUp only. OfTag says that the cause is the quota or a pause of Tag, not the limit: Tag is then the tag that
	// holds most callers, empty for the quota of all tags without their own, and Tags counts the tags that hold callers for the reason.
	OfTag bool
	Tags  int
	// Longest is how long the first caller has waited; for the limit itself, how long callers have waited there without a break.
	Longest time.Duration
	// Rate is the tag's total in tokens per second, if that is the cause. Blocked says that the total is 0.
	Rate    float64
	Blocked bool
	// Owed is how long the share takes to earn the tokens used above draws.
	Owed time.Duration
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
		t.releaseDue(now)
	}
	least := t.bucket.Units(1)
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
