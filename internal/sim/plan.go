package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A storeKind is the kind of store of a run.
type storeKind uint8

const (
	storeTimed    storeKind = iota // knows the time of a step, as Redis does
	storeDeferred                  // learns it from the next step, as JetStream does
	storeMemory                    // has no identity and loses nothing, as memstore
)

func (k storeKind) String() string { return [...]string{"timed", "deferred", "memory"}[k] }

// A rateStyle is how the rates of clocks are distributed.
type rateStyle uint8

const (
	ratesExact    rateStyle = iota
	ratesUniform            // anything up to the limit
	ratesExtreme            // each at one limit or the other
	ratesHurtSafe           // store fast, processors slow: rows go before leases do
	ratesHurtLive           // store slow, processors fast
	rateStyles
)

func (s rateStyle) String() string {
	return [...]string{"exact", "uniform", "extreme", "store-fast", "store-slow"}[s]
}

// A link is how one direction of the network treats messages.
type link struct {
	least, mean       time.Duration // delay: least, plus an exponential one
	loss, again, late float64       // probabilities: lost, doubled, up to a minute late
}

// A plan holds what a seed draws for a whole run.
type plan struct {
	processors int
	leases     []time.Duration // the processors' settings; each takes one of them
	longest    time.Duration   // the store's assumption for the longest lease; 0: driver.MaxLease
	even       bool            // policy Even instead of Fair
	loss       protocol.StoreLoss
	store      storeKind
	knownNew   bool // the store knows at first that the pool is new
	rates      rateStyle
	up, down   link
	lateTaken  bool          // answers that come after the timeout reach the processor
	demandMean time.Duration // between changes of a processor's demand
	busy       float64       // how likely a change is to full demand
	faultMean  time.Duration // between faults
	loseMean   time.Duration // between faults by which the store loses its state, or may seem to: they freeze the pool
	faults     [numFaults]bool
	limit      throttle.Limit
	unused     float64 // how likely a permit is given back instead of used
	extras
}

// drawPlan draws a plan. A quarter of the seeds is extreme in many ways at once.
func drawPlan(r *rand.Rand, processors int) plan {
	extreme := r.IntN(4) == 0
	p := plan{
		processors: processors, even: r.IntN(6) == 0, knownNew: r.IntN(2) == 0,
		lateTaken: r.IntN(2) == 0, busy: []float64{0.2, 0.5, 0.9, 1}[r.IntN(4)],
		demandMean: logUniform(r, 300*time.Millisecond, time.Minute),
		faultMean:  logUniform(r, 300*time.Millisecond, 40*time.Second),
		loseMean:   logUniform(r, 10*time.Second, 10*time.Minute),
		up:         drawLink(r, extreme), down: drawLink(r, extreme),
	}
	if p.processors == 0 {
		p.processors = []int{12, 1 + r.IntN(12)}[r.IntN(2)]
	}
	if r.IntN(10) == 0 {
		p.loss = protocol.Degrade
	} else {
		p.loss = protocol.Stop
	}
	p.store = []storeKind{storeTimed, storeTimed, storeDeferred, storeDeferred, storeMemory}[min(r.IntN(9)/2, 4)]
	p.rates = rateStyle(r.IntN(int(rateStyles)))
	if extreme {
		p.rates = []rateStyle{ratesExtreme, ratesHurtSafe, ratesHurtSafe}[r.IntN(3)]
		p.lateTaken = true
	}
	p.drawLeases(r, extreme)
	for f := range numDrawn {
		p.faults[f] = r.IntN(2) == 0
	}
	p.drawLimit(r)
	return p
}

// drawLimit draws the limit. Low rates show the effect of a single token best, and are the cheapest to simulate.
func (p *plan) drawLimit(r *rand.Rand) {
	p.limit.Max = int(math.Exp(math.Log(2) + r.Float64()*math.Log(50)))
	p.limit.Burst = []int{0, 1, p.limit.Max / 3, p.limit.Max}[r.IntN(4)]
	if r.IntN(3) == 0 {
		p.unused = []float64{0.1, 0.5, 0.9}[r.IntN(3)]
	}
	if p.loss == protocol.Stop && r.IntN(3) == 1 { // a hard limit rests on it
		p.limit.Hard = true
		p.limit.Burst = []int{0, (p.limit.Max + 1) / 2, p.limit.Max/3 + 1}[r.IntN(3)]
	}
}

// fastest returns the maximum rate of a processor's clock relative to true time.
func (p *plan) fastest() float64 {
	if p.rates == ratesExact || p.rates == ratesHurtSafe {
		return 1
	}
	return 1 + maxDrift/1e6
}

func (p *plan) drawLeases(r *rand.Rand, extreme bool) {
	draw := func() time.Duration {
		span := int64((driver.MaxLease - driver.MinLease) / time.Millisecond)
		return driver.MinLease + time.Duration(r.Int64N(span+1))*time.Millisecond
	}
	l := []time.Duration{driver.MinLease, draw(), driver.DefaultLease}[r.IntN(3)]
	if extreme {
		l = driver.MinLease
	}
	p.leases = []time.Duration{l}
	if r.IntN(6) == 0 {
		p.leases = append(p.leases, draw())
	}
	if r.IntN(2) == 0 {
		for _, l := range p.leases {
			p.longest = max(p.longest, l)
		}
	}
}

func drawLink(r *rand.Rand, extreme bool) link {
	delays := []struct{ least, mean time.Duration }{
		{100 * time.Microsecond, 200 * time.Microsecond},
		{100 * time.Microsecond, 2 * time.Millisecond},
		{5 * time.Millisecond, 20 * time.Millisecond},
		{50 * time.Millisecond, 150 * time.Millisecond},
	}
	d := delays[r.IntN(len(delays))]
	l := link{
		least: d.least, mean: d.mean,
		loss: []float64{0, 0, 0.001, 0.02, 0.1}[r.IntN(5)], again: []float64{0, 0.001, 0.05}[r.IntN(3)],
		late: []float64{0, 0, 0.001, 0.01}[r.IntN(4)],
	}
	if extreme {
		l.loss, l.again, l.late = []float64{0, 0.1, 0.3, 0.6}[r.IntN(4)], 0.2, 0.05
		l.mean = []time.Duration{d.mean, 300 * time.Millisecond, time.Second}[r.IntN(3)]
	}
	return l
}

// calmLink is the network of the second phase and of directed schedules.
var calmLink = link{least: time.Millisecond}

// rate draws a clock's rate.
func (p *plan) rate(r *rand.Rand, ofStore bool) int64 {
	switch p.rates {
	case ratesUniform:
		return million - maxDrift + r.Int64N(2*maxDrift+1)
	case ratesExtreme:
		return million - maxDrift + r.Int64N(2)*2*maxDrift
	case ratesHurtSafe, ratesHurtLive:
		if ofStore == (p.rates == ratesHurtSafe) {
			return million + maxDrift
		}
		return million - maxDrift
	default:
		return million
	}
}

// slowest and fastest bound the true time that a local time may take.
func slowest(d time.Duration) time.Duration { return d * million / (million - maxDrift) }

// longestLease is the longest time that any process may hold a share, on its own clock.
func (p *plan) longestLease() time.Duration {
	if p.longest == 0 {
		return driver.MaxLease
	}
	return p.longest
}

func (p *plan) String() string {
	var on []string
	for f, ok := range p.faults {
		if ok {
			on = append(on, Fault(f).String())
		}
	}
	policy := "fair"
	if p.even {
		policy = "even"
	}
	loss := "stop"
	if p.loss == protocol.Degrade {
		loss = "degrade"
	}
	if p.together {
		loss = "degrade together"
	}
	l := &p.limit
	extra := fmt.Sprintf("per %v, ramp %d in %v %v, strict %v reserved %d, issues permits %v, changes every %v",
		period(*l), l.Min, l.RampUpDuration, l.Mode, l.Strict, l.MaxReserved, p.permits, p.changes.Round(time.Millisecond))
	if p.tags != nil {
		extra += fmt.Sprintf(", tags %+v, hoarded %v, large wants %g, an hour ends at %v", p.tags.quotas.Tags, p.tags.hoard, p.tags.heads, p.tags.wall)
	}
	if s := p.slots; s != nil {
		extra = fmt.Sprintf("%d slots, quotas %+v, tags %+v, callers %d every %v, totals change every %v",
			s.slots, s.quotas, s.tags, s.crowd, s.wants, s.changes)
	}
	return fmt.Sprintf("%d processors, limit %d burst %d hard %v (%g given back), %s, %s, %s, "+
		"leases %v (longest %v), store %s (known new %v), clocks %s, up %+v, down %+v, "+
		"late answers taken %v, demand every %v (busy %g), a fault every %v, store forgets every %v: %s",
		p.processors, p.limit.Max, p.limit.Burst, p.limit.Hard, p.unused, extra, policy, loss,
		p.leases, p.longestLease(), p.store, p.knownNew, p.rates, p.up, p.down,
		p.lateTaken, p.demandMean.Round(time.Millisecond), p.busy, p.faultMean.Round(time.Millisecond),
		p.loseMean.Round(time.Millisecond), strings.Join(on, " "))
}

// logUniform draws a duration whose logarithm is uniform.
func logUniform(r *rand.Rand, from, to time.Duration) time.Duration {
	return time.Duration(float64(from) * math.Exp(r.Float64()*math.Log(float64(to)/float64(from))))
}

// exponential draws a duration with the given mean, at most 20 times it.
func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(r.ExpFloat64(), 20) * float64(mean))
}
