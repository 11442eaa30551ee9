package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// DefaultDuration is the virtual time of a run's first phase, and TaggedDuration that of a run with tags, where each minute takes several
// times as long.
const (
	DefaultDuration = 30 * time.Minute
	TaggedDuration  = 10 * time.Minute
)

// Config specifies a run.
type Config struct {
	Seed uint64
	// Processors is the initial number. 0: drawn, half the time 12, else 1 to 12.
	Processors int
	// Duration is the virtual time with faults. Defaults to DefaultDuration, or TaggedDuration; at most an hour.
	Duration time.Duration
	// Trace, when set, receives a line for each event.
	Trace io.Writer
	// Progress, when set, is called by Sweep after each run with the number of finished runs. Its calls do not overlap.
	Progress func(done uint64)
	// Found, when set, is called by Sweep for each run that broke a promise, as soon as it has ended. It may be called from several
	// goroutines.
	Found func(r Result)
}

func (c *Config) duration() time.Duration {
	switch {
	case c.Duration > 0:
		return c.Duration
	case c.Seed >= FirstSlotted:
		return SlottedDuration
	case c.Seed >= FirstTagged:
		return TaggedDuration
	}
	return DefaultDuration
}

// A Result is the result of a run.
type Result struct {
	Seed     uint64
	Plan     string
	Counters Counters
	// Violation is the first promise that was broken, or nil.
	Violation *Violation
	// Healed is how long after the end of the faults the pool was whole again.
	Healed time.Duration
}

// A Violation is a broken promise.
type Violation struct {
	// At is the true time since the start, Kind the check that failed.
	At   time.Duration
	Kind Check
	Text string
}

// String returns the violation in one line.
func (v *Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Kind, v.Text) }

// Run makes one run. It starts no goroutines; runs with different seeds may be made concurrently.
func Run(cfg Config) Result {
	cfg.Duration = cfg.duration()
	w := newWorld(cfg.Seed, planOf(cfg.Seed, cfg.Processors), cfg.Trace)
	runWorld(w, cfg)
	w.counters.Runs = 1
	w.endAllCallers()
	return Result{
		Seed: cfg.Seed, Plan: w.plan.String(), Counters: w.counters,
		Violation: w.violation, Healed: w.healed,
	}
}

// runWorld makes the run of a world.
func runWorld(w *world, cfg Config) {
	w.tracef("%s", &w.plan)
	for range w.plan.processors {
		w.after(exponential(w.rng.fault, 500*time.Millisecond), func() { w.join(w.newID()) })
	}
	w.faultsOf(FaultJoin, FaultWipe, w.plan.faultMean)
	w.faultsOf(FaultWipe, numPlanned, w.plan.loseMean)
	if w.plan.changes > 0 {
		w.changesOf(w.plan.changes)
	}
	if w.plan.changes > 0 && w.plan.limit.Hard {
		w.restTogether()
	}
	if w.plan.pauses > 0 {
		w.pausesOf(w.plan.pauses)
	}
	if w.plan.slots != nil && w.plan.slots.changes > 0 {
		w.changeTotals()
	}
	w.run(min(cfg.Duration, time.Hour))
	if w.violation == nil {
		w.heal()
	}
}

// planOf returns the plan of a seed. Each part is drawn from a stream of its own, so that a new part changes no run without it.
func planOf(seed uint64, processors int) plan {
	p := drawPlan(rand.New(rand.NewPCG(seed, 0)), processors)
	p.drawExtras(rand.New(rand.NewPCG(seed, 6)))
	p.drawPauses(rand.New(rand.NewPCG(seed, 8)))
	p.drawHard(rand.New(rand.NewPCG(seed, 9)))
	p.drawTags(seed, rand.New(rand.NewPCG(seed, 13)))
	p.drawTogether(rand.New(rand.NewPCG(seed, 10)))
	p.drawLastStates(rand.New(rand.NewPCG(seed, 11)))
	p.drawSlots(seed, rand.New(rand.NewPCG(seed, 15)))
	return p
}

// A world is one run: everything there is, at one moment of true time.
type world struct {
	now   time.Duration
	queue queue
	plan  plan
	// The plan, the network, the faults and the processes draw from different streams. So a change to one part of the simulation affects
	// the others as little as possible.
	rng struct{ net, fault, demand, proc, more, pause, lastState, tags *rand.Rand }

	store store
	procs []*process // those that run, including stopped and suspended ones
	spare []*message
	names int  // IDs and incarnations given out
	calm  bool // the faults are off
	// sparse leaves checking the sum of the shares to the test, which does so now and then. In very large pools, adding them up at each
	// event would take the most time.
	sparse bool

	limit   throttle.Limit // for processes that start from now on
	limits  limits
	permits permits
	orders  orders
	tags    tagState
	slots   slotState

	windows  windows
	departed []time.Duration // when processes that are gone last held a share

	stepped   time.Duration   // when the store's clock last made a small step
	steps     []time.Duration // when it made one, if permits are issued by it
	counters  Counters
	violation *Violation
	healed    time.Duration
	trace     io.Writer
}

func newWorld(seed uint64, p plan, trace io.Writer) *world {
	w := &world{plan: p, trace: trace, stepped: -time.Hour}
	for i, r := range []**rand.Rand{&w.rng.net, &w.rng.fault, &w.rng.demand, &w.rng.proc, &w.rng.more} {
		*r = rand.New(rand.NewPCG(seed, uint64(i)+1))
	}
	w.rng.pause = rand.New(rand.NewPCG(seed, 7))
	w.rng.lastState = rand.New(rand.NewPCG(seed, 12))
	w.rng.tags = rand.New(rand.NewPCG(seed, 14))
	w.orders = orders{carries: map[driver.Version][]*order{}, recordedAt: map[driver.Version]time.Duration{}, recordedIn: map[driver.Version]uint64{}}
	w.windows.burst = int64(burst(p.limit))
	w.limit = p.limit
	w.limits = limits{
		quotas: []quota{{never, perSecond(p.limit)}}, highest: perSecond(p.limit), burst: burst(p.limit) / perSecond(p.limit),
		configured: map[string]float64{}, saved: map[driver.Version]protocol.Override{}, heldAt: map[heldLimit]time.Duration{},
	}
	w.permits = permits{latest: never, held: map[reservation][]slot{}}
	w.store = newStore(w)
	w.prepareOracle()
	w.prepareSlotOracle()
	return w
}

// run continues until a moment of true time, or the first violation.
func (w *world) run(until time.Duration) {
	for w.violation == nil {
		if at, some := w.queue.Next(); !some || at > until {
			break
		}
		at, e, _ := w.queue.Pop()
		w.now = max(w.now, at)
		w.counters.Events++
		switch e.kind {
		case eventWake:
			if e.gen == e.p.gen {
				e.p.waking = false
				w.turn(e.p)
			}
		case eventDraw:
			e.p.drawer.again = false
			w.draw(e.p)
			continue
		case eventArrive:
			w.store.arrive(w, e.m)
		case eventDeliver:
			w.receive(e.m)
		case eventDo:
			e.do()
		}
		w.goOnCallers()
		if !w.sparse {
			w.checkSum()
		}
		w.checkSlots()
	}
	if w.violation == nil {
		w.now = max(w.now, until)
	}
}

// at and after schedule f for a moment of true time.
func (w *world) at(at time.Duration, f func()) { w.queue.Push(at, event{kind: eventDo, do: f}) }

func (w *world) after(d time.Duration, f func()) { w.at(w.now+d, f) }

func (w *world) newID() string {
	w.names++
	return fmt.Sprintf("p%d", w.names)
}

func (w *world) newIncarnation() string {
	w.names++
	return fmt.Sprintf("i%d", w.names)
}

// tracef writes a line of the trace. Hot paths check w.trace first, so that nothing is allocated without one.
func (w *world) tracef(format string, args ...any) {
	if w.trace != nil {
		_, _ = fmt.Fprintf(w.trace, "%13.6f  %s\n", w.now.Seconds(), fmt.Sprintf(format, args...))
	}
}

// policy is the processors' policy.
func (p *plan) policy() protocol.Policy {
	if p.even {
		return protocol.Even
	}
	return protocol.Fair
}
