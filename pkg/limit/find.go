package limit

import (
	"maps"
	"path"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// Find returns the quota that applies to a tag, and the name under which it counts. The tag's own quota comes first, then a copy of the
// first matching pattern's quota, under the tag's name. For all other tags, for no tag, and for an invalid name, it returns Other under the
// name "". A valid name is 1 to 64 bytes of UTF-8 without control characters.
func (q Quotas) Find(tag string) (name string, quota Quota) {
	if own, ok := q.Tags[tag]; ok && tag != "" {
		return tag, own
	}
	if tagname.Valid(tag) {
		for _, p := range q.Match {
			if ok, err := path.Match(p.Tag, tag); ok && err == nil {
				return tag, p.Quota
			}
		}
	}
	return "", q.Other
}

// None reports whether q has no quotas at all; then nothing is counted by tags.
func (q Quotas) None() bool { return len(q.Tags) == 0 && len(q.Match) == 0 && q.Other.isZero() }

// Given reports whether quotas were given. Tags that are empty but not nil also count: then any tag can get a quota while the pool runs.
func (q Quotas) Given() bool { return q.Tags != nil || !q.None() }

func (q Quota) isZero() bool {
	return q.Reserved == 0 && q.Total == 0 && !q.Blocked && q.Burst == 0 && q.Per == 0 && q.Weight == 0 && q.Class == "" &&
		len(q.Budgets) == 0 && !q.Hard && !q.Shadow
}

// defaultPer is the default period of a limit.
const defaultPer = time.Second

// WithDefaults returns q with the defaults of every quota filled in. per is the period of the limit; 0 means a second. It does not modify q
// and keeps fields that are out of bounds.
func (q Quotas) WithDefaults(per time.Duration) Quotas {
	q.Tags, q.Match = maps.Clone(q.Tags), slices.Clone(q.Match)
	for name, quota := range q.Tags {
		q.Tags[name] = quota.WithDefaults(per)
	}
	for i := range q.Match {
		q.Match[i].Quota = q.Match[i].WithDefaults(per)
	}
	q.Other = q.Other.WithDefaults(per)
	return q
}

// WithDefaults returns q with its defaults filled in. per is the period of the limit; 0 means a second.
func (q Quota) WithDefaults(per time.Duration) Quota {
	if q.Per == 0 {
		q.Per = per
	}
	if q.Per == 0 {
		q.Per = defaultPer
	}
	if q.Weight == 0 {
		q.Weight = 1
	}
	if q.Class == "" {
		q.Class = ClassInteractive
	}
	if q.Burst == 0 && q.Total > 0 && q.Total <= bounds.MaxTokens && q.Per > 0 {
		// At most 1e9 and 1e8, so the product fits.
		q.Burst = max(1, int(int64(q.Total)*int64(100*time.Millisecond)/int64(q.Per)))
	}
	q.Budgets = slices.Clone(q.Budgets)
	for i := range q.Budgets {
		b := &q.Budgets[i]
		if b.Zone == "" {
			b.Zone = "UTC"
		}
		if b.Then == "" {
			b.Then = ThenRefuse
		}
	}
	return q
}
