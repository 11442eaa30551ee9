package driver

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// Permits is the record's state of permits. The zero Permits issue nothing.
//
// Invariant: of any two slots reserved, the later one is at least the spacing apart that was in force when it was reserved. No slot lies
// before the time of its step.
type Permits struct {
	// Issuing says that the pool issues permits and no shares. The permits' claim is then Whole less all claims; when issuing ends, no
	// share grows until the newest slot and its validity are over.
	Issuing bool
	// Spacing is the largest spacing of the whole limit that a request of Sync has named. It counts until the logical time SpacingUntil
	// unless it is named again. Until StrictUntil a strict processor wants nothing but permits. Until SharesUntil there may be one that can
	// use nothing but shares.
	Spacing                                time.Duration
	SpacingUntil, StrictUntil, SharesUntil int64
	// Last is the newest slot reserved, in nanoseconds of logical time. It ended a reservation of Count slots, Step apart, made by the step
	// of revision Serial.
	Last   int64
	Step   time.Duration
	Count  int
	Serial uint64
	// Hold is the logical time before which no slot lies because the store had forgotten something. Held is the FrozenUntil that a
	// reservation worked it out for. Syncs that report slots still reserved make Hold longer.
	Hold, Held int64
	// Pending is the reservation of the last step. Recent are the outcomes of the newest ones, the oldest first. Only Deferred stores have
	// them.
	Pending pendingReservation
	Recent  []reservation
}

// A pendingReservation is a reservation whose time is not known yet.
type pendingReservation struct {
	Count        int
	Step, Window time.Duration
}

// A reservation is the outcome of a reservation by a step.
type reservation struct {
	// Revision is that of the record after the step, Time its logical time in microseconds.
	Revision uint64
	Time     int64
	// Count slots, Step apart, the first of them Wait after Time.
	Count int
	Wait  time.Duration
	Step  time.Duration
}

// maxRecent is how many reservations a Deferred store remembers. More processors than that seldom write before a write is read back.
const maxRecent = 16

// A booking is a reservation to be made: count slots, step apart, none further away than window.
type booking struct {
	revision     uint64
	count        int
	step, window time.Duration
}

// first is the first slot that can be reserved at now, in nanoseconds.
func (is *Permits) first(now int64, step time.Duration) int64 {
	first := max(now, nanos(is.Hold))
	if is.Last > 0 {
		first = max(first, is.Last+int64(step))
	}
	return first
}

// take reserves the slots of a bid at a logical time in microseconds.
func (is *Permits) take(b booking, clock int64) reservation {
	now := nanos(clock)
	slots := reservation{Revision: b.revision, Time: clock, Step: b.step}
	if b.count == 0 {
		return slots
	}
	first := is.first(now, b.step)
	for slots.Count < b.count && first+int64(slots.Count)*int64(b.step) <= now+int64(b.window) {
		slots.Count++
	}
	if slots.Count == 0 {
		return slots
	}
	slots.Wait = time.Duration(first - now)
	is.Last, is.Step = first+int64(slots.Count-1)*int64(b.step), b.step
	is.Count, is.Serial = slots.Count, b.revision
	return slots
}

// giveBack takes slots back from the end of the newest reservation, if it is the one
// that is named. The rest of it has another name from then on, so that a request
// that arrives twice takes nothing from those who reserved in between.
func (is *Permits) giveBack(serial int64, unused int, revision uint64) bool {
	unused = max(unused, 1)
	if serial == 0 || uint64(serial) != is.Serial || unused > is.Count {
		return false
	}
	is.Last = max(is.Last-int64(unused)*int64(is.Step), 0)
	is.Count -= unused
	if is.Serial = revision; is.Count == 0 {
		is.Serial = 0
	}
	return true
}

// settle works out the reservation of the last step, now that its time is known.
func (st *step) settle() {
	is := &st.rec.Permits
	p := is.Pending
	if p == (pendingReservation{}) {
		return
	}
	is.Pending = pendingReservation{}
	slots := is.take(booking{st.rec.Revision, p.Count, p.Step, p.Window}, st.clock)
	recent := is.Recent[max(0, len(is.Recent)-maxRecent+1):]
	is.Recent = append(slices.Clone(recent), slots)
}

// ReadReservation returns the outcome of a step's reservation, for Deferred stores. The revision is that of the answer to the step, r the
// record as read back since, at.Now the time at which it was written. The slots of a step that the record does not remember any more are
// lost: Count is 0. So are those of a record that has gone since. The record is not changed.
func (r *Record) ReadReservation(req *Reserve, revision uint64, at At) Reserved {
	if r.Revision == 0 {
		return noRecord(req)
	}
	now := *r
	st := now.begin(req.Lease, at)
	st.settle()
	now.Clock = st.clock
	if now.FreezeUnstamped {
		now.FrozenUntil = max(now.FrozenUntil, st.clock+st.freezeTime())
	}
	spacing := max(req.Spacing, now.Permits.Spacing)
	b := booking{
		revision: revision, step: spacingOf(spacing, st.permitClaim()),
		window: time.Duration(req.Ahead) * req.Spacing,
	}
	for _, slots := range now.Permits.Recent {
		if slots.Revision == revision {
			return now.reserved(slots, b)
		}
	}
	return now.reserved(reservation{Revision: revision, Time: st.clock}, b)
}

// permitClaim returns the claim of the permits at the step: the share that no processor claims, and nothing while the pool is frozen or
// issues no permits.
func (st *step) permitClaim() Share {
	if !st.rec.Permits.Issuing || st.frozen() {
		return 0
	}
	return max(Whole-st.rec.Claims(), 0)
}

// hold holds slots back after a freeze for a spacing, and as far as slots lie ahead that the store
// has forgotten. It tells whether that is longer than before.
func (st *step) hold(spacing, reach time.Duration) (longer bool) {
	r, is := st.rec, &st.rec.Permits
	if r.FrozenUntil <= 0 || r.FrozenUntil <= st.clock && r.FrozenUntil == is.Held {
		return false
	}
	hold := min(max(is.Hold, r.FrozenUntil+upMicros(spacing)+upMicros(reach)), wire.MaxMicros)
	longer = hold != is.Hold
	is.Hold = hold
	return longer
}

// notePermits records a sync's report on permits, and decides whether the pool issues them. For a strict processor it always does. Else
// issuing begins when the limit earns less than one token per live processor and sync interval, and ends when it earns two for each row.
// Every processor must be able to use permits then. The facts that an absent processor has named count for one removal time. But a spacing
// by the newest version of a document counts at once, in place of a larger one, which others name only until they have loaded it.
func (st *step) notePermits(req *Request) {
	r, is := st.rec, &st.rec.Permits
	switch {
	case req.Spacing == 0 && is.Spacing == 0:
		return
	case req.Spacing == 0:
		st.keep(&is.SharesUntil)
	case req.Spacing > is.Spacing || req.Spacing < is.Spacing && (st.clock >= is.SpacingUntil || req.SpacingBy != "" && st.newest(req, req.SpacingBy)):
		is.Spacing, is.SpacingUntil = req.Spacing, st.clock+st.removal
	case req.Spacing == is.Spacing:
		st.keep(&is.SpacingUntil)
	}
	if req.Strict {
		st.keep(&is.StrictUntil)
	}
	rows, live := len(r.Rows), r.live()
	switch {
	case st.clock < is.StrictUntil:
		is.Issuing = true
	case st.clock < is.SharesUntil:
		is.Issuing = false
	case is.Spacing > wire.Interval(r.Lease, live)/time.Duration(live):
		is.Issuing = true
	case is.Spacing <= (wire.Interval(r.Lease, rows)-1)/time.Duration(2*rows):
		is.Issuing = false
	}
	if is.Issuing || is.Last > 0 {
		st.hold(is.Spacing, req.Reach)
	}
}

// newest tells whether nothing newer is on record of a document than the request reports.
func (st *step) newest(req *Request, document string) bool {
	return st.rec.document(document).Version <= req.reported(document)
}

// reported is the version that the request reports of a document, 0 if none.
func (r *Request) reported(name string) Version {
	for i := range r.Documents {
		if r.Documents[i].Name == name {
			return r.Documents[i].Version
		}
	}
	return 0
}

// live returns the number of live processors.
func (r *Record) live() int {
	n := 0
	for i := range r.Rows {
		if r.Rows[i].State == RowLive {
			n++
		}
	}
	return n
}

// keep makes a fact count for another removal time. Not every step writes it again.
func (st *step) keep(until *int64) {
	if *until < st.clock+st.removal/4*3 {
		*until = st.clock + st.removal
	}
}

// winding tells whether permits are still good though the pool issues none any more.
func (st *step) winding() bool {
	is := &st.rec.Permits
	if is.Last == 0 {
		return false
	}
	return nanos(st.clock) < max(is.Last, nanos(is.Hold))+int64(wire.Validity(is.Step))
}
