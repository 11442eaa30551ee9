package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
)

// Demand tells the sharer what this processor would use if it could; see Holder.
func (t *Throttle) Demand(window time.Duration) int64 {
	if t.limit.Max == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	demand := t.usage.Report(bucket.Totals{
		At:      now,
		Used:    float64(t.bucket.Drawn() - t.bucket.Credited() - t.queue.Collected),
		Refused: float64(t.refused.Load()) * float64(t.bucket.Units(1)),
		Earned:  float64(t.bucket.Law().By(now)),
	}, bucket.Backlog{
		Waiting: float64(t.queue.Tokens) * float64(t.bucket.Units(1)),
		Debt:    float64(max(0, -t.bucket.Level(now))),
		ShortAt: t.shortAt.Load(),
	}, window, t.bucket.Whole*t.raised())
	if t.limit.Hard {
		return t.hardDemand(demand)
	}
	return demand
}
