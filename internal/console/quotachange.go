package console

import (
	"context"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An askedQuota is a requested change of a tag's quota. Nil or empty fields stay as they are.
type askedQuota struct {
	Reserved, Total, Burst, Weight *int
	Class                          string
	// NoTotal removes the total. A Total of 0 blocks the tag.
	NoTotal bool
	// Force allows reserving more than the limit.
	Force bool
}

// over returns q with the requested changes. per is the period; 0: unchanged.
func (a *askedQuota) over(q throttle.Quota, per time.Duration) throttle.Quota {
	for _, f := range []struct {
		to   *int
		from *int
	}{{&q.Reserved, a.Reserved}, {&q.Burst, a.Burst}, {&q.Weight, a.Weight}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if a.Total != nil || a.NoTotal {
		q.Total = 0
		if a.Total != nil {
			q.Total = *a.Total
		}
		q.Blocked = a.Total != nil && q.Total == 0
	}
	if a.Class != "" {
		q.Class = limit.Class(a.Class)
	}
	if per != 0 {
		q.Per = per
	}
	return q
}

// quota changes the quota of a tag. The other fields keep their values, and so does the end, unless the request has a new one.
func (k *Console) quota(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, true, func(ctx context.Context, p *operate.Pool, a *asked) error {
		before, err := p.Quota(ctx, a.Tag)
		if err != nil {
			return err
		}
		if !before.Changed && !before.Known { // the page shows no such quota
			before.Quota = throttle.Quota{}
		}
		o := protocol.QuotaOrder{Until: before.Order.Until, By: s.by, Reason: a.Reason}
		if a.Seconds != 0 {
			o.Until = a.until(time.Now())
		}
		return p.SetQuotaFor(ctx, a.Tag, a.over(before.Quota, seconds(a.PerSeconds)), o, a.Force)
	})
}

// clearQuota ends the change of a tag's quota. No document says who did it and why, so an event does.
func (k *Console) clearQuota(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, true, func(ctx context.Context, p *operate.Pool, a *asked) error {
		if err := p.ClearQuota(ctx, a.Tag); err != nil {
			return err
		}
		var r tagRow
		r.named(a.Tag, "")
		k.hub.note(a.Pool, event{time.Now().UnixMilli(), "quota", s.by + " clears the quota of " + r.text() + ": " + a.Reason})
		return nil
	})
}
