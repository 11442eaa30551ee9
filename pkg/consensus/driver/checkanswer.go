package driver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// An answer is checked as a whole before any of it is believed. A wrong revision or time would go out with the next request, and freeze the
// pool. One that no request may hold would be refused from then on.

// Check returns an error that wraps [ErrWrongAnswer] for an answer to a Sync that no store following the protocol gives, or nil. A processor
// believes nothing of an answer before this.
func (a *Answer) Check() error {
	if a.Status < Granted || a.Status > Behind {
		return fmt.Errorf("%w: status %d", ErrWrongAnswer, int(a.Status))
	}
	if a.Status != Granted {
		return nil
	}
	if a.Share < 0 || a.Share > Whole {
		return fmt.Errorf("%w: it holds no share from 0 to %d", ErrWrongAnswer, int64(Whole))
	}
	if a.Closed < 0 || a.Closed > Whole {
		return fmt.Errorf("%w: rows that are not live claim %d", ErrWrongAnswer, int64(a.Closed))
	}
	if a.Lease < time.Millisecond || a.Lease > MaxLease {
		return fmt.Errorf("%w: the pool's lease is %s, this release knows leases up to %s", ErrWrongAnswer, a.Lease, MaxLease)
	}
	if err := checkDocuments(a.Documents, true); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	return a.plausible()
}

// plausible refuses an answer to a Sync with a number that no store gives.
func (a *Answer) plausible() error {
	if err := cmp.Or(
		checkStep(a.Time, a.Revision), within("the freeze", a.Frozen, 0, wire.MaxReach), within("the beginning of the pool", a.Epoch, 0, wire.MaxMicros),
		within("the silence before it", a.Silence, 0, wire.MaxReach), within("the store's clock", a.Wall, 0, wire.MaxMicros), checkDrawn(a.Draws),
		checkTagGrants(a.TagSlots),
	); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	if a.Live < 0 || a.PoolSize < 0 || a.PoolSize > maxPoolSize {
		return fmt.Errorf("%w: %d live, pool size %d", ErrWrongAnswer, a.Live, a.PoolSize)
	}
	return checkRoster(a.Roster)
}

// Check returns an error that wraps [ErrWrongAnswer] for an answer to a Reserve of count slots that no store gives, or nil.
func (r *Reserved) Check(count int) error {
	if err := cmp.Or(
		checkStep(r.Time, r.Revision), within("the number of slots", r.Count, 0, count), within("the wait for a slot", r.Wait, 0, wire.MaxReach),
		within("the spacing", r.Spacing, 0, maxStep), within("the time until the next request", r.Retry, 0, wire.MaxReach),
		within("the freeze", r.Frozen, 0, wire.MaxReach), within("the name of a reservation", r.Last, 0, maxRevision),
	); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	return nil
}

// checkStep refuses a time and a revision that no record has, and no request may report.
func checkStep(micros int64, revision uint64) error {
	return cmp.Or(within("the time", micros, 0, wire.MaxMicros), within("the revision", revision, 0, maxRevision))
}

// checkRoster refuses rows that no processor has.
func checkRoster(rows []RosterRow) error {
	for i := range rows {
		r := &rows[i]
		if !wire.IsName(r.ID) || r.Claim < 0 || r.Claim > Whole || r.Demand < 0 || r.Demand > Whole ||
			r.PoolSize < 0 || r.PoolSize > maxPoolSize || len(r.Busy) > wire.MaxBusyBytes {
			return fmt.Errorf("%w: pod %.40q: claim %d, demand %d, pool size %d",
				ErrWrongAnswer, r.ID, int64(r.Claim), int64(r.Demand), r.PoolSize)
		}
		if err := CheckTagClaims(r.TagClaims); err != nil {
			return fmt.Errorf("%w: pod %.40q: %w", ErrWrongAnswer, r.ID, err)
		}
	}
	return nil
}

// CheckLoaded returns an error that wraps [ErrWrongAnswer] for results that no [Store.Load] returns, or nil.
func CheckLoaded(docs []Document, roster []RosterRow) error {
	if err := checkDocuments(docs, false); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	return checkRoster(roster)
}
