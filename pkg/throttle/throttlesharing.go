package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A rateHolder is a Throttle as its sharer sees it.
type rateHolder struct{ *Throttle }

var _ Holder = rateHolder{}

// Terms implements Holder.
func (t rateHolder) Terms() Terms {
	return Terms{Ceiling: t.limit.CeilingConfig(), Spacing: t.limit.spacing(), Strict: t.limit.Strict, Quotas: t.quotas}
}

// Report implements Holder.
func (t rateHolder) Report(window time.Duration) (r limit.Report) {
	if t.limit.Max == 0 {
		return r
	}
	var worst hold
	some := false
	if window > 0 {
		worst, some = t.worst()
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	r.Usage = t.usageAt(now)
	r.Usage.Served = t.served(now)
	r.Debt = t.debt(now)
	if window > 0 {
		r.Demand = t.demand(now, window)
		r.Waiting = t.queue.Len + t.gate.Waits.Beside()
		if r.Demand == 0 && r.Waiting == 0 && worst.refused == 0 {
			return r
		}
		r.Throttled = t.whyOneWaits(now)
		passed := t.queue.First == nil && !t.queue.Empty()
		if own := (HoldUp{Reason: r.Throttled, Waiting: t.queue.Len}); some && t.tagHolds(own, r.Throttled != "" && !passed, worst) {
			r.Throttled, r.OfTag, r.Tag, r.Hold = worst.reason, true, worst.name, worst.told(now)
		} else if r.Throttled != "" {
			r.Hold = limit.Hold{Callers: t.queue.Len, Owed: t.owedFor(now)}
		} else if r.Waiting > 0 { // they are held back before they draw
			r.Throttled, r.Hold = ReasonPause, limit.Hold{Callers: r.Waiting}
		}
	}
	return r
}

// Lease implements Holder.
func (t rateHolder) Lease(l Lease) { t.setLease(l) }

// SetPauses implements Holder.
func (t rateHolder) SetPauses(list []Paused) { t.gate.SetPauses(list) }

// setLease replaces the share in force. When it returns no draw uses the old share any more.
func (t *Throttle) setLease(l Lease) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.gate.Closed.Load() || t.limit.Max == 0 {
		return
	}
	now := t.gate.Now()
	t.put(now, t.lower(now, l))
}

// demand returns how much this processor would use if it could; see limit.Report. The lock is held.
func (t *Throttle) demand(now int64, window time.Duration) int64 {
	wanted := t.queue.Tokens
	if t.reserver != nil {
		wanted += t.reserver.coming()
	}
	demand := t.usage.Report(bucket.Totals{
		At:      now,
		Used:    float64(t.bucket.Drawn() - t.bucket.Credited() - t.queue.Collected),
		Refused: float64(t.gate.Refused.Load()) * float64(t.bucket.Units(1)),
		Earned:  float64(t.bucket.Law().By(now)),
	}, bucket.Backlog{
		Waiting: float64(wanted) * float64(t.bucket.Units(1)),
		Away:    t.away.Due(now, window),
		Debt:    float64(max(0, -t.bucket.Level(now))),
		ShortAt: t.shortAt.Load(),
	}, window, t.bucket.Whole*t.raised())
	if t.limit.Hard {
		return t.hardDemand(demand)
	}
	return demand
}

// NoteAway says that a caller who was refused n tokens asks for them again after a time, here or at another processor of the pool. As that
// time comes it is demand if nobody else asks: without it a share would shrink while all work is away. Otherwise demand is the arrivals of
// the last ten seconds (with the default lease), which show who gets the callers that were away. It never blocks.
func (t *Throttle) NoteAway(n int, after time.Duration) {
	if n <= 0 || t.limit.Max == 0 {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.away == nil {
		t.away = &bucket.Away{}
	}
	now := t.gate.Now()
	t.away.Note(now, now+int64(min(max(after, 0), bucket.MostAway)), float64(t.bucket.Units(min(n, t.limit.maxCost()))))
}

// usageAt returns the totals without the reported outcomes. The lock is held.
func (t *Throttle) usageAt(now int64) limit.Usage {
	drawn := t.bucket.Drawn() - t.queue.Collected
	return limit.Usage{
		Paused: t.gate.Paused(now),
		Used:   t.bucket.Tokens(drawn - t.bucket.Credited()), Offered: t.bucket.Tokens(t.bucket.Law().By(now)),
		Granted: drawn >> t.bucket.Shift, Refused: t.gate.Refused.Load(),
		// Callers that wait for the end of a pause say nothing about the use of the limit.
		Waiting: !t.queue.Empty() && !t.gate.Paused(now), Empty: t.bucket.Level(now) < t.bucket.Units(1) && !t.gate.Paused(now),
	}
}

// raised returns the ratio of the limit in force to the configured one. The lock is held.
func (t *Throttle) raised() float64 {
	if t.bucket.Law().Lease.Ceiling <= 0 {
		return 1
	}
	return t.bucket.Law().Lease.Ceiling / float64(t.limit.Max)
}

// owedFor is debt as operators see it; 0: not known. The lock is held.
func (t *Throttle) owedFor(now int64) time.Duration {
	if owed := t.debt(now); owed < never {
		return owed
	}
	return 0
}

// debt returns how long the share in force takes to earn the tokens owed. The lock is held.
func (t *Throttle) debt(now int64) time.Duration {
	if t.issuing() {
		return 0
	}
	wait, ok := t.bucket.Law().Wait(-t.bucket.Level(now))
	if !ok || wait > 0 && !t.bucket.Law().Valid(now) {
		return never
	}
	return wait
}
