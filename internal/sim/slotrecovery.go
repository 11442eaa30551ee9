package sim

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// healSlots waits until a pool of calls in flight is healthy, and judges it while the demand changes, and while everybody waits.
func (w *world) healSlots() {
	start := w.now
	w.crowds()
	lease := w.plan.leases[0]
	w.run(start + slowest(2*wire.Removal(w.plan.longestLease())+3*wire.Clamp(lease)))
	for _, p := range w.procs {
		if v := p.proc.View(p.clock.read(w.now)); w.violation == nil && (v.State != string(protocol.StateHolding) || v.Frozen > 0) {
			w.violatef(CheckRecovery, "%v after the last fault %s is %s, frozen %v", w.now-start, p, v.State, v.Frozen)
		}
	}
	w.judgeSlots()
	for range 6 {
		if w.violation != nil {
			return
		}
		w.crowds()
		w.run(w.now + 15*time.Second)
	}
	if w.violation == nil && w.plan.slots.equal {
		w.judgeDivision()
	}
}

// judgeSlots judges the pool as a healthy one from now on.
func (w *world) judgeSlots() {
	s := &w.slots
	s.judged, s.looked = w.now, w.now
	for t := range s.lacking {
		s.lacking[t] = never
		for _, p := range w.procs {
			p.flight.waitsSince[t], p.flight.idleSince[t] = never, never
		}
	}
}

// crowds draws the number of callers of each tag at each process.
func (w *world) crowds() {
	for _, p := range w.procs {
		for t := range p.flight.wanted {
			w.want(p, t, w.drawCallers())
		}
	}
}

// judgeDivision lets callers of equal tags wait everywhere, and compares the slot-time of the tags.
func (w *world) judgeDivision() {
	p := w.plan.slots
	for t := range p.tags {
		p.tags[t].patience, p.tags[t].thinking = 0, 0
		for _, q := range w.procs {
			w.want(q, t, 2+2*p.slots/len(w.procs)/len(p.tags))
		}
	}
	w.run(w.now + 30*time.Second)
	if w.violation != nil {
		return
	}
	w.judgeJain(2 * time.Minute)
}

// judgeJain compares the slot-time that the tags have.
func (w *world) judgeJain(length time.Duration) {
	w.countServed()
	before := slices.Clone(w.slots.served)
	w.run(w.now + length)
	w.countServed()
	sum, squares := 0.0, 0.0
	var has []float64
	for t := range before {
		n := (w.slots.served[t] - before[t]).Seconds() / length.Seconds()
		has = append(has, n)
		sum, squares = sum+n, squares+n*n
	}
	w.counters.Jain = sum * sum / float64(len(has)) / squares
	if w.counters.Jain < leastJain {
		w.violatef(CheckSlotFair, "equal tags have %.3f slots of %d: Jain's index is %.3f", has, w.plan.slots.slots, w.counters.Jain)
	}
}

// leastJain is the least of Jain's index.
const leastJain = 0.95

// endAllCallers ends the coroutines of a run that is over.
func (w *world) endAllCallers() {
	if w.plan.slots == nil {
		return
	}
	for _, p := range w.procs {
		p.gone = true
		w.endCallers(p)
	}
}
