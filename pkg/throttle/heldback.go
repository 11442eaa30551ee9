package throttle

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// HeldBack is how much a limiter has held callers back for one reason, in all since
// it was made.
type HeldBack struct {
	Reason Reason
	// Waits counts the calls that had to wait, by the reason when they began.
	Waits int64
	// Refusals counts the calls that failed or were refused. A call that waited until its deadline
	// counts in both; one whose caller cancelled it was not refused.
	Refusals int64
	// Time is the time during which at least one caller waited, by the reason at
	// that moment for the first of them. Those that HoldBack tells of come after all others.
	Time time.Duration
}

// A heldLog counts what HeldBack tells. waits and refusals may be counted at any
// time; the rest is guarded by the limiter's lock.
type heldLog struct {
	waits, refusals [limit.ReasonCount]atomic.Int64

	spent   [limit.ReasonCount]int64 // nanoseconds
	waiting bool
	since   int64 // what came before is in spent
	outlook outlook
	outside int // calls that are held back before they draw; see HoldBack
}

func (h *heldLog) wait(r Reason)    { h.waits[r.Index()].Add(1) }
func (h *heldLog) refusal(r Reason) { h.refusals[r.Index()].Add(1) }

// turn books the time until now, and goes on with what is true from now on.
func (h *heldLog) turn(now int64, waiting bool, o outlook) {
	h.book(now)
	h.waiting, h.since, h.outlook = waiting, now, o
}

// turnIdle is turn while nobody waits in the queue.
func (h *heldLog) turnIdle(now int64) { h.turn(now, h.outside > 0, outlook{paused: never}) }

// book books the time until now. The reason may have changed meanwhile by the clock
// alone.
func (h *heldLog) book(now int64) {
	for h.waiting && h.since < now {
		r, until := h.outlook.at(h.since)
		until = min(until, now)
		h.spent[r.Index()] += until - h.since
		h.since = until
	}
}

// list returns what was counted until now, without the reasons that never held.
func (h *heldLog) list(now int64) []HeldBack {
	h.book(now)
	var out []HeldBack
	for i, r := range limit.Reasons() {
		b := HeldBack{Reason: r, Waits: h.waits[i].Load(), Refusals: h.refusals[i].Load(), Time: time.Duration(h.spent[i])}
		if b.Waits > 0 || b.Refusals > 0 || b.Time > 0 {
			out = append(out, b)
		}
	}
	return out
}

// An outlook is why a draw would be held back from now on, as long as nothing
// happens but that time passes: for a pause, for one reason while the share is in force, then
// until the store's freeze ends, then for another. Times are nanoseconds.
type outlook struct {
	paused int64 // until then it is a pause, whatever else
	during Reason
	until  int64
	thaw   int64
	after  Reason
}

// at returns the reason at a time, and until when it is the same.
func (o outlook) at(now int64) (r Reason, until int64) {
	switch {
	case now < o.paused:
		return ReasonPause, o.paused
	case now < o.until:
		return o.during, o.until
	case now < o.thaw:
		return ReasonFrozen, o.thaw
	default:
		return o.after, never
	}
}

// HeldBack returns how much callers were held back for each reason, in an order that does
// not change; reasons that never did so are left out.
func (t *Throttle) HeldBack() []HeldBack {
	if t.limit.Max == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held.list(t.now())
}

// noteHeld notes what the first waiter waits for, if anybody waits. t.mu is held.
func (t *Throttle) noteHeld() {
	if t.queue.Empty() {
		t.held.turnIdle(t.now())
		return
	}
	now := t.now()
	t.held.turn(now, true, t.prospect(now, t.queue.First.Units))
}

// prospect returns why a draw of so many units is held back under the present law. t.mu
// is held.
func (t *Throttle) prospect(now, units int64) outlook {
	o := t.outlook(t.bucket.Law(), units)
	o.paused = t.pauses.until
	if t.bucket.Law().Valid(now) && t.issuing() && t.fits(units) {
		o.during = t.issueReason(now)
	}
	return o
}

// outlook returns why a draw of so many units is held back under the law of s.
func (t *Throttle) outlook(s *bucket.Segment, units int64) outlook {
	o := outlook{during: ReasonLimit, until: s.Until, after: s.Lease.Reason}
	switch {
	case !t.fitsIn(s, units):
		o.during = ReasonShareTooSmall
	case s.Lease.Adapted:
		o.during = ReasonAdaptive
	}
	if !s.Lease.Frozen.IsZero() {
		o.thaw = int64(s.Lease.Frozen.Sub(t.base))
	}
	switch {
	case o.after != "":
	case s.Lease.Share > 0:
		o.after = ReasonStoreLost // the lease ran out
	default:
		o.after = ReasonNoShare
	}
	return o
}

// reasonNow says, mostly without a lock, why a draw of n tokens was refused at now.
func (t *Throttle) reasonNow(n int, now int64) Reason {
	switch {
	case t.closed.Load():
		return ReasonClosed
	case n > t.limit.maxCost():
		return ReasonTooLarge
	}
	s := t.bucket.Gate()
	if now < s.Paused {
		return ReasonPause
	}
	if s.Behind != nil {
		s = s.Behind
	}
	if s.Lease.Issuing { // what is known of slots is guarded
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.reason(now, t.bucket.Units(n))
	}
	r, _ := t.outlook(s, t.bucket.Units(n)).at(now)
	return r
}

// HeldBack returns how much callers were held back for each reason, in an order that does
// not change; reasons that never did so are left out.
func (f *InFlight) HeldBack() []HeldBack {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held.list(f.now())
}

// noteHeld notes what is waited for, if anybody waits. f.mu is held.
func (f *InFlight) noteHeld() {
	if f.queue.Empty() {
		f.held.turnIdle(f.now())
		return
	}
	f.held.turn(f.now(), true, f.outlook())
}

// outlook returns why a draw is held back. f.mu is held.
func (f *InFlight) outlook() outlook {
	o := outlook{paused: f.pauses.until, during: ReasonInFlight, after: f.lease.Reason}
	switch {
	case f.lease.Share == 0:
	case f.lease.Until.IsZero():
		o.until = never
	default:
		o.until = int64(f.lease.Until.Sub(f.base))
	}
	if f.allowed() == 0 { // the share is too small for one
		o.during = ReasonNoShare
	}
	if !f.lease.Frozen.IsZero() {
		o.thaw = int64(f.lease.Frozen.Sub(f.base))
	}
	switch {
	case o.after != "":
	case f.lease.Share > 0:
		o.after = ReasonStoreLost
	default:
		o.after = ReasonNoShare
	}
	return o
}
