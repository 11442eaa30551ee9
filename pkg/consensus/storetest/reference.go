package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A reference follows a store with a driver.Record of its own. The package
// documentation says how it knows the time.
type reference struct {
	rec driver.Record
	at  driver.At // all but Now
	// knowsNew: the first answer tells whether the store knew the pool as new.
	knowsNew bool
	// leaves counts the steps since the last answer that told the time which took
	// some without telling: leaves, and refusals that change the record.
	leaves int64
	// doubt says that the last refusal may have begun a freeze, later than on
	// record by as much as the next answer is later than the last.
	doubt bool
	// retried says that the request was sent more than once: what the answer to the first would have given is lost.
	retried bool
	// left is the latest time at which an incarnation can have left. On record is the
	// earliest: how long its tombstone stays is not known to the microsecond.
	left map[driver.RowKey]int64
}

func newReference(h *Harness) *reference {
	r := &reference{
		knowsNew: h.KnowsNew, at: driver.At{Deferred: h.Deferred, Longest: h.Longest},
		left: map[driver.RowKey]int64{},
	}
	if !h.Memory {
		r.at.Identity = "server" // which one makes no difference to answers
	}
	return r
}

// sync does the step that the store has answered with got. It returns an error
// if no time at which the store can have done it leads to the same answer.
func (r *reference) sync(req driver.Request, got driver.Answer) error {
	if got.Status == driver.Granted {
		r.settleDoubt(got.Time, got.Frozen)
	}
	times, err := r.times(&req, &got)
	if err != nil {
		return err
	}
	at := r.at
	if r.knowsNew && got.Frozen == 0 {
		at.Remembers = math.MaxInt64
	}
	var trials []trial
	for _, now := range times {
		trials = append(trials, r.tombstones(r.advance(now), now, now)...)
	}
	var first driver.Answer
	for i, t := range trials {
		rec := t.rec
		at.Now = t.now - rec.Clock + rec.Wall
		want, changed := rec.Sync(&req, at)
		if want.Epoch != 0 && rec.Epoch != r.rec.Epoch {
			// The reference's time has no gaps: it takes the store's word for how long they were.
			rec.Silence, want.Silence = got.Silence, got.Silence
		}
		if r.retried && got.Draws == nil {
			want.Draws = nil
		}
		if same(want, got) {
			r.rec = rec
			if got.Status == driver.Granted && got.Time == rec.Clock {
				r.leaves = 0
			} else if got.Status != driver.Granted && changed {
				r.leaves++
				r.doubt = true
			}
			return nil
		}
		if i == 0 {
			first = want
		}
	}
	return fmt.Errorf("the store's answer differs from the reference's\n  store:     %+v\n  reference: %+v", got, first)
}

// settleDoubt learns from an answer when a freeze that may have begun with a refusal did.
func (r *reference) settleDoubt(now int64, frozen time.Duration) {
	if !r.doubt {
		return
	}
	r.doubt = false
	until := now + frozen.Microseconds()
	if late := until - r.rec.FrozenUntil; late > 0 && late <= now-r.rec.Clock {
		if r.rec.FrozenSince == r.rec.Clock {
			r.rec.FrozenSince += late
		}
		r.rec.FrozenUntil = until
	}
}

// times returns the logical times at which the store can have done a step, the first
// to try first.
func (r *reference) times(req *driver.Request, got *driver.Answer) ([]int64, error) {
	from := r.rec.Clock
	if r.rec.Wall == 0 {
		return []int64{got.Time}, nil // the first time there is, or none yet
	}
	to := from + (1+r.leaves)*driver.Clamp(r.rec.Lease).Microseconds()
	if got.Status == driver.Granted {
		if got.Time > to {
			return nil, fmt.Errorf("the pool's clock leapt by %d us, allowed are %d\n  store: %+v", got.Time-from, to-from, *got)
		}
		// A repeat has the time of the first answer, and happens at any.
		return []int64{max(got.Time, from), from}, nil
	}
	// A refusal does not tell when it was. It depends on which rows are gone, so
	// that it is enough to look at the moments at which that changes. The first that
	// fits is not after the step: a later one would leave the reference ahead of the store.
	times := []int64{from, to}
	removal := driver.Removal(r.rec.Lease).Microseconds()
	moments := []int64{req.LastTime}
	for _, row := range r.rec.Rows {
		moments = append(moments, row.LastSeen)
	}
	for _, m := range moments {
		for _, t := range []int64{m + removal, m + removal + 1} {
			if t > from && t < to {
				times = append(times, t)
			}
		}
	}
	slices.Sort(times)
	return times, nil
}

// advance returns a copy of the record on which a step at logical time now is
// within the clamp: what leaves have added to the clock is made up for.
func (r *reference) advance(now int64) driver.Record {
	rec := clone(&r.rec)
	if beyond := now - rec.Clock - driver.Clamp(rec.Lease).Microseconds(); r.leaves > 0 && beyond > 0 {
		rec.Clock += beyond
		rec.Wall += beyond
	}
	return rec
}

// A trial is a record on which a step at a logical time is tried.
type trial struct {
	rec driver.Record
	now int64
}

// tombstones returns the record at now with each choice of tombstones that the store can have:
// of those that may be gone, the oldest are. None is there any more that must be gone at sure.
// The first has all of them, for what is dropped once is not had again; one that was there at
// now, as far as the answers tell, is in doubt still.
func (r *reference) tombstones(rec driver.Record, now, sure int64) []trial {
	removal := driver.Removal(rec.Lease).Microseconds()
	var doubtful []driver.Row
	for _, row := range rec.Rows {
		if row.State == driver.RowLeft && now-row.LastSeen >= removal && sure-r.left[row.RowKey] <= removal {
			doubtful = append(doubtful, row)
		}
	}
	slices.SortStableFunc(doubtful, func(a, b driver.Row) int { return cmp.Compare(r.left[a.RowKey], r.left[b.RowKey]) })
	var trials []trial
	for gone := range len(doubtful) + 1 {
		t := clone(&rec)
		for i, row := range doubtful {
			k := slices.IndexFunc(t.Rows, func(w driver.Row) bool { return w.RowKey == row.RowKey })
			if t.Rows[k].LastSeen = now - removal; i < gone {
				t.Rows = slices.Delete(t.Rows, k, k+1)
			}
		}
		trials = append(trials, trial{t, now})
	}
	return trials
}

// reserve does a reservation, whose answer tells its time.
func (r *reference) reserve(req driver.Reserve, got driver.Reserved) error {
	r.settleDoubt(got.Time, got.Frozen)
	if most := r.rec.Clock + (1+r.leaves)*driver.Clamp(r.rec.Lease).Microseconds(); got.Time > most {
		return fmt.Errorf("the pool's clock leapt to %d, allowed is %d: %+v", got.Time, most, got)
	}
	var first driver.Reserved
	// No reservation drops a tombstone; how many there are is told by when to ask again.
	for i, t := range r.tombstones(r.advance(got.Time), got.Time, 0) {
		rec, at := t.rec, r.at
		at.Now = got.Time - rec.Clock + rec.Wall
		want, changed := rec.Reserve(&req, at)
		if i == 0 {
			first = want
		}
		if want == got {
			if changed {
				r.rec, r.leaves = rec, 0
			}
			return nil
		}
	}
	return fmt.Errorf("the store's answer differs from the reference's\n  store:     %+v\n  reference: %+v", got, first)
}

// leave does a leave, which has no answer: as far as the reference knows, it
// takes no time. It tells whether anything has changed.
func (r *reference) leave(l driver.Leave) (changed bool) {
	at := r.at
	at.Now = r.rec.Wall
	if changed = r.rec.Leave(&l, at); changed {
		r.leaves++
	}
	return changed
}

// expires tells whether the row is live, and may be removed before the time of the next step.
func (r *reference) expires(key driver.RowKey) bool {
	for _, row := range r.rec.Rows {
		if row.RowKey == key && row.State == driver.RowLive {
			next := r.rec.Clock + (1+r.leaves)*driver.Clamp(r.rec.Lease).Microseconds()
			return next-row.LastSeen > driver.Removal(r.rec.Lease).Microseconds()
		}
	}
	return false
}

// save compares what the store has made of a saved document with what the reference
// makes of it.
func (r *reference) save(d driver.DocumentReport, got driver.Version, gotErr error) error {
	at := r.at
	at.Now = r.rec.Wall
	want, changed, wantErr := r.rec.Save(&d, at)
	if changed && at.Deferred { // a step that takes time, as a leave does
		r.leaves++
	}
	same := want == got && (wantErr == nil) == (gotErr == nil)
	var conflict, other *driver.ConflictError
	if errors.As(wantErr, &conflict) {
		same = same && errors.As(gotErr, &other) && *conflict == *other
	}
	if !same {
		return fmt.Errorf("the store's outcome differs from the reference's\n  store:     %d, %w\n  reference: %d, %w", got, gotErr, want, wantErr)
	}
	return nil
}

// load compares what the store shows to operators.
func (r *reference) load(docs []driver.Document, roster []driver.RosterRow) error {
	wantDocs, wantRoster, err := r.rec.Load()
	for i := range wantRoster {
		wantRoster[i].Silent = 0 // the reference does not always know the clock
	}
	roster = slices.Clone(roster)
	for i := range roster {
		roster[i].Silent = 0
	}
	if err != nil || !sameDocuments(docs, wantDocs) || !slices.Equal(roster, wantRoster) {
		return fmt.Errorf("what is loaded differs from the reference's\n  store:     %s%+v\n  reference: %s%+v, %w",
			outline(docs), roster, outline(wantDocs), wantRoster, err)
	}
	return nil
}

// timeless tells whether the request may be refused, and yet take time, at a moment at which the next step can be: a row that
// is about to go makes the difference.
func (r *reference) timeless(req driver.Request) bool {
	times, err := r.times(&req, &driver.Answer{Status: driver.Late})
	if err != nil {
		return false // the step itself tells why
	}
	for _, now := range times {
		rec, at := r.advance(now), r.at
		at.Now = now - rec.Clock + rec.Wall
		if ans, changed := rec.Sync(&req, at); ans.Status != driver.Granted && changed {
			return true
		}
	}
	return false
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
