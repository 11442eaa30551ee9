package shell

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// calmHold is how long a call is in flight in the second phase.
const calmHold = 300 * time.Millisecond

// runWithSlots is run where there is a limit on calls in flight, too. In the second phase the first caller
// draws tokens and the others slots, so that neither limit holds the other one back.
func (c *caller) runWithSlots() {
	plan := &c.p.w.plan
	for c.p.closedAt.Load() == notYet {
		switch mode(c.p.mode.Load()) {
		case modeCalm:
			var ok bool
			if c.index == 0 {
				ok = c.acquire(plan.largest, 0, 0, false)
			} else {
				ok = c.fly(draw{lim: c.p.flying.in, slots: true, n: 1}, calmHold)
			}
			if !ok {
				time.Sleep(time.Millisecond)
			}
		case modeBusy:
			if !c.flyAgain() {
				c.rest(exponential(c.r, plan.pace))
			}
		case modeLight:
			c.flyAgain()
			c.rest(exponential(c.r, 2*time.Second))
		case modeIdle:
			c.rest(exponential(c.r, 3*time.Second))
		}
	}
	time.Sleep(time.Millisecond) // one of them is closed after the other
	for _, lim := range []throttle.Limiter{c.p.th, c.p.flying.in, c.p.flying.perCall} {
		if _, ok := lim.TryAcquire(1); ok {
			c.p.w.violatef(breachClose, "%s: drawn from after Close", c.p.id)
		}
	}
	c.p.w.countOutcomes(&c.met)
}

// A draw is what one call draws from.
type draw struct {
	lim              throttle.Limiter
	n                int
	tokens, slots    bool
	perCall          bool // one slot, whatever n
	try, upTo        bool
	deadline, cancel time.Duration
}

// flyAgain makes a call of any kind: most draw from both limits.
func (c *caller) flyAgain() (granted bool) {
	f, plan := c.p.flying, &c.p.w.plan
	d := draw{n: 1 + c.r.IntN(min(3, plan.slots))}
	switch k := c.r.IntN(10); {
	case k < 5:
		d.lim, d.n, d.tokens, d.slots, d.perCall = f.perCall, 1+c.r.IntN(plan.largest), true, true, true
	case k < 7:
		d.n = min(d.n, c.p.w.maxCost())
		d.lim, d.tokens, d.slots = f.each, true, true
	case k < 9:
		d.lim, d.slots = f.in, true
	default:
		d.lim, d.n, d.tokens = c.p.th, 1+c.r.IntN(plan.largest), true
	}
	span := logUniform(c.r, time.Millisecond, 20*time.Second)
	style := c.r.IntN(6)
	if d.slots && !d.perCall && d.n > 1 {
		style %= 5 // two processors that wait for more than half of the slots may do so for ever
	}
	switch style {
	case 0:
		d.try = true
	case 1:
		d.deadline, d.upTo = span, true
	case 2:
		d.cancel = span
	case 3, 4:
		d.deadline = span
	}
	return c.fly(d, exponential(c.r, plan.hold))
}

// fly makes a call that takes so long.
func (c *caller) fly(d draw, hold time.Duration) (granted bool) {
	var permit throttle.Permit
	if d.try {
		if permit, granted = d.lim.TryAcquire(d.n); !granted {
			c.met[outcomeNothing]++
		}
	} else {
		permit, granted = c.acquireFrom(d.lim, d.n, d.deadline, d.cancel, d.upTo)
	}
	if !granted {
		return false
	}
	place, call := 0, (*flightCall)(nil)
	if d.tokens {
		place = c.p.note(permit.N())
	}
	if d.slots {
		slots := permit.N()
		if d.perCall {
			slots = 1
		}
		c.p.slotsGot.Add(int64(slots))
		call = c.p.w.flight.begin(c.p, slots)
	}
	if !c.hold(hold) {
		return true // the process is dead, and so is the call
	}
	if call != nil {
		c.p.w.flight.end(call)
	}
	c.land(permit, place, d.tokens)
	return true
}

// rest waits before the next call, at most until the faults end.
func (c *caller) rest(d time.Duration) {
	under := c.p.w.flight.under
	if c.p.w.isCalm() {
		under = c.p.w.t.Context()
		d = min(d, time.Second)
	}
	ctx, cancel := context.WithTimeout(under, d)
	defer cancel()
	<-ctx.Done()
}

// hold is what the call takes, or is left of it when the faults end. It is false if the process crashes.
func (c *caller) hold(d time.Duration) (alive bool) {
	calmed := c.p.w.flight.under.Done()
	if c.p.w.isCalm() {
		calmed, d = nil, min(d, calmHold)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-calmed:
		return true
	case <-c.p.link.dead:
		return false
	}
}

// land settles the permit of a call that has ended: as drawn, above, below, or not at all; and again, which must
// change nothing.
func (c *caller) land(permit throttle.Permit, place int, tokens bool) {
	n := permit.N()
	used := n
	switch k := c.r.IntN(8); {
	case mode(c.p.mode.Load()) == modeCalm:
	case k == 0:
		used = n + 1 + c.r.IntN(max(1, n/4))
	case k < 4 && c.p.w.plan.giveBack:
		used = c.r.IntN(n)
	}
	if tokens && used < n {
		c.p.settled(place, used)
	}
	if used == 0 && c.r.IntN(2) == 0 {
		permit.Cancel()
	}
	permit.Settle(used)
	permit.Settle(c.r.IntN(2 * n))
	permit.Cancel()
}
