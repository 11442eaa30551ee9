package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// drawHard has half of the hard limits change while they are in force. Their burst is large enough
// that twelve processors can draw under most of what they are lowered to.
func (p *plan) drawHard(r *rand.Rand) {
	if !p.limit.Hard || r.IntN(2) == 0 {
		return
	}
	p.noted, p.faults[FaultLimit] = true, true
	p.changes = logUniform(r, 5*time.Second, 3*time.Minute)
	p.limit.Max = int(math.Exp(math.Log(20) + r.Float64()*math.Log(8)))
	p.limit.Burst = []int{p.limit.Max / 3, p.limit.Max / 2, p.limit.Max * 2 / 3}[r.IntN(3)]
}

// restTogether has all callers of the pool rest now and then, so that all buckets are full when they go on.
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

// changeHard has an operator lower a hard limit, end that, or try to raise it. Nobody rolls another one
// out: all processors of a pool have the same.
func (w *world) changeHard() {
	r := w.rng.more
	var o consensus.Override
	if r.IntN(4) > 0 {
		o.Max = max(1, int(float64(w.plan.limit.Max)*(0.2+r.Float64())))
	}
	if r.IntN(2) == 0 {
		o.Per = period(w.plan.limit)
	}
	w.override(o)
}

// capHard is what an override comes to: at most the limit, if that is hard.
func (w *world) capHard(rate float64) float64 {
	if w.plan.limit.Hard {
		return min(rate, perSecond(w.plan.limit))
	}
	return rate
}

// hardWindow is the window of one period, which the plan's limits leave at a second.
const hardWindow = 1

// checkHardWindow checks the window of one length that ends now against a hard limit: at most Max
// in any second, and at most the largest of its overrides that was in force in it. Longer windows
// hold as many as the seconds they consist of.
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
