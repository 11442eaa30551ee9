package sim

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A flight is the callers of a process with calls in flight. The slices are by tag.
type flight struct {
	in *throttle.InFlight
	// wanted is how many callers there are to be, and active how many wait, think or have a call in flight; waits is how many wait.
	wanted, active, waits []int
	callers               []*caller // that wait
	// waitsSince is since when somebody has waited, and idleSince since when a slot has been free that a waiting caller may have; never: nobody does.
	waitsSince, idleSince []time.Duration
}

// A caller is a coroutine that waits in the shipped Acquire. It runs while nothing else does.
type caller struct {
	context.Context //nolint:containedctx // it is that of its own Acquire

	p      *process
	t      int
	next   func() (struct{}, bool)
	yield  func(struct{}) bool
	waits  bool // stopped in Acquire
	woken  bool
	gaveUp bool
	since  time.Duration
}

// Err implements context.Context.
func (c *caller) Err() error {
	if c.gaveUp {
		return context.Canceled
	}
	return nil
}

// A slotMachine is a machine whose callers wait: a gate.Scheduler.
type slotMachine struct{ machine }

// Caller implements gate.Scheduler.
func (m slotMachine) Caller() (wake func()) {
	c, w := m.w.slots.running, m.w
	return func() { w.awake(c) }
}

// Park implements gate.Scheduler.
func (m slotMachine) Park(context.Context) {
	c := m.w.slots.running
	c.waits = true
	c.yield(struct{}{})
	c.waits, c.woken = false, false
}

// awake lets a caller go on when the present event is over. An InFlight may be locked.
func (w *world) awake(c *caller) {
	if !c.woken {
		c.woken = true
		w.slots.ready = append(w.slots.ready, c)
	}
}

// goOnCallers lets woken callers go on, but those of halted processes.
func (w *world) goOnCallers() {
	s := &w.slots
	for i := 0; i < len(s.ready); {
		c := s.ready[i]
		if c.waits && !c.p.mayCall() && !c.p.gone {
			i++
			continue
		}
		s.ready = slices.Delete(s.ready, i, i+1)
		if c.waits {
			w.resume(c)
			i = 0
		}
	}
}

// mayCall reports whether the process runs, and its watchdog has looked.
func (p *process) mayCall() bool { return !p.gone && !p.halted() && !p.overslept() }

func (w *world) resume(c *caller) {
	w.slots.running = c
	c.next()
	w.slots.running = nil
}

// call starts a caller of a tag.
func (w *world) call(p *process, t int) {
	c := &caller{Context: context.Background(), p: p, t: t, since: w.now}
	p.flight.callers = append(p.flight.callers, c)
	p.flight.waits[t]++
	lim := p.flight.in.ForTag(w.plan.slots.tags[t].name)
	c.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		permit, err := lim.Acquire(c, 1)
		p.flight.waits[t]--
		p.flight.callers = slices.DeleteFunc(p.flight.callers, func(o *caller) bool { return o == c })
		switch {
		case p.gone:
		case err == nil:
			w.begin(c, permit)
		case p.flight.active[t] > p.flight.wanted[t]:
			p.flight.active[t]--
		default: // it comes again
			w.after(exponential(w.rng.tags, 300*time.Millisecond), func() { w.comeAgain(p, t) })
		}
	})
	w.resume(c)
	if patience := w.plan.slots.tags[t].patience; patience > 0 && c.waits {
		w.after(exponential(w.rng.tags, patience), func() { w.giveUp(c) })
	}
}

func (w *world) giveUp(c *caller) {
	if c.waits {
		c.gaveUp = true
		w.awake(c)
	}
}

// begin begins a call that has its slot.
func (w *world) begin(c *caller, permit throttle.Permit) {
	p, t := c.p, c.t
	tag := &w.plan.slots.tags[t]
	length := logUniform(w.rng.tags, tag.shortest, tag.longest)
	w.noteBegin(p, t, w.now+length)
	w.after(length, func() { w.end(p, t, permit) })
}

// end gives back the slot of a call that is over, once its process runs, and the caller comes again.
func (w *world) end(p *process, t int, permit throttle.Permit) {
	switch {
	case p.gone:
		return
	case p.halted():
		p.due = append(p.due, func() { w.end(p, t, permit) })
		return
	case p.overslept():
		w.after(10*time.Millisecond, func() { w.end(p, t, permit) })
		return
	}
	permit.Settle(1)
	if thinking := w.plan.slots.tags[t].thinking; thinking > 0 {
		w.after(exponential(w.rng.tags, thinking), func() { w.comeAgain(p, t) })
		return
	}
	w.comeAgain(p, t)
}

// comeAgain lets a caller draw again, unless there are too many.
func (w *world) comeAgain(p *process, t int) {
	f := &p.flight
	switch {
	case p.gone || p.left || f.active[t] > f.wanted[t]:
		f.active[t]--
	case p.halted():
		p.due = append(p.due, func() { w.comeAgain(p, t) })
	case p.overslept():
		w.after(10*time.Millisecond, func() { w.comeAgain(p, t) })
	default:
		w.call(p, t)
	}
}

// want sets how many callers of a tag there are at a process. Those of too many that wait give up.
func (w *world) want(p *process, t, callers int) {
	f := &p.flight
	f.wanted[t] = callers
	for f.active[t] < callers {
		f.active[t]++
		w.comeAgain(p, t)
	}
	over := f.active[t] - callers
	for i := len(f.callers) - 1; i >= 0 && over > 0; i-- {
		if c := f.callers[i]; c.t == t && c.waits && !c.gaveUp {
			w.giveUp(c)
			over--
		}
	}
}

// changeCallers draws how many callers of a tag there are at a process, now and from time to time.
func (w *world) changeCallers(p *process, t int) {
	if p.gone || p.left || w.calm || w.plan.slots.wants == 0 {
		return
	}
	w.want(p, t, w.drawCallers())
	w.after(exponential(w.rng.tags, w.plan.slots.wants), func() { w.changeCallers(p, t) })
}

func (w *world) drawCallers() int {
	r := w.rng.tags
	return r.IntN(2) * int(math.Ceil(float64(2*w.plan.slots.crowd)*r.Float64()))
}

// endCallers ends all callers of a process that ends. Calls in flight go on.
func (w *world) endCallers(p *process) {
	clear(p.flight.wanted)
	for _, c := range slices.Clone(p.flight.callers) {
		w.giveUp(c)
	}
	w.goOnCallers()
}
