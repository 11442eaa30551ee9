package driver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

const (
	maxPoolSize = 1_000_000
	// Far above what any pool reaches, and far enough from where numbers wrap.
	maxRevision = 1<<63 - 1
)

// Validate returns a *RequestError for the first field that no store accepts, or nil.
// Every Store calls it first.
func (r *Request) Validate() error {
	if err := ValidateNames(r.Pool, r.ID, r.Incarnation); err != nil {
		return err
	}
	if r.Seq == 0 || r.LastSeq >= r.Seq {
		return &RequestError{"Seq", fmt.Sprint(r.Seq), "1 or more, above LastSeq"}
	}
	if err := validateTickets(r.Unanswered, r.LastSeq, r.Seq); err != nil {
		return err
	}
	if r.Recalled.Seq > 0 && r.Recalled.Seq >= r.LastSeq {
		return &RequestError{"Recalled", fmt.Sprint("request ", r.Recalled.Seq), "0, or a number below LastSeq"}
	}
	return cmp.Or(
		askedWithin("LastTime", r.LastTime, 0, wire.MaxMicros), askedWithin("Revision", r.Revision, 0, maxRevision),
		validateLease(r.Lease), r.validatePermits(), askedWithin("Outlasts", r.Outlasts, 0, wire.MaxOutlasts),
		r.validateReport(), r.validateDead(), validateDocuments(r.Documents), r.validateDraws(),
		r.validateTagSlots(),
	)
}

func (r *Request) validatePermits() error {
	if r.Spacing != 0 && (r.Spacing < wire.MinSpacing || r.Spacing > wire.MaxSpacing) {
		return &RequestError{"Spacing", r.Spacing.String(), fmt.Sprint("0, or ", wire.MinSpacing, " to ", wire.MaxSpacing)}
	}
	if by := r.SpacingBy; by != "" && (r.Spacing == 0 || r.reported(by) == 0) {
		return &RequestError{"SpacingBy", fmt.Sprintf("%.40q", by), "empty, or with a Spacing the name of a document that is reported with its version"}
	}
	if r.Strict && r.Spacing == 0 {
		return &RequestError{"Strict", "true", "true with a Spacing"}
	}
	return askedWithin("Reach", r.Reach, 0, wire.MaxReach)
}

// Validate returns a *RequestError for the first field that no store accepts, or nil.
func (l *Leave) Validate() error {
	if err := ValidateNames(l.Pool, l.ID, l.Incarnation); err != nil {
		return err
	}
	if l.Seq == 0 || l.LastSeq >= l.Seq {
		return &RequestError{"Seq", fmt.Sprint(l.Seq), "1 or more, above LastSeq"}
	}
	return validateTickets(l.Unanswered, l.LastSeq, l.Seq)
}

func validateLease(lease time.Duration) error {
	if lease < time.Millisecond || lease > MaxLease || lease%time.Millisecond != 0 {
		return &RequestError{"Lease", lease.String(), "whole milliseconds from 1ms to " + MaxLease.String()}
	}
	return nil
}

// validateTickets checks the unanswered requests between the one answered last and
// the present one.
func validateTickets(tickets []Ticket, last, seq uint64) error {
	if len(tickets) > wire.MaxUnanswered {
		return &RequestError{"Unanswered", fmt.Sprint(len(tickets), " requests"), fmt.Sprint("at most ", wire.MaxUnanswered)}
	}
	for _, t := range tickets {
		if t.Seq <= last || t.Seq >= seq {
			return &RequestError{"Unanswered", fmt.Sprint("request ", t.Seq), "rising numbers between LastSeq and Seq"}
		}
		last = t.Seq
	}
	return nil
}

func (t *Report) validateReport() error {
	const whole = int64(Whole)
	if err := cmp.Or(
		askedWithin("InUse", int64(t.InUse), 0, whole), askedWithin("Wanted", int64(t.Wanted), 0, whole),
		askedWithin("Demand", int64(t.Demand), 0, whole), askedWithin("PoolSize", t.PoolSize, 0, maxPoolSize),
	); err != nil {
		return err
	}
	if len(t.Busy) > wire.MaxBusyBytes {
		return &RequestError{"Busy", fmt.Sprint(len(t.Busy), " bytes"), fmt.Sprint("at most ", wire.MaxBusyBytes)}
	}
	return ValidateNote(t.Note)
}

// ValidateNames returns a *RequestError for the first name that no store accepts, or nil.
func ValidateNames(pool, id, incarnation string) error {
	for _, f := range []struct{ name, v string }{{"Pool", pool}, {"ID", id}, {"Incarnation", incarnation}} {
		if !wire.IsName(f.v) {
			return badName(f.name, f.v)
		}
	}
	return nil
}

func badName(field, v string) *RequestError {
	return &RequestError{field, fmt.Sprintf("%.40q", v), fmt.Sprint("1 to ", wire.MaxNameBytes, " bytes without NUL")}
}
