package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
)

// A Status describes a Throttle at one moment.
type Status struct {
	// Name is the limit's name, Limit the limit with its defaults filled in.
	Name  string
	Limit Limit
	// Lease is the share in force. Rate is its rate in tokens per second: less than its part of Max with a hard limit, and 0 while tokens
	// are issued.
	Lease Lease
	Rate  float64
	// Tokens is the number of tokens at hand; below 0 it is debt.
	Tokens float64
	// Waiting counts the callers in the queue, and those held back before they draw (ExternalWait).
	Waiting int
	// Issued describes tokens that are issued one by one; it is the zero value while Lease.Issuing is false.
	Issued Issued
	// Granted, Returned and Refused count tokens since the Throttle was made. A draw that can never be granted is no demand, and does not
	// count as refused.
	Granted, Returned, Refused int64
	// DebtDropped counts tokens that calls used beyond their draws and that nobody pays for, because more would be owed than Limit.MaxDebt
	// allows. DebtForgiven counts tokens of debt that ForgiveDebt cancelled.
	DebtDropped, DebtForgiven int64
	// Backoff is the state of an adaptive limit.
	Backoff Backoff
	// Paused is the pause in force, with the time at which it ends here; nil: there is none. Pauses counts the pauses so far.
	Paused *Paused
	Pauses int64
	// Tags lists the tags that have been in use, with quotas: "" first, then by name, then tags shared by several names. nil without
	// quotas. At most 12,352 of them are not named in the configuration.
	Tags []TagStatus
	// TagsGone counts the tokens used and refused of tags that are not among Tags any more: they matched a pattern and made way for others.
	TagsGone TagTotals
	// Closed is true when nothing is granted any more.
	Closed bool
}

// Ceiling returns how many tokens per second the whole pool may use at present: Limit.Rate, unless the limit ramps up or an override is in
// force. 0: no limit.
func (s *Status) Ceiling() float64 {
	if s.Lease.Ceiling <= 0 || s.Limit.Max == 0 {
		return s.Limit.Rate()
	}
	return s.Limit.Rate() * s.Lease.Ceiling / float64(s.Limit.Max)
}

// Status returns the present state of the Throttle.
func (t *Throttle) Status() Status {
	st := Status{Name: t.name, Limit: t.limit, Closed: t.gate.Closed.Load()}
	if t.limit.Max == 0 {
		st.Lease.Share = WholeShare
		return st
	}
	st.Tags = t.tags.status()
	st.TagsGone.Used, st.TagsGone.Refused = t.tags.totals()
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
		st.Rate = float64(t.bucket.Law().Rate) / (1 << bucket.RateBits) / float64(int64(1)<<t.bucket.Shift) * 1e9
	} else {
		st.Lease.Share = 0
		held = min(held, 0) // nothing is at hand; debt stays
	}
	st.Tokens = t.bucket.Tokens(held)
	st.Waiting = t.queue.Len + t.gate.Waits.Beside()
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

// Throttled reports whether a draw of one token would have to wait, and why.
func (t *Throttle) Throttled() (Throttling, bool) {
	return t.throttled(&waiter{Age: waitqueue.Latest})
}

// throttled is Throttled for w, which comes now.
func (t *Throttle) throttled(w *waiter) (Throttling, bool) {
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
func (t *Throttle) thaw(now int64) time.Duration {
	if t.bucket.Law().Valid(now) && !t.issuing() {
		return 0
	}
	return t.gate.Thawing(t.bucket.Law().Lease, now)
}

// reason says what holds a draw of so many units back at now. The lock is held.
func (t *Throttle) reason(now, units int64) Reason {
	if t.gate.Closed.Load() {
		return ReasonClosed
	}
	r, _ := t.prospect(now, units).At(now)
	return r
}
