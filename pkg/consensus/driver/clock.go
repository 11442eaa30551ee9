package driver

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A step is one step on a record: the logical clock as it will stand, worked out before anything is changed.
type step struct {
	rec     *Record
	at      At
	clock   int64 // logical time of the step, in microseconds
	removal int64 // removal time of the pool, in microseconds
	longest time.Duration
}

// begin works out the logical time of a step. The logical clock follows the store's own, but never runs backwards. A gap beyond the clamp
// counts as no time at all: it cannot be told from a clock that was set. A clock that is set by less takes at most one clamp from a lease.
func (r *Record) begin(lease time.Duration, at At) *step {
	if len(r.Rows) > 0 || lease == 0 {
		lease = r.Lease
	}
	st := &step{rec: r, at: at, clock: r.Clock, removal: micros(wire.Removal(lease)), longest: at.Longest}
	if st.longest == 0 {
		st.longest = MaxLease
	}
	if r.Wall == 0 {
		st.clock = max(r.Clock, at.Now) // the first time known
		return st
	}
	if d := max(at.Now-r.Wall, 0); d <= micros(wire.Clamp(lease)) {
		st.clock += d
	}
	return st
}

// lastSeen returns the time of the row's newest request. The row of the last step is stamped by this one if the last one did not know its
// own time.
func (st *step) lastSeen(row *Row) int64 {
	if row.RowKey == st.rec.Unstamped {
		return st.clock
	}
	return row.LastSeen
}

// gone tells whether the row has been silent for longer than the removal time.
func (st *step) gone(row *Row) bool {
	return st.clock-st.lastSeen(row) > st.removal
}

// frozen tells whether shares must not grow. A freeze that the last step began
// without knowing the time has not even started before this one.
func (st *step) frozen() bool {
	return st.rec.FreezeUnstamped || st.rec.FrozenUntil > st.clock
}

// commit moves the record on to the time of the step. It stamps the rest of the last step, removes the silent rows, and freezes if the
// store has forgotten something. A leave has a nil req: it grants nothing and needs no freeze.
func (st *step) commit(req *Request, lostRow bool) {
	r := st.rec
	r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { return st.gone(&row) })
	st.stampLast()
	r.Clock, r.Wall = st.clock, st.at.Now
	if req == nil {
		return
	}
	st.remember(req.Revision, req.Outlasts, lostRow)
	if !slices.ContainsFunc(r.Rows, func(row Row) bool { return row.State == RowLive || row.claims() }) {
		r.Lease = req.Lease // nobody rests on the old one
	}
}

// stampLast stamps the entries that the last step left without a time.
func (st *step) stampLast() {
	r := st.rec
	if r.Unstamped != (RowKey{}) {
		if i, ok := r.find(r.Unstamped); ok {
			r.Rows[i].LastSeen = st.clock
		}
		r.Unstamped = RowKey{}
	}
	if r.FreezeUnstamped {
		r.FreezeUnstamped = false
		until := max(r.FrozenUntil, st.clock+st.freezeTime())
		if is := &r.Permits; is.Held == r.FrozenUntil {
			is.Hold += until - r.FrozenUntil // held for the freeze as it looked then
			is.Held = until
		}
		r.FrozenUntil = until
	}
	if r.EpochUnstamped {
		st.beginEpoch(st.silence())
	}
	st.settle()
}

// remember freezes if the store has forgotten something, and reports whether it has. seen is the newest revision that the sender has seen,
// outlasts is as in Request.
func (st *step) remember(seen uint64, outlasts time.Duration, lostRow bool) (forgot bool) {
	r := st.rec
	forgot = true
	switch {
	case r.Revision == 0 && !st.knownNew(outlasts):
		st.freeze(FreezeNewRecord)
	case r.Revision != 0 && r.Store != st.at.Identity:
		st.freeze(FreezeIdentity)
	case r.Revision < seen:
		st.freeze(FreezeRollback)
	case lostRow && st.frozen():
		st.freeze(r.FrozenBy) // which may have been noticed first by another sign
	case lostRow:
		st.freeze(FreezeLostRow)
	default:
		forgot = false
		if !st.frozen() {
			r.FrozenBy = FreezeNone
		}
	}
	r.Store = st.at.Identity
	r.Revision = max(r.Revision, seen)
	return forgot
}

// knownNew tells whether no share can be in use of a pool that is not on record.
func (st *step) knownNew(outlasts time.Duration) bool {
	return st.at.Remembers >= wire.Removal(st.longest)+outlasts
}

// freeze stops the growth of shares for one removal time of the longest lease
// there is: what the store has forgotten may be in use until then. It never
// shortens a freeze. A memory store loses nothing that its processors keep.
func (st *step) freeze(cause FreezeCause) {
	r := st.rec
	if st.at.Identity == "" {
		return
	}
	if !st.frozen() {
		r.FrozenSince = st.clock
	}
	r.FrozenBy = cause
	r.FrozenUntil = max(r.FrozenUntil, st.clock+st.freezeTime())
	r.FreezeUnstamped = st.at.Deferred
}

func (st *step) freezeTime() int64 {
	return micros(wire.Removal(st.longest))
}

// stamp sets the time of the row's last request to that of the step.
func (st *step) stamp(row *Row) {
	row.LastSeen = st.clock
	if st.at.Deferred {
		st.rec.Unstamped = row.RowKey
	}
}

func micros(d time.Duration) int64 { return d.Microseconds() }
