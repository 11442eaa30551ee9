package main

import (
	"fmt"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// epoch is the start time of every run.
var epoch = time.Unix(1_700_000_000, 0)

// A pool is a run of the shipped code. A driver.Record replaces the store, and each pod has a consensus.Processor and a throttle.Throttle,
// joined as in consensus.Member. Answers come at once, and all clocks agree.
type pool struct {
	now  time.Duration
	rec  driver.Record
	pods []*pod // by index in names; nil: there is none
	seen outcome
	born uint64 // incarnations and requests so far
}

// An outcome is the result of a run, by tick.
type outcome struct {
	of     scenario
	shares [][]float64 // by pod: the part of the limit that it may use
	calls  []int       // of all pods together
}

// A pod is one process of the pool. It is the Sharer of its Throttle.
type pod struct {
	p      *pool
	proc   *consensus.Processor
	th     *throttle.Throttle
	holder throttle.Holder
	pushed throttle.Lease
	busy   bool
	spread float64
	flow   limit.Usage // at the request answered last, at flowAt
	flowAt time.Duration
}

// runPool plays a scenario.
func runPool(s scenario) (outcome, error) {
	p := &pool{pods: make([]*pod, len(names)), seen: outcome{of: s, shares: make([][]float64, len(names))}}
	left := s.events
	for ; p.now < s.length; p.now += tick {
		var err error
		if left, err = happen(left, p.now, p.happens); err != nil {
			return outcome{}, err
		}
		calls := 0
		for _, d := range p.pods {
			if d == nil {
				continue
			}
			calls += d.draw()
			if err := d.turn(); err != nil {
				return outcome{}, err
			}
		}
		p.seen.calls = append(p.seen.calls, calls)
		for i, d := range p.pods {
			share := 0.0
			if d != nil {
				share = d.proc.Held(p.now).Fraction()
			}
			p.seen.shares[i] = append(p.seen.shares[i], share)
		}
	}
	return p.seen, nil
}

// happens carries out an event.
func (p *pool) happens(e event) error {
	switch e.what {
	case starts:
		d, err := p.start(e.pod)
		p.pods[e.pod] = d
		return err
	case dies:
		p.pods[e.pod] = nil
	case leaves:
		leave := p.pods[e.pod].proc.Leave(p.now)
		p.rec.Leave(&leave, p.at())
		p.pods[e.pod] = nil
	case works, rests:
		p.pods[e.pod].busy = e.what == works
	}
	return nil
}

// start begins a new process.
func (p *pool) start(index int) (*pod, error) {
	p.born++
	// Pods differ only in the moment of their requests within the interval. These are far apart.
	d := &pod{p: p, spread: float64(index) / float64(len(names))}
	d.proc = consensus.NewProcessor(consensus.ProcessorConfig{Pool: "pool", ID: names[index]}, fmt.Sprint("life-", p.born))
	var err error
	d.th, err = throttle.New(throttle.Limit{Max: limitPerSecond, Burst: burst}, throttle.WithClock(clock{p}), throttle.WithSharer(d))
	return d, err
}

// at returns the store's information for the moment: it runs, and has always run.
func (p *pool) at() driver.At {
	return driver.At{Now: epoch.Add(p.now).UnixMicro(), Identity: "store", Remembers: math.MaxInt64}
}

// draw lets callers take every available token, if the pod has work.
func (d *pod) draw() (calls int) {
	for d.busy {
		if _, ok := d.th.TryAcquire(1); !ok {
			break
		}
		calls++
	}
	return calls
}

// turn takes the steps that are due, like the loop of a consensus.Member.
func (d *pod) turn() error {
	now := d.p.now
	d.proc.Tick(now)
	d.push()
	if d.proc.Next(now, d.spread) > now {
		return nil
	}
	demand := driver.Share(d.holder.Report(d.proc.DemandSpan()).Demand)
	d.proc.Yield(now, demand)
	d.push()
	report := d.holder.Report(0)
	o := consensus.Observation{InUse: driver.Share(report.InUse), Served: report.Usage.Served}
	o.Used, o.Offered = report.Usage.Since(d.flow, now-d.flowAt, limitPerSecond, time.Second)
	d.proc.Observe(o)
	d.p.born++
	req := d.proc.Request(now, d.p.born, demand)
	ans, _ := d.p.rec.Sync(&req, d.p.at())
	if err := d.proc.Take(now, ans, fmt.Sprint("life-", d.p.born)); err != nil {
		return err
	}
	d.flow, d.flowAt = report.Usage, now
	d.push()
	return nil
}

// push hands the lease in force to the Throttle, if it has changed.
func (d *pod) push() {
	if l := d.proc.Lease(d.p.now, 2*tick, epoch); l != d.pushed {
		d.pushed = l
		d.holder.Lease(l)
	}
}

// Attach implements throttle.Sharer.
func (d *pod) Attach(h throttle.Holder) {
	d.holder = h
	h.Lease(throttle.Lease{})
}

// Poke implements throttle.Sharer.
func (d *pod) Poke() { d.proc.Poke(d.p.now) }

// A clock is the clock of the run. There are no waiting callers, so it wakes none.
type clock struct{ p *pool }

func (c clock) Now() time.Time                               { return epoch.Add(c.p.now) }
func (clock) AfterFunc(time.Duration, func()) throttle.Timer { return stopped{} }

type stopped struct{}

func (stopped) Reset(time.Duration) bool { return false }
func (stopped) Stop() bool               { return false }
