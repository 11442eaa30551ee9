package throttle

import (
	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
)

// WaitStats reports how much a limiter has held callers back for one reason since it was made: Waits and Refusals count calls, and Time is
// how long at least one caller waited.
type WaitStats = gate.WaitStats

// WaitStats returns how much callers were held back for each reason, in an order that does not change. It omits reasons that never did so.
func (t *Throttle) WaitStats() []WaitStats { return t.gate.WaitStats() }

// noteHeld notes what the first waiter waits for, if anybody waits. The lock is held.
func (t *rateLimiter) noteHeld() {
	first := t.head()
	if first == nil || first.Early { // it waits for its tag's tokens, and nobody of another tag waits here
		t.gate.Waits.Idle(t.gate.Now())
		return
	}
	now := t.gate.Now()
	t.gate.Waits.Turn(now, true, t.prospect(now, t.units(first)))
}

// prospect returns why a draw of so many units is held back under the present law. The lock
// is held.
func (t *rateLimiter) prospect(now, units int64) gate.Outlook {
	o := t.outlook(t.bucket.Law(), units)
	o.Paused = t.gate.Pauses.Until
	if t.bucket.Law().Valid(now) && t.issuing() && t.fits(units) {
		o.During = t.issueReason(now)
	}
	return o
}

// outlook returns why a draw of so many units is held back under the law of s.
func (t *rateLimiter) outlook(s *bucket.Segment, units int64) gate.Outlook {
	during := ReasonLimit
	switch {
	case !t.fitsIn(s, units):
		during = ReasonShareTooSmall
	case t.scant(s):
		during = ReasonNoShare
	case s.Lease.Adapted:
		during = ReasonAdaptive
	}
	return gate.OutlookOf(&s.Lease, t.gate.Base, during, s.Until)
}

// reasonNow says, mostly without a lock, why a draw of n tokens was refused at now.
func (t *rateLimiter) reasonNow(n int, now int64) Reason {
	switch {
	case t.gate.Closed.Load():
		return ReasonClosed
	case n > t.limit.maxCost():
		return ReasonTooLarge
	}
	s := t.bucket.Current()
	if now < s.Paused {
		return ReasonPause
	}
	if s.Behind != nil {
		s = s.Behind
	}
	if s.Lease.Issuing { // the state of slots is guarded
		t.gate.Lock()
		defer t.gate.Unlock()
		return t.reason(now, t.bucket.Units(n))
	}
	r, _ := t.outlook(s, t.bucket.Units(n)).At(now)
	return r
}

// WaitStats returns how much callers were held back for each reason, in an order that does not change. It omits reasons that never did so.
func (f *InFlight) WaitStats() []WaitStats { return f.gate.WaitStats() }

// noteHeld notes why callers wait, if any do. The lock is held.
func (f *InFlight) noteHeld() {
	if f.queue.Empty() {
		f.gate.Waits.Idle(f.gate.Now())
		return
	}
	f.gate.Waits.Turn(f.gate.Now(), true, f.outlook())
}

// outlook returns why a draw is held back. The lock is held.
func (f *InFlight) outlook() gate.Outlook {
	during, until := ReasonInFlight, int64(0)
	switch {
	case f.lease.Share == 0:
	case f.lease.Until.IsZero():
		until = never
	default:
		until = f.gate.At(f.lease.Until)
	}
	switch {
	case f.allowed() == 0: // the share is too small for one
		during = ReasonNoShare
	case f.queue.First == nil && !f.queue.Empty(): // all wait for slots of their tags
		during = ReasonQuota
	}
	o := gate.OutlookOf(&f.lease, f.gate.Base, during, until)
	o.Paused = f.gate.Pauses.Until
	return o
}

// whyOneWaits says why a draw of one token would have to wait at now; empty: it would not. The lock is held.
func (t *rateLimiter) whyOneWaits(now int64) Reason {
	least := t.bucket.Units(1)
	if first := t.head(); first != nil {
		least = t.units(first) // a cause that holds it back also holds back all behind it
	}
	if wait, ok := t.due(now, t.queue.Tokens+1); ok && wait == 0 && t.queue.Empty() {
		return ""
	}
	return t.reason(now, least)
}

// whyOneWaits says why a call would have to wait; empty: it would not. The lock is held.
func (f *InFlight) whyOneWaits() Reason {
	if f.queue.Empty() && f.inUse < f.allowed() && !f.gate.Paused(f.gate.Now()) {
		return ""
	}
	return f.reason()
}
