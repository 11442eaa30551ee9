package sim

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// changeDemand draws a new demand from time to time.
func (w *world) changeDemand(p *process) {
	if w.plan.slots != nil {
		return
	}
	w.after(exponential(w.rng.demand, w.plan.demandMean), func() {
		if p.gone || w.calm {
			return
		}
		p.demand = w.drawDemand()
		if w.rng.demand.IntN(3) == 0 {
			p.drawer.restUntil = w.now + exponential(w.rng.demand, time.Second)
		}
		w.turn(p)
		w.changeDemand(p)
	})
}

func (w *world) drawDemand() driver.Share {
	r := w.rng.demand
	switch {
	case w.calm || r.Float64() < w.plan.busy:
		return driver.Whole
	case r.IntN(3) == 0:
		return 0
	default:
		return driver.Share(float64(driver.Whole) * r.Float64() * r.Float64())
	}
}
