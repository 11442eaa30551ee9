package throttle

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Package limit defines quotas, with the unit, range and default of each field; here are their names for most users.
type (
	// A Quota is what one tag may use of a limit.
	Quota = limit.Quota

	// Quotas are the quotas of a whole limit: by name, by pattern, and for all other tags.
	Quotas = limit.Quotas

	// A QuotaPattern gives a quota to each tag whose name matches.
	QuotaPattern = limit.QuotaPattern

	// A Budget is an amount of tokens for each calendar hour, day or month.
	Budget = limit.Budget

	// A TagReport is a limiter's report on one tag to its pool.
	TagReport = limit.TagReport

	// A TagGrant is a pool's grant to one tag at a limiter.
	TagGrant = limit.TagGrant
)

// The classes of a Quota.
const (
	Interactive = limit.Interactive
	Batch       = limit.Batch
)

// WithQuotas gives tags quotas inside the limit: see Throttle.ForTag. Without it tags are only names, and all share the limit as they come.
// New returns an error that names every field of q out of bounds. Max 0 is an error too: there is nothing to divide.
//
// With quotas the draws of the Throttle itself have no tag: they count for Quotas.Other.
func WithQuotas(q Quotas) Option { return func(o *options) { o.quotas = &q } }

// CheckQuotas returns an error that names every field of q that is out of bounds for the limit, or nil. All that is reserved together is at
// most Rate, which is less than Max per Per for a hard limit. It does not check the limit by itself.
func (l Limit) CheckQuotas(q Quotas) error {
	if l.Hard {
		return q.ValidateHard(l.Max, l.Per, l.Rate())
	}
	return q.Validate(l.Max, l.Per)
}

// checkQuotas checks the quotas and fills in their defaults.
func (t *Throttle) checkQuotas() error {
	if t.quotas == nil {
		return nil
	}
	if t.limit.Max == 0 {
		return fmt.Errorf("throttle: quotas are given with max 0, allowed: with a limit")
	}
	if err := t.limit.CheckQuotas(*t.quotas); err != nil {
		return err
	}
	q := t.quotas.WithDefaults(t.limit.Per)
	t.quotas = &q
	return nil
}
