package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// extras are features of only some runs. They are drawn from a stream of their own.
type extras struct {
	noted      bool          // the processors report their limit, as consensus.Member does
	changes    time.Duration // mean between changes of the limit; 0: nobody changes it
	permits    bool          // tokens can be issued
	pauses     time.Duration // mean between pauses of the pool; 0: nobody pauses it
	lastStates bool          // a dying process leaves a last state, and its successor may find it
	// together means that either all processors lose the store or none does.
	together bool
	tags     *tagPlan  // nil: no tags
	slots    *slotPlan // nil: a limit on a rate
}

// drawExtras draws them. A hard limit has no extras but changes, which drawHard draws.
func (p *plan) drawExtras(r *rand.Rand) {
	kind, changes := r.IntN(16), r.IntN(4) == 0
	if p.limit.Hard {
		return
	}
	switch {
	case kind < 2:
		p.drawStrict(r)
	case kind < 4:
		p.drawLow(r)
	case kind < 6:
		p.drawRamp(r)
	}
	if changes {
		p.noted = true
		p.changes = logUniform(r, 2*time.Second, 2*time.Minute)
		p.faults[FaultLimit] = true
		if p.limit.Strict { // an override makes the spacing up to ten times as large
			p.limit.MaxReserved = min(p.limit.MaxReserved, int(4*time.Second/spacing(p.limit)))
		}
	}
}

// drawStrict draws a strict limit. Reservations reach at most 40 s ahead.
func (p *plan) drawStrict(r *rand.Rand) {
	p.noted, p.permits, p.loss, p.unused = true, true, protocol.Stop, 0
	p.limit = throttle.Limit{
		Max: 1 + r.IntN(12), Per: []time.Duration{time.Second, time.Second, 3 * time.Second, 7 * time.Second}[r.IntN(4)],
		Strict: true, MaxReserved: []int{0, 0, 1, 5, 20}[r.IntN(5)],
	}
	for spacing(p.limit)*time.Duration(p.limit.MaxReserved+1) > 40*time.Second {
		p.limit.MaxReserved /= 2
	}
}

// drawLow draws a limit near which the pool changes between shares and permits as it grows and shrinks.
func (p *plan) drawLow(r *rand.Rand) {
	p.noted, p.permits, p.unused = true, true, 0
	each := 0.5 + 2*r.Float64() // tokens for each processor and interval
	rate := each * float64(p.processors) / wire.Interval(p.leases[0], p.processors).Seconds()
	p.limit = throttle.Limit{Max: max(1, int(rate)), MaxReserved: []int{0, 0, 3}[r.IntN(3)]}
}

// drawRamp draws a ramp to the limit.
func (p *plan) drawRamp(r *rand.Rand) {
	p.noted = true
	l := &p.limit
	l.Max = max(l.Max, 4)
	l.Min = 1 + r.IntN(l.Max/2)
	l.RampUpDuration = logUniform(r, 2*time.Second, 20*time.Second).Truncate(time.Millisecond)
	l.ResumedRampUp = r.IntN(2) == 0
	l.Mode = []throttle.Mode{throttle.RampScheduled{}, throttle.RampRelaxed{}, throttle.RampOnlyIfUsed{}, throttle.RampGoBackN{}}[r.IntN(4)]
}

// period is the limit's period.
func period(l throttle.Limit) time.Duration {
	if l.Per == 0 {
		return time.Second
	}
	return l.Per
}

func perSecond(l throttle.Limit) float64 { return float64(l.Max) / period(l).Seconds() }

// spacing is the distance of two slots of the whole limit.
func spacing(l throttle.Limit) time.Duration {
	return (period(l) + time.Duration(l.Max) - 1) / time.Duration(l.Max)
}

// burst returns the limit's burst, as throttle.Limit defines it.
func burst(l throttle.Limit) float64 {
	switch {
	case l.Strict:
		return 1
	case l.Burst > 0:
		return float64(l.Burst)
	}
	return math.Max(1, math.Floor(float64(l.Max)*float64(100*time.Millisecond)/float64(period(l))))
}

// ahead is how much earlier a falling ceiling takes effect; see protocol.Processor.Orders.
const ahead = 200 * time.Millisecond

// watch is how often a processor checks a moving ceiling.
const watch = 100 * time.Millisecond

// prepare lets a new process's Processor report its limit.
func (w *world) prepare(p *process) {
	p.limit = w.limit
	if !w.plan.noted {
		return
	}
	if least := float64(p.limit.Min) / period(p.limit).Seconds(); w.limits.lowest == 0 || least < w.limits.lowest {
		w.limits.lowest = least
	}
	terms := p.holder.Terms()
	if !w.plan.permits {
		terms.Spacing, terms.Strict = 0, false
	}
	if t := w.plan.tags; t != nil {
		terms.Quotas = &t.quotas
	}
	p.proc.Configure(terms)
}

// apply hands the value of the share to the Throttle, as consensus.Member does, and checks the ceiling.
func (w *world) apply(p *process, local time.Duration, of *limit.Lease) {
	l := limit.Lease{Share: of.Share, Ceiling: of.Ceiling, Issuing: of.Issuing, Until: of.Until}
	p.ceiling = l.Ceiling
	if p.ceiling == 0 {
		p.ceiling = float64(p.limit.Max)
	}
	if l.Share > 0 || l.Issuing {
		w.checkCeiling(p)
	}
	if l == p.drawer.lease {
		return
	}
	old := p.drawer.lease
	began := l.Issuing && !old.Issuing
	if !l.Issuing || !old.Issuing || !epoch.Add(local).Before(old.Until) {
		w.loseSlots(p)
	}
	p.drawer.lease = l
	p.holder.Lease(l)
	if began {
		w.drawAgain(p)
	}
}

// observe returns the callers' use for the next request, as consensus.Member does.
func (w *world) observe(p *process, local time.Duration) (o protocol.Observation) {
	p.proc.Yield(local, p.report(), w.reportTags(p, local))
	w.touch(p, local)
	p.sentFlow, p.sentAt = p.holder.Report(0).Usage, local
	o.Used, o.Offered = p.sentFlow.Since(p.flow, local-p.flowAt, p.drawer.th.Limit().Max, p.drawer.th.Limit().Per)
	return o
}

// moves reports whether the ceiling may move by itself.
func (p *process) moves() bool {
	return p.limit.Ramps() && p.drawer.lease.Share > 0 && p.drawer.lease.Ceiling > 0
}
