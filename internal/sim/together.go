package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// drawTogether lets half of the runs with consensus.Degrade whose processors report no limit lose the store for all alike, in which case it
// promises the bound. No process is cut off alone, and a store that was away stays until all have had the time to ask. Processes are still
// stopped.
func (p *plan) drawTogether(r *rand.Rand) {
	if p.loss != protocol.Degrade || p.noted || r.IntN(2) == 0 {
		return
	}
	p.together = true
	for _, f := range []Fault{FaultClone, FaultCutUp, FaultCutDown, FaultCutBoth} {
		p.faults[f] = false
	}
	p.faults[FaultDown], p.faults[FaultStall] = true, true
	for _, l := range []*link{&p.up, &p.down} {
		l.loss, l.late = 0, 0
		l.least, l.mean = min(l.least, 5*time.Millisecond), min(l.mean, 20*time.Millisecond)
	}
}

// spared reports whether the store must not be lost now, because it was lost a moment ago. A process that asks on time might not have
// reached it in between.
func (w *world) spared() bool {
	if !w.plan.together {
		return false
	}
	s := &w.store
	away := s.down || s.hung || s.deaf
	return away || w.now < s.back+slowest(slices.Max(w.plan.leases)/4+2*time.Second)
}

// promised reports whether the sum of shares is promised to be within the whole: always with consensus.Stop, else while the store is lost
// for all alike.
func (w *world) promised() bool { return w.strict() || w.plan.together }

// alone reports whether a process uses its share without the store's consent.
func (w *world) alone(p *process) bool {
	return p.degraded || p.clock.read(w.now) >= p.until
}

// noteAlone records whether a process continues without the store, and checks its share: at most its last one, and at most an even part.
func (w *world) noteAlone(p *process, local time.Duration, before driver.Share) {
	if w.plan.loss != protocol.Degrade {
		return
	}
	v := p.proc.View(local)
	if began := v.Degraded && !p.degraded; began {
		w.counters.Alone++
		if w.plan.together {
			w.counters.Together++
		}
		live := max(min(p.live, v.Live), 1) // an answer that grants nothing may have come since
		if even := driver.Whole / driver.Share(live); p.held > min(before, even) {
			w.violatef(CheckSum, "%s goes on with %v without the store, had %v, and %v is even", p, p.held, before, even)
		}
	}
	p.degraded, p.live = v.Degraded, v.Live
}
