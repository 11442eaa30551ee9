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

	// A TagReport is what a limiter tells its pool of one tag.
	TagReport = limit.TagReport

	// A TagGrant is what a pool gives to one tag at a limiter.
	TagGrant = limit.TagGrant
)

// The classes of a Quota.
const (
	Interactive = limit.Interactive
	Batch       = limit.Batch
)

// WithQuotas gives tags quotas inside the limit: see Throttle.ForTag. Without it tags only name things, and all share the limit as
// they come. New returns an error that names every field of q that is out of bounds, and one for
// a limit with Max 0, which has nothing to divide.
//
// With quotas the draws of the Throttle itself are those of no tag: they count for Quotas.Other.
func WithQuotas(q Quotas) Option { return func(o *options) { o.quotas = &q } }

// CheckQuotas returns an error that names every field of q that is out of bounds for the limit, or nil. All that is reserved
// together is at most Rate, which is less than Max per Per for a hard limit. What is wrong with the limit by itself it does not tell.
func (l Limit) CheckQuotas(q Quotas) error {
	if l.Hard {
		return q.ValidateHard(l.Max, l.Per, l.Rate())
	}
	return q.Validate(l.Max, l.Per)
}

// checkQuotas fills in the defaults of the quotas.
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
