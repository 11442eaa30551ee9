package throttle

import (
	"math"
	"time"
)

// A Flow is what a Holder has used since it was made: running totals, of which only
// differences mean something.
type Flow struct {
	// Used counts the tokens that were granted, less those that were given back, and
	// Offered those that the share has earned.
	Used, Offered float64
	// Granted and Refused count tokens that were granted, whatever became of them,
	// and refused: traffic is when one of them moves.
	Granted, Refused int64
	// Waiting tells that somebody waits at this moment, and Empty that less than a
	// token is at hand.
	Waiting, Empty bool
	// Served is what the called service made of the calls, as far as it was reported.
	Served Served
}

// Since returns what a holder of the limit l used and could have used since an earlier
// Flow, d ago, as rates in 1e-9 of Max: used rounded up, offered rounded down.
//
// A call is traffic, though it was refused or gave everything back: used is at least 1
// then. Where callers lack tokens everything offered counts as used, for what is left
// is less than they need, and no want of use.
func (f Flow) Since(before Flow, d time.Duration, l Limit) (used, offered int64) {
	l = l.withDefaults()
	if d <= 0 || l.Max <= 0 {
		return 0, 0
	}
	whole := float64(l.Max) * float64(d) / float64(l.Per) / float64(WholeShare)
	clamp := func(rate float64) int64 { return int64(max(0, min(rate, float64(MaxShare)))) }
	offered = clamp(math.Floor((f.Offered - before.Offered) / whole))
	used = clamp(math.Ceil((f.Used - before.Used) / whole))
	refused := f.Refused != before.Refused
	if f.Waiting || refused || f.Granted != before.Granted {
		used = max(used, 1)
	}
	if f.Waiting || refused && f.Empty {
		used = max(used, offered)
	}
	return used, offered
}

// Flow returns running totals for a ramp; see Holder.
func (t *Throttle) Flow() Flow {
	if t.limit.Max == 0 {
		return Flow{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	f := t.flowAt(now)
	f.Served = t.served(now)
	return f
}

// flowAt returns the totals without what was reported. t.mu is held.
func (t *Throttle) flowAt(now int64) Flow {
	drawn := t.granted.Load() - t.void - t.queue.collected
	return Flow{
		Used: t.scale.tokens(drawn - t.credited), Offered: t.scale.tokens(t.seg.by(now)),
		Granted: drawn >> t.scale.shift, Refused: t.refused.Load(),
		// Who waits for the end of a pause says nothing of whether the limit is used.
		Waiting: !t.queue.empty() && !t.paused(now), Empty: t.level(now) < t.scale.units(1) && !t.paused(now),
	}
}

// InUse is 0: tokens are used when they are granted; see Holder.
func (t *Throttle) InUse() int64 { return 0 }

// raised is by how much the limit in force differs from the configured one. t.mu is held.
func (t *Throttle) raised() float64 {
	if t.seg.lease.Ceiling <= 0 {
		return 1
	}
	return t.seg.lease.Ceiling / float64(t.limit.Max)
}
