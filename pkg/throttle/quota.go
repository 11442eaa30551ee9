package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/quota"
)

// The words of quotas stand in internal/quota. These are their names for users.
type (
	// A Quota is what one tag may use of a limit.
	Quota = quota.Quota

	// Quotas are the quotas of a whole limit: by name, by pattern, and for all other tags.
	Quotas = quota.Quotas

	// A QuotaPattern gives a quota to each tag of which the name matches.
	QuotaPattern = quota.Pattern

	// A Budget is an amount of tokens for each calendar hour, day or month.
	Budget = quota.Budget

	// A TagReport is what a limiter tells its pool of one tag.
	TagReport = limit.TagReport

	// A TagGrant is what a pool gives to one tag at a limiter.
	TagGrant = limit.TagGrant
)

// The classes of a Quota.
const (
	Interactive = quota.Interactive
	Batch       = quota.Batch
)

// WithQuotas gives tags quotas inside the limit. Without it tags only name things, and all share the limit as
// they come. New returns an error that names every field of q that is out of bounds.
func WithQuotas(q Quotas) Option { return func(o *options) { o.quotas = &q } }

// ReportTags implements Holder.
func (rateHolder) ReportTags(time.Duration) []TagReport { return nil }

// GrantTags implements Holder.
func (rateHolder) GrantTags([]TagGrant) {}
