package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// activity describes the limit itself, in the form of Holder.Report. It says why callers would have to wait only if some ask, or with
// anyway. passed: all waiting callers are passed by others.
func (t *rateLimiter) activity(window time.Duration, anyway bool) (r sharing.Report, passed bool) {
	if t.limit.Max == 0 {
		return r, false
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	r.Usage = t.usageAt(now)
	r.Usage.Served = t.served(now)
	r.Debt = t.debt(now)
	r.Announced = t.announced.at(now)
	if window == 0 {
		return r, false
	}
	r.Demand = t.demand(now, window)
	r.Needs = t.needs()
	lined := t.lined()
	r.Waiting = lined + t.gate.Waits.Beside()
	if r.Demand == 0 && r.Waiting == 0 && !anyway {
		return r, false
	}
	if r.Throttled = t.whyOneWaits(now); r.Throttled != "" {
		r.Hold = sharing.Hold{Callers: lined, Owed: t.owedFor(now)}
	}
	return r, t.queue.First == nil && !t.queue.Empty()
}

// waiting returns how many callers wait.
func (t *rateLimiter) waiting() int {
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.lined() + t.gate.Waits.Beside()
}

// lined returns how many callers wait in the queue, without those that are counted beside it. The lock is held.
func (t *rateLimiter) lined() int {
	n := t.queue.Len
	if t.gate.Waits.Beside() == 0 {
		return n
	}
	for w := range t.queue.Unordered() {
		if w.Attempt != nil && w.Attempt.Aside.Load() {
			n--
		}
	}
	return n
}

// setLease replaces the share in force. When it returns no draw uses the old share any more.
func (t *rateLimiter) setLease(l limit.Lease) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.gate.Closed.Load() || t.limit.Max == 0 {
		return
	}
	now := t.gate.Now()
	t.put(now, t.lower(now, l))
}

// demand returns how much this processor would use if it could; see sharing.Report. The lock is held.
func (t *rateLimiter) demand(now int64, window time.Duration) int64 {
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
func (t *rateLimiter) usageAt(now int64) sharing.Usage {
	drawn := t.bucket.Drawn() - t.queue.Collected
	return sharing.Usage{
		Paused: t.gate.Paused(now),
		Used:   t.bucket.Tokens(drawn - t.bucket.Credited()), Offered: t.bucket.Tokens(t.bucket.Law().By(now)),
		Granted: drawn >> t.bucket.Shift, Refused: t.gate.Refused.Load(),
		// Callers that wait for the end of a pause say nothing about the use of the limit.
		Waiting: !t.queue.Empty() && !t.gate.Paused(now), Empty: t.bucket.Level(now) < t.bucket.Units(1) && !t.gate.Paused(now),
	}
}

// raised returns the ratio of the limit in force to the configured one. The lock is held.
func (t *rateLimiter) raised() float64 {
	if t.bucket.Law().Lease.Ceiling <= 0 {
		return 1
	}
	return t.bucket.Law().Lease.Ceiling / float64(t.limit.Max)
}

// owedFor is debt as operators see it; 0: not known. The lock is held.
func (t *rateLimiter) owedFor(now int64) time.Duration {
	if owed := t.debt(now); owed < never {
		return owed
	}
	return 0
}

// debt returns how long the share in force takes to earn the tokens owed. The lock is held.
func (t *rateLimiter) debt(now int64) time.Duration {
	if t.issuing() {
		return 0
	}
	wait, ok := t.bucket.Law().Wait(-t.bucket.Level(now))
	if !ok || wait > 0 && !t.bucket.Law().Valid(now) {
		return never
	}
	return wait
}

// earnsWithin reports whether an even share of the limit earns n tokens in d. The share in force would not do, because it changes until the
// tokens come. It also differs between processors.
func (t *rateLimiter) earnsWithin(n int, d time.Duration) bool {
	s := t.bucket.Current()
	if s.Behind != nil {
		s = s.Behind
	}
	if s.Lease.Issuing {
		return true
	}
	if s.Lease.Even > 0 {
		return float64(n) <= t.limit.Rate()*float64(s.Lease.Even)/float64(wholeShare)*d.Seconds()
	}
	wait, known := s.Wait(t.bucket.Units(n))
	return known && wait <= d
}
