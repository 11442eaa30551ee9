package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// SaveQuota makes q the quota of one tag of a pool, in place of the configured one; nil restores that, and ends all changes if this release
// cannot read them. The tag "" is all other tags together. Every processor uses the quota from its next sync on, without a restart.
// The pool must have a record: a processor has been in
// it. SaveQuota blocks until the store has answered; ctx bounds it.
//
// All tags together must not reserve more than the limit of a live processor grants in the long run, or than it allows calls in flight, unless
// force is set. Then everything
// reserved is scaled down. A configured tag counts twice from its first change until processors have synced, because they report only the
// sum of the unchanged configured quotas. After a change ends, the configured quota counts from their next sync on.
//
// Errors: *RequestError for an invalid quota or name, too much reserved, more changes than a document holds, and when no live processor has
// quotas; one that wraps ErrNoPool; *ConflictError when others keep changing them at the same time; those of the store; and one for a
// document that this release cannot read.
func SaveQuota(ctx context.Context, s driver.Store, pool, tag string, q *limit.Quota, force bool) error {
	return SaveQuotaFor(ctx, s, pool, tag, q, QuotaOrder{}, force)
}

// SaveQuotaFor is SaveQuota with an end, an author and a reason. After its end, the next sync of a processor ends the change. When the
// document is full, authors and reasons of changes without an end give way. A *RequestError is also for an order out of bounds.
func SaveQuotaFor(ctx context.Context, s driver.Store, pool, tag string, q *limit.Quota, o QuotaOrder, force bool) error {
	if tag != "" && !tagname.Valid(tag) {
		return &driver.RequestError{
			Field: "Tag", Value: fmt.Sprintf("%.40q", tag), Allowed: fmt.Sprint("1 to ", tagname.MaxLen, " bytes of text; empty for all other tags"),
		}
	}
	o, err := o.lasting(time.Now())
	if err != nil {
		return err
	}
	_, err = quotaDoc.Change(ctx, s, pool, func(r pooldoc.Recorded[QuotaChanges]) (QuotaChanges, bool, error) {
		switch {
		case r.Err != nil && q == nil:
			return QuotaChanges{}, true, nil
		case r.Err != nil: // it may change something unknown to this release
			return r.Value, false, unreadableQuotas(r.Err)
		}
		next := r.Value.with(tag, q, o)
		if q == nil {
			return next, len(next.Tags) < len(r.Value.Tags) || next.Other != r.Value.Other, nil
		}
		if err := next.validate(limit.Quotas{}, 0, 0); err != nil {
			return next, false, outOfBounds(err)
		}
		return next, true, fitsQuota(r.Roster, &r.Value, &next, tag, force)
	})
	return saving(err, "consensus: saving a quota of pool %q: %w", pool)
}

// unreadableQuotas adds the remedy to the error of changes that this release cannot read.
func unreadableQuotas(err error) error {
	return fmt.Errorf("%w; numathrottle quota clear --all ends all changes", err)
}

// ClearQuotas ends all changes of the quotas of a pool, even those that this release cannot read. Errors are those of SaveQuota.
func ClearQuotas(ctx context.Context, s driver.Store, pool string) error {
	_, err := quotaDoc.Change(ctx, s, pool, func(r pooldoc.Recorded[QuotaChanges]) (QuotaChanges, bool, error) {
		changed := r.Err != nil || r.Value.Len() > 0
		return QuotaChanges{}, changed, nil //nolint:nilerr // what cannot be read ends, too
	})
	return saving(err, "consensus: ending the changes of quotas of pool %q: %w", pool)
}

// outOfBounds returns the error of a quota as a fault of the request. For a single problem it states the allowed value once.
func outOfBounds(err error) *driver.RequestError {
	joined, ok := err.(interface{ Unwrap() []error })
	if ok && len(joined.Unwrap()) == 1 {
		err = joined.Unwrap()[0]
	}
	if f := (*limit.FieldError)(nil); errors.As(err, &f) && err.Error() == f.Error() && f.Allowed != "" {
		if value, ok := strings.CutPrefix(f.Problem, "is "); ok {
			return &driver.RequestError{Field: f.Field, Value: value, Allowed: f.Allowed}
		}
	}
	return &driver.RequestError{Field: "Quota", Value: err.Error(), Allowed: "a quota within its bounds"}
}

// fitsQuota refuses a quota that no live processor would use, and one that reserves more than there is. Processors report the sum of the
// unchanged configured quotas, which a change of another tag does not affect. The document has the changed ones.
func fitsQuota(roster []driver.RosterRow, before, next *QuotaChanges, tag string, force bool) error {
	obeyed := len(roster) == 0
	for i := range roster {
		busy, ok := unpackBusy(roster[i].Busy)
		if !ok {
			continue
		}
		obeyed = true
		n := NoteIn(roster[i].Note)
		if n.standing.Slots > 0 {
			if err := fitsSlots(tag, next.Of(tag)); err != nil {
				return err
			}
			n.limit = ceiling.Rate{Max: int64(n.standing.Slots), Per: slotPer}
		}
		if n.limit.Max == 0 || force {
			continue
		}
		most, per, what := perSecond(n.limit.Max, n.limit.Per), n.limit.Per, "the limit"
		if granted := standingOf(roster[i].Note).Granted; n.hard && granted > 0 {
			most, what = most*granted, "what the hard limit grants in the long run,"
		}
		reserved := busy.unchanged + next.reserves(per)
		if reserved > most*(1+0x1p-10) { // as exact as reported
			text := "%.6g tokens per second by all tags together"
			if n.standing.Slots > 0 {
				text = "%.6g calls in flight by all tags together"
			}
			if before.Of(tag) == nil {
				text += ", what is configured for this one included"
			}
			return &driver.RequestError{
				Field: "Reserved", Value: fmt.Sprintf(text, reserved),
				Allowed: fmt.Sprintf("at most %.6g, %s of pod %q, unless it is forced", most, what, roster[i].ID),
			}
		}
	}
	if !obeyed {
		return &driver.RequestError{Field: "Quota", Value: fmt.Sprintf("for tag %q", tag), Allowed: "none, for no live pod has quotas"}
	}
	return nil
}

// fitsSlots refuses a quota of calls in flight with what only one of tokens has.
func fitsSlots(tag string, q *limit.Quota) error {
	all := limit.Quotas{Tags: map[string]limit.Quota{tag: *q}}
	if tag == "" {
		all = limit.Quotas{Other: *q}
	}
	if err := all.ValidateSlots(maxNoteTokens); err != nil {
		return outOfBounds(err)
	}
	return nil
}

// reserves returns the sum that the changes reserve, in tokens per second.
func (c QuotaChanges) reserves(per time.Duration) float64 {
	return c.over(limit.Quotas{}, per).ReservedRate(per)
}

// LoadQuotas returns the changes of the quotas of a pool. Errors: one that wraps ErrNoPool, those of the store, and one for a document that
// this release cannot read.
func LoadQuotas(ctx context.Context, s driver.Store, pool string) (QuotaChanges, error) {
	docs, _, err := pooldoc.Load(ctx, s, pool)
	if err != nil {
		return QuotaChanges{}, fmt.Errorf("consensus: loading pool %q: %w", pool, err)
	}
	return quotaChangesIn(docs)
}

// quotaChangesIn returns the changes of quotas in documents.
func quotaChangesIn(docs []driver.Document) (QuotaChanges, error) {
	doc := quotaDoc.In(docs)
	c, err := quotaDoc.Read(doc)
	if err != nil {
		return QuotaChanges{}, unreadableQuotas(err)
	}
	c.Version = doc.Version
	return c, nil
}
