package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A reference is a driver.Record that takes every step of a store at the time at which the store took it.
type reference struct {
	rec driver.Record
	at  driver.At // all but Now
	// knowsNew: the first answer tells whether the store knew the pool as new.
	knowsNew bool
}

func newReference(h *Harness) *reference {
	r := &reference{knowsNew: h.KnowsNew, at: driver.At{Deferred: h.Deferred, Longest: h.Longest}}
	if !h.Memory {
		r.at.Identity = "server" // which one makes no difference to answers
	}
	return r
}

// shown is what a store shows of a pool after a step, and the time of the step if the answer tells it.
type shown struct {
	told      int64
	documents []driver.Document
	roster    []driver.RosterRow
}

// A step does one step on a record. It returns an error if the store's answer differs from the record's.
type step func(rec *driver.Record, at driver.At) error

// take takes a step at the first possible time for which answer and pool are those of the store. It returns an error if
// there is none. lastTime is Request.LastTime, 0 for other steps.
func (r *reference) take(do step, after shown, lastTime int64) error {
	var first error
	for _, now := range r.times(after, lastTime) {
		rec, at := clone(&r.rec), r.at
		at.Now = rec.Wall + now - rec.Clock
		err := do(&rec, at)
		if err == nil {
			err = after.differs(&rec)
		}
		if err == nil {
			r.rec = rec
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// times returns the logical times at which the store can have taken a step. A refusal that changes nothing
// leaves no trace of its time, but depends on which rows are gone: the moments at which that changes are enough.
func (r *reference) times(after shown, lastTime int64) []int64 {
	clock := r.rec.Clock
	if after.told > 0 || r.rec.Wall == 0 { // a repeat has the time of the first answer, and happens at any
		return []int64{max(after.told, clock)}
	}
	removal, latest := driver.Removal(r.rec.Lease).Microseconds(), clock+driver.Clamp(r.rec.Lease).Microseconds()
	moments := []int64{lastTime + removal}
	for _, row := range r.rec.Rows {
		moments = append(moments, row.LastSeen+removal+1)
		if row.State != driver.RowLive || row.RowKey == r.rec.Unstamped {
			continue
		}
		for _, shown := range after.roster {
			if now := row.LastSeen + shown.Silent.Microseconds(); shown.ID == row.ID && now > clock {
				return []int64{now}
			}
		}
	}
	moments = slices.DeleteFunc(moments, func(m int64) bool { return m <= clock || m > latest })
	return append([]int64{clock}, moments...)
}

// attended reports whether the roster will show the time of the next step, even if the row with an ID goes.
func (r *reference) attended(id string) bool {
	latest := r.rec.Clock + driver.Clamp(r.rec.Lease).Microseconds()
	return slices.ContainsFunc(r.rec.Rows, func(row driver.Row) bool {
		return row.State == driver.RowLive && row.ID != id && row.RowKey != r.rec.Unstamped &&
			latest-row.LastSeen <= driver.Removal(r.rec.Lease).Microseconds()
	})
}

// differs returns an error if a record shows something else.
func (after shown) differs(rec *driver.Record) error {
	documents, roster, err := rec.Load()
	if err != nil || !sameDocuments(after.documents, documents) || !slices.Equal(after.roster, roster) {
		return fmt.Errorf("what is loaded differs from the reference's\n  store:     %s%+v\n  reference: %s%+v, %w",
			outline(after.documents), after.roster, outline(documents), roster, err)
	}
	return nil
}

// sync is a sync that the store has answered with got. If repeated is set, the request was sent more than once, so that the draws may have
// gone with a lost answer.
func (r *reference) sync(req driver.Request, got driver.Answer, repeated bool) step {
	return func(rec *driver.Record, at driver.At) error {
		if r.knowsNew && got.Frozen == 0 {
			at.Remembers = math.MaxInt64
		}
		epoch := rec.Epoch
		want, _ := rec.Sync(&req, at)
		if want.Epoch != 0 && rec.Epoch != epoch {
			// The reference's time has no gaps: it takes the store's word for how long they were.
			rec.Silence, want.Silence = got.Silence, got.Silence
		}
		if repeated && got.Draws == nil {
			want.Draws = nil
		}
		if !same(want, got) {
			return fmt.Errorf("the store's answer differs from the reference's\n  store:     %+v\n  reference: %+v", got, want)
		}
		return nil
	}
}

// reserve is a reservation.
func reserve(req driver.Reserve, got driver.Reserved) step {
	return func(rec *driver.Record, at driver.At) error {
		if want, _ := rec.Reserve(&req, at); want != got {
			return fmt.Errorf("the store's answer differs from the reference's\n  store:     %+v\n  reference: %+v", got, want)
		}
		return nil
	}
}

// save is the saving of a document.
func save(d driver.DocumentReport, got driver.Version, gotErr error) step {
	return func(rec *driver.Record, at driver.At) error {
		want, _, wantErr := rec.Save(&d, at)
		var conflict, other *driver.ConflictError
		same := want == got && (wantErr == nil) == (gotErr == nil)
		if errors.As(wantErr, &conflict) {
			same = same && errors.As(gotErr, &other) && *conflict == *other
		}
		if !same {
			return fmt.Errorf("the store's outcome differs from the reference's\n  store:     %d, %w\n  reference: %d, %w", got, gotErr, want, wantErr)
		}
		return nil
	}
}

// newest is the newest request on record of the incarnation.
func (r *reference) newest(of driver.Request) driver.Ticket {
	for _, row := range r.rec.Rows {
		if row.ID == of.ID && row.Incarnation == of.Incarnation {
			return driver.Ticket{Seq: row.Seq, Nonce: row.Nonce}
		}
	}
	return driver.Ticket{}
}

// live returns the number of live processors.
func (r *reference) live() int {
	n := 0
	for _, row := range r.rec.Rows {
		if row.State == driver.RowLive {
			n++
		}
	}
	return n
}

func clone(r *driver.Record) driver.Record {
	c := *r
	c.Rows, c.Documents, c.Tills = slices.Clone(r.Rows), slices.Clone(r.Documents), slices.Clone(r.Tills)
	c.Names = r.Names.Clone()
	return c
}

// same compares answers; an empty roster is as good as none.
func same(a, b driver.Answer) bool {
	a.Wall, b.Wall = 0, 0 // the reference has no clock
	if !slices.Equal(a.Roster, b.Roster) || !sameDocuments(a.Documents, b.Documents) {
		return false
	}
	a.Roster, b.Roster, a.Documents, b.Documents = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}
