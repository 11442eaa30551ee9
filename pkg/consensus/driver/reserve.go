package driver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A Reserve asks for slots: moments on the pool's clock, each good for one token, and any two of them at least a spacing apart, across all
// processors. The pool issues slots, and no shares, while [Answer.Issuing] says so.
type Reserve struct {
	// Pool is the name of the pool: the key in the store.
	Pool string
	// Count is how many slots are wanted: 0, only to give back, to 64.
	Count int
	// Spacing is that of the whole limit, Per / Max rounded up: 1 us to
	// 744 h. A larger one that processors have named in their syncs counts instead.
	Spacing time.Duration
	// Ahead is how many slots may lie beyond those that are due now: 0, only a slot that is due, to 1,000. A slot is granted if it is at
	// most Ahead x Spacing away. This Spacing counts even if a larger one is in force. The larger one may soon end, and would have too many
	// slots reserved, which would keep the pool at that pace.
	Ahead int
	// Revision is the newest revision of the record that the sender has seen.
	Revision uint64
	// Lease is the lease the sender is configured with, as in Request.
	Lease time.Duration
	// Return is the Reserved.Last of a reservation that gives back Unused slots, counted from its end; 0: none. An Unused of 0 counts as 1.
	// It has an effect only while nobody has reserved since. Given back twice counts once.
	Return int64
	Unused int
}

// Reserved is the answer to a Reserve.
type Reserved struct {
	// Count is how many slots are granted: 0 to Reserve.Count. The first is Wait after the time of the step on the store's clock, each of
	// the others Spacing after the one before it.
	Count   int
	Wait    time.Duration
	Spacing time.Duration
	// Last names the reservation, to give back from its end; 0 when nothing can be.
	Last int64
	// Retry is when asking again makes sense; 0 unless Count is 0.
	Retry time.Duration
	// Issuing is as in Answer. Frozen and FrozenBy, too.
	Issuing  bool
	Frozen   time.Duration
	FrozenBy FreezeCause
	// Time is the record's logical time in microseconds, Revision its revision.
	Time     int64
	Revision uint64
}

// Validate returns a *RequestError for the first field that no store accepts, or nil.
func (q *Reserve) Validate() error {
	if err := ValidateNames(q.Pool, "id", "incarnation"); err != nil {
		return err
	}
	if err := cmp.Or(
		askedWithin("Count", q.Count, 0, wire.MaxSlots), askedWithin("Spacing", q.Spacing, wire.MinSpacing, wire.MaxSpacing),
		askedWithin("Ahead", q.Ahead, 0, wire.MaxAhead), askedWithin("Revision", q.Revision, 0, maxRevision), validateLease(q.Lease),
		askedWithin("Unused", q.Unused, 0, wire.MaxSlots),
	); err != nil {
		return err
	}
	if q.Return < 0 {
		return &RequestError{"Return", fmt.Sprint(q.Return), "0, or what Reserved.Last was"}
	}
	return nil
}

// Reserve is one reservation on the store's side: it changes the record and returns the answer. The request must be valid. changed reports
// whether the record changed and must be written back.
//
//   - The spacing in force is the largest one that was named, divided by the permits' claim: Whole less all claims of processors while the
//     pool issues, else 0. With a claim below a third nothing is granted.
//   - The first slot is the latest of the time of the step, one spacing after the newest slot reserved, and the end of a hold. Earlier
//     slots that nobody used are lost.
//   - When the store has forgotten something, which is noticed as in Sync, the pool freezes. Slots are held until the end of the freeze,
//     for a spacing, and for the longest [Request.Reach] in the syncs meanwhile. A processor that does not sync before the freeze is over has
//     lost its lease by then, and its slots with it.
//   - A pool without a record issues nothing: the next sync makes one.
//
// A Deferred store learns the time of the step, and with it the slots, only when it reads its write back. The answer then holds nothing but
// the Revision to ask ReadReservation for.
func (r *Record) Reserve(req *Reserve, at At) (res Reserved, changed bool) {
	if r.Revision == 0 {
		return noRecord(req), false
	}
	before := *r
	st := r.begin(req.Lease, at)
	st.stampLast()
	r.Clock, r.Wall = st.clock, at.Now
	forgot := st.remember(req.Revision, 0, false) // of a record that is there
	changed = forgot
	is := &r.Permits
	spacing := max(req.Spacing, is.Spacing)
	held := max(r.FrozenUntil, 0)
	changed = st.hold(spacing, 0) || is.Held != held || changed
	is.Held = held
	revision := r.Revision + 1
	if !forgot { // another reservation may have the name by now
		changed = is.giveBack(req.Return, req.Unused, revision) || changed
	}

	bid := booking{
		revision: revision, count: req.Count, step: spacingOf(spacing, st.permitClaim()),
		window: time.Duration(req.Ahead) * req.Spacing,
	}
	if bid.step == 0 {
		bid.count = 0
	}
	if at.Deferred {
		if bid.count > 0 {
			is.Pending = pendingReservation{Count: bid.count, Step: bid.step, Window: bid.window}
		}
		r.Revision = revision
		return Reserved{Revision: revision}, true
	}
	slots := is.take(bid, st.clock)
	if changed = changed || slots.Count > 0; changed {
		r.Revision = revision
	}
	if res = r.reserved(slots, bid); !changed {
		*r = before
	}
	return res, changed
}

// noRecord is the answer of a pool without a record.
func noRecord(req *Reserve) Reserved { return Reserved{Retry: wire.Interval(req.Lease, 1)} }

// reserved makes the answer from slots and from the record as the step leaves it.
func (r *Record) reserved(slots reservation, b booking) Reserved {
	is := &r.Permits
	res := Reserved{
		Count: slots.Count, Wait: slots.Wait, Spacing: slots.Step, Issuing: is.Issuing,
		Time: slots.Time, Revision: r.Revision,
	}
	if is.Serial == b.revision {
		res.Last = int64(b.revision)
	}
	if left := r.FrozenUntil - r.Clock; left > 0 {
		res.Frozen, res.FrozenBy = time.Duration(left)*time.Microsecond, r.FrozenBy
	}
	if slots.Count == 0 {
		res.Retry = r.retry(b)
	}
	return res
}

// retry returns how long it takes until a slot is free, as far as the record shows.
func (r *Record) retry(b booking) time.Duration {
	is := &r.Permits
	interval := wire.Interval(r.Lease, len(r.Rows))
	now := nanos(r.Clock)
	if !is.Issuing || b.step == 0 {
		return max(interval, time.Duration(nanos(max(r.FrozenUntil, is.Hold))-now))
	}
	left := upMicros(time.Duration(is.first(now, b.step) - int64(b.window) - now))
	return max(time.Duration(left)*time.Microsecond, time.Millisecond)
}

// leastClaim is the smallest claim that permits are issued on. Spacings in force are then numbers that doubles hold exactly, and none is so
// long that it stands in the way later.
const leastClaim = Whole/3 + 1

// spacingOf is the spacing in force: that of the whole limit over the permits' claim,
// rounded up to whole microseconds unless it has all. 0 with less than leastClaim.
func spacingOf(spacing time.Duration, claim Share) time.Duration {
	switch {
	case claim >= Whole:
		return spacing
	case claim < leastClaim:
		return 0
	}
	// In doubles, in this order, because a store may count in doubles.
	perClaim := float64(float64(spacing)*1e6) / float64(claim)
	return (time.Duration(perClaim) + 1) * time.Microsecond
}

// lastNanos is where logical time in nanoseconds ends, in the year 2147: spans of slots can be
// added to it without an overflow.
const lastNanos = 5_600_000_000_000_000_000

// upMicros is d in microseconds, rounded up.
func upMicros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// nanos turns a logical time in microseconds into one in nanoseconds.
func nanos(us int64) int64 { return min(max(us, 0), lastNanos/1000) * 1000 }
