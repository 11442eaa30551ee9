package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// drawHard lets half of the hard limits change at run time. Their burst is large enough for twelve processors to draw under most of the
// lowered limits.
func (p *plan) drawHard(r *rand.Rand) {
	if !p.limit.Hard || r.IntN(2) == 0 {
		return
	}
	p.noted, p.faults[FaultLimit] = true, true
	p.changes = logUniform(r, 5*time.Second, 3*time.Minute)
	p.limit.Max = int(math.Exp(math.Log(20) + r.Float64()*math.Log(8)))
	p.limit.Burst = []int{p.limit.Max / 3, p.limit.Max / 2, p.limit.Max * 2 / 3}[r.IntN(3)]
}

// restTogether lets all callers of the pool rest now and then, so that all buckets are full when they continue.
func (w *world) restTogether() {
	const every, most = 15 * time.Second, 4 * time.Second
	w.after(exponential(w.rng.more, every), func() {
		if w.calm {
			return
		}
		until := w.now + time.Duration(w.rng.more.Int64N(int64(most)))
		for _, p := range w.procs {
			p.drawer.restUntil = until
			w.at(until, func() { w.draw(p) })
		}
		w.restTogether()
	})
}

// changeHard is an operator who lowers a hard limit, clears that, or tries to raise it. There are no rollouts: all processors of a pool
// have the same hard limit.
func (w *world) changeHard() {
	r := w.rng.more
	var o protocol.Override
	if r.IntN(4) > 0 {
		o.Max = max(1, int(float64(w.plan.limit.Max)*(0.2+r.Float64())))
	}
	if r.IntN(2) == 0 {
		o.Per = period(w.plan.limit)
	}
	w.override(o)
}

// capHard caps an override at the limit, if that is hard.
func (w *world) capHard(rate float64) float64 {
	if w.plan.limit.Hard {
		return min(rate, perSecond(w.plan.limit))
	}
	return rate
}

// hardWindow is the window of one period, which is a second in the plan's limits.
const hardWindow = 1

// checkHardWindow checks the window of one length that ends now against a hard limit. It allows Max in any second, but at most the largest
// of the overrides that were in force in it. Longer windows may hold as many as their seconds together.
func (w *world) checkHardWindow(i int) {
	used := float64(w.windows.sum(i))
	length := windowLengths[i]
	_, largest := w.mayUse(w.now - length)
	limit := math.Round(largest * period(w.plan.limit).Seconds())
	allowed := limit * max(1, math.Floor(length.Seconds()))
	worst := Window{Ratio: used / allowed, Used: used, Allowed: allowed}
	c := &w.counters
	if i == hardWindow && worst.Ratio > c.Hard.Ratio {
		c.Hard = worst
	}
	if i == hardWindow && limit < float64(w.plan.limit.Max) && worst.Ratio > c.Lowered.Ratio {
		c.Lowered = worst
	}
	if used > allowed {
		w.violatef(CheckWindow, "%g calls within %v, the hard limit allows %g (largest in force %g, burst %d)",
			used, length, allowed, limit, w.windows.burst)
	}
}
