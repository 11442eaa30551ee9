package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// drawTogether has half of the runs with consensus.Degrade lose the store all alike, which is when
// it promises the bound: no process is cut off alone, and a store that was away stays
// until everybody has had the time to ask. Processes are stopped all the same.
func (p *plan) drawTogether(r *rand.Rand) {
	if p.loss != consensus.Degrade || p.noted || r.IntN(2) == 0 {
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

// spared tells whether the store is not to be lost now, for it was lost a moment ago: somebody who asks on
// time might not have reached it between the two.
func (w *world) spared() bool {
	if !w.plan.together {
		return false
	}
	s := &w.store
	away := s.down || s.hung || s.deaf
	return away || w.now < s.back+slowest(slices.Max(w.plan.leases)/4+2*time.Second)
}

// promised tells whether the sum of shares is promised to be within the whole: always with consensus.Stop, else while
// the store is lost to all alike.
func (w *world) promised() bool { return w.strict() || w.plan.together }

// alone tells whether what a process uses it uses without the store's consent.
func (w *world) alone(p *process) bool {
	return p.degraded || p.clock.read(w.now) >= p.until
}

// noteAlone takes note of whether a process goes on without the store, and checks with how much: no more than it
// had before, and than an even part.
func (w *world) noteAlone(p *process, local time.Duration, before driver.Share) {
	if w.plan.loss != consensus.Degrade {
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
