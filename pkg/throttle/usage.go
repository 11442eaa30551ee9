package throttle

import "time"

// A usageLog remembers the running totals at the moments of the last reports, so
// that a demand can be worked out over a window of any length.
type usageLog struct {
	samples []totals
	need    int64 // with a hard limit, the largest draw that lacked a share since the processor was idle
}

// totals are running totals at one moment; units, except where said. Refusals
// cost nothing, so that their total may be far above what fits into an integer.
type totals struct {
	at      int64   // nanoseconds since base
	used    float64 // granted less given back
	refused float64
	earned  float64
}

// since returns the totals at the newest sample that is at least d old, or at
// the oldest there is, and forgets what is older than that.
func (u *usageLog) since(now int64, d time.Duration, forget bool) (totals, bool) {
	if len(u.samples) == 0 {
		return totals{}, false
	}
	i := 0
	for i+1 < len(u.samples) && now-u.samples[i+1].at >= int64(d) {
		i++
	}
	t := u.samples[i]
	if forget {
		u.samples = u.samples[i:]
	}
	return t, true
}

// A backlog is what a processor has before it, in units.
type backlog struct {
	waiting float64
	debt    float64
	shortAt int64 // when a caller was refused or made to wait last
}

// demand returns the fraction of the limit in force, in 1e-9, that a processor would use
// if it could; see Holder. It is what was used, refused, waits and is owed, over
// the window. A processor that ran short in the last half of the window, and used
// most of what it earned, reports the whole: how much it would have used is not
// known, and a share that grows by the amount that was lacking grows too slowly.
// One that was idle for as long reports nothing.
func (u *usageLog) demand(now totals, b backlog, window time.Duration, whole float64) int64 {
	half, ok := u.since(now.at, window*2/5, false) // reports are jittered by a tenth
	from, _ := u.since(now.at, window, true)
	u.samples = append(u.samples, now)
	if !ok {
		if b.waiting > 0 || b.shortAt > now.at-int64(window/2) {
			return WholeShare
		}
		return 0
	}
	lately := now.used - half.used + now.refused - half.refused + b.waiting
	if lately <= 0 && b.debt == 0 {
		return 0 // idle for half the window: others can have it all
	}
	if (b.waiting > 0 || b.shortAt >= half.at) && lately*5 >= (now.earned-half.earned)*4 {
		return WholeShare
	}
	wanted := now.used - from.used + now.refused - from.refused + b.waiting + b.debt
	span := float64(max(now.at-from.at, int64(time.Millisecond))) * whole
	return int64(max(0, min(wanted/span, 1)) * float64(WholeShare))
}

// Demand tells the sharer what this processor would use if it could; see Holder.
func (t *Throttle) Demand(window time.Duration) int64 {
	if t.limit.Max == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	demand := t.usage.demand(totals{
		at:      now,
		used:    float64(t.granted.Load() - t.void - t.credited - t.queue.collected),
		refused: float64(t.refused.Load()) * float64(t.scale.units(1)),
		earned:  float64(t.seg.by(now)),
	}, backlog{
		waiting: float64(t.queue.tokens) * float64(t.scale.units(1)),
		debt:    float64(max(0, -t.level(now))),
		shortAt: t.shortAt.Load(),
	}, window, t.scale.whole*t.raised())
	if t.limit.Hard {
		return t.hardDemand(demand)
	}
	return demand
}
