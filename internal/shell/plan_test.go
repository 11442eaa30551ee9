package shell

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A fault is a kind of thing that goes wrong in a run.
type fault int

const (
	faultJoin     fault = iota // one processor more, which goes again
	faultLeave                 // a processor is closed; another joins later
	faultCrash                 // a processor is gone without a word
	faultTwin                  // another process joins under the ID of a running one
	faultCut                   // a processor is cut off, in one direction or both
	faultDown                  // the store is silent for all
	faultRefuse                // the store is there, and refuses every call
	faultHang                  // the store stalls, and does afterwards what it was asked
	faultStep                  // the store's clock is set
	faultWipe                  // the store is empty, under another identity
	faultFlush                 // the store is empty, under the same identity
	faultFailover              // an older copy takes over, under another identity
	faultRollback              // an older copy takes over, under the same identity
	numFaults
	firstForgetful = faultWipe // these make a store forget, and have a timetable of their own
)

func (f fault) String() string {
	return [...]string{
		"join", "leave", "crash", "twin", "cut off", "store silent", "store refuses", "store stalled",
		"store clock step", "store wiped", "store flushed", "failover to an older copy", "rollback to an older copy",
	}[f]
}

// A storeKind says which store the processors meet in.
type storeKind int

const (
	storeTimed    storeKind = iota // knows the time of a step, as Redis does
	storeDeferred                  // learns it from the next step, as JetStream does
	storeMemory                    // is a memstore: no identity, and it forgets nothing
)

func (k storeKind) String() string { return [...]string{"timed", "deferred", "memstore"}[k] }

// A network is how one direction of the way to the store treats messages.
type network struct {
	least, mean       time.Duration // delay: least, plus an exponential one
	lost, again, late float64       // probabilities: lost, doubled, up to half a minute late
}

// calmNetwork is that of the second phase.
var calmNetwork = network{least: time.Millisecond}

// A plan is what a seed draws for a run.
type plan struct {
	seed       uint64
	processors int
	span       time.Duration // how long the faults last
	limit      throttle.Limit
	largest    int           // the largest single draw
	slots      int           // of calls in flight, a second limit that all draw on; 0: none
	spiky      bool          // few are busy at a time, and the burst is large
	pace       time.Duration // mean pause of a busy caller that was refused
	giveBack   bool
	hold       time.Duration // how long a permit is held before it is settled
	leases     []time.Duration
	longest    time.Duration // the longest lease that the store reckons with
	even       bool
	loss       consensus.StoreLoss
	together   bool // the store is lost to all alike, or to nobody
	store      storeKind
	storeRate  float64 // of the store's clock
	knownNew   bool    // the store knows at first that the pool is new
	up, down   network
	overrun    float64 // how likely a call does not end with its context
	busy       float64 // how likely a change is to full demand
	demandMean time.Duration
	faultMean  time.Duration
	forgetMean time.Duration
	faults     [numFaults]bool
}

const processors = 20

// drawPlan draws a run.
func drawPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{
		seed: seed, processors: processors, span: 10 * time.Minute,
		pace: logUniform(r, 100*time.Millisecond, time.Second), giveBack: r.IntN(2) == 0, hold: logUniform(r, 10*time.Millisecond, 5*time.Second),
		even: r.IntN(6) == 0, loss: consensus.Stop, storeRate: 1, knownNew: r.IntN(2) == 0,
		busy:       []float64{0.2, 0.5, 0.9}[r.IntN(3)],
		demandMean: logUniform(r, 3*time.Second, time.Minute),
		faultMean:  logUniform(r, 2*time.Second, 30*time.Second),
		forgetMean: logUniform(r, 20*time.Second, 5*time.Minute),
		overrun:    []float64{0, 0, 0.05}[r.IntN(3)],
	}
	if seed%10 == 0 {
		p.loss = consensus.Degrade
	}
	p.drawLimit(r)
	if r.IntN(4) == 0 {
		p.drawSpikes(r)
	}
	p.drawLeases(r)
	extreme := r.IntN(4) == 0
	p.up, p.down = drawNetwork(r, extreme), drawNetwork(r, extreme)
	p.store = []storeKind{storeTimed, storeDeferred, storeMemory}[min(r.IntN(7)/3, 2)]
	if p.store != storeMemory {
		p.storeRate = []float64{1, 1, 1 - drift, 1 + drift}[r.IntN(4)]
	}
	for f := range p.faults {
		p.faults[f] = r.IntN(2) == 0
	}
	if p.loss == consensus.Degrade && seed%20 > 0 {
		p.loseTogether()
	}
	return p
}

// loseTogether has the store lost to all alike, which is when consensus.Degrade promises the bound: no processor is cut
// off alone, and a store that was away stays until everybody has had the time to ask.
func (p *plan) loseTogether() {
	p.together = true
	p.faults[faultCut], p.faults[faultDown] = false, true
	for _, n := range []*network{&p.up, &p.down} {
		n.lost, n.late = 0, 0
		n.least, n.mean = min(n.least, 5*time.Millisecond), min(n.mean, 20*time.Millisecond)
	}
}

// drift is how far a clock may be off: 8.33 %.
const drift = 1. / 12

func (p *plan) drawLimit(r *rand.Rand) {
	rate := math.Exp(r.Float64() * math.Log(5000)) // per second
	l := throttle.Limit{Per: []time.Duration{time.Second, time.Second, time.Second, 10 * time.Second, time.Minute}[r.IntN(5)]}
	l.Max = max(1, int(rate*l.Per.Seconds()))
	switch r.IntN(4) {
	case 0:
		l.Burst = 1
	case 1:
		l.Burst = 1 + r.IntN(int(math.Ceil(rate)))
	}
	p.limit = l
	// Some hundred draws a second use the highest limit.
	p.largest = 1 + int(rate/100)
}

// drawSpikes has the work come round: what a processor has saved up must not outlast
// the share that it was saved on.
func (p *plan) drawSpikes(r *rand.Rand) {
	p.spiky, p.busy = true, 0.08
	p.limit.Burst = min(max(1, int(p.perSecond()*(2+8*r.Float64()))), max(1, p.limit.Max*10))
	p.largest = 1 + int(p.perSecond()/300)
	p.demandMean = logUniform(r, 3*time.Second, 15*time.Second)
}

func (p *plan) drawLeases(r *rand.Rand) {
	draw := func() time.Duration {
		span := int64((driver.MaxLease - driver.MinLease) / time.Millisecond)
		return driver.MinLease + time.Duration(r.Int64N(span+1))*time.Millisecond
	}
	p.leases = []time.Duration{[]time.Duration{
		driver.DefaultLease, driver.DefaultLease, draw(), driver.MinLease,
	}[min(r.IntN(10)/3, 3)]}
	if r.IntN(6) == 0 {
		p.leases = append(p.leases, draw())
	}
	p.longest = driver.MaxLease
	if r.IntN(2) == 0 {
		p.longest = slices.Max(p.leases)
	}
}

func drawNetwork(r *rand.Rand, extreme bool) network {
	n := []network{
		{},
		{least: 100 * time.Microsecond, mean: 2 * time.Millisecond},
		{least: 5 * time.Millisecond, mean: 20 * time.Millisecond},
		{least: 50 * time.Millisecond, mean: 150 * time.Millisecond},
	}[r.IntN(4)]
	n.lost = []float64{0, 0, 0.001, 0.02, 0.1}[r.IntN(5)]
	n.again = []float64{0, 0.001, 0.05}[r.IntN(3)]
	n.late = []float64{0, 0.001, 0.01}[r.IntN(3)]
	if extreme {
		n.lost, n.again, n.late = []float64{0, 0.1, 0.3, 0.6}[r.IntN(4)], 0.2, 0.05
		n.mean = []time.Duration{n.mean, 300 * time.Millisecond, time.Second}[r.IntN(3)]
	}
	return n
}

// delay draws how long a message is under way.
func (n network) delay(r *rand.Rand) time.Duration {
	if n.late > 0 && r.Float64() < n.late {
		return time.Duration(r.Int64N(int64(30 * time.Second)))
	}
	if n.mean == 0 {
		return n.least
	}
	return n.least + exponential(r, n.mean)
}

// perSecond is the limit in tokens per second.
func (p *plan) perSecond() float64 { return float64(p.limit.Max) / p.limit.Per.Seconds() }

// burst is the limit's burst, with the default filled in.
func (p *plan) burst() float64 {
	if p.limit.Burst > 0 {
		return float64(p.limit.Burst)
	}
	return max(1, math.Floor(p.perSecond()/10))
}

func (p *plan) String() string {
	var on []string
	for f, ok := range p.faults {
		if ok {
			on = append(on, fault(f).String())
		}
	}
	policy, loss := "fair", "stop"
	if p.even {
		policy = "even"
	}
	if p.loss == consensus.Degrade {
		loss = "degrade"
	}
	if p.together {
		loss = "degrade together"
	}
	return fmt.Sprintf("%d processors, %d per %v, burst %g, draws up to %d, spiky %v, given back %v (held %v), %s, %s, leases %v (longest %v), "+
		"store %s (known new %v, clock x %.4f), up %+v, down %+v, overrun %g, demand every %v (busy %g), a fault every %v, store forgets every %v: %s",
		p.processors, p.limit.Max, p.limit.Per, p.burst(), p.largest, p.spiky, p.giveBack, p.hold.Round(time.Millisecond), policy, loss, p.leases, p.longest,
		p.store, p.knownNew, p.storeRate, p.up, p.down, p.overrun, p.demandMean.Round(time.Millisecond), p.busy,
		p.faultMean.Round(time.Millisecond), p.forgetMean.Round(time.Millisecond), strings.Join(on, ", "))
}

// logUniform draws a duration whose logarithm is uniform.
func logUniform(r *rand.Rand, from, to time.Duration) time.Duration {
	return time.Duration(float64(from) * math.Exp(r.Float64()*math.Log(float64(to)/float64(from))))
}

// exponential draws a duration with the given mean, at most 20 times it.
func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(r.ExpFloat64(), 20) * float64(mean))
}
