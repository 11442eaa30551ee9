package shell

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A caller is one goroutine that draws, and judges what each call comes to.
type caller struct {
	p     *process
	index int
	r     *rand.Rand
	open  []heldPermit
	met   [numOutcomes]uint64
}

// A heldPermit is one that will be settled.
type heldPermit struct {
	permit throttle.Permit
	place  int // in the process's grants
	due    time.Duration
}

// An outcome is what a call came to.
type outcome int

const (
	outcomeGranted   outcome = iota
	outcomeNothing           // TryAcquire got nothing
	outcomeAtOnce            // refused at once, or when the share changed: the deadline cannot be met
	outcomeDeadline          // the deadline passed in the queue
	outcomeTooLarge          // a cost that can never be granted
	outcomeCancelled         // the caller gave up
	outcomeClosed
	numOutcomes
)

func (o outcome) String() string {
	return [...]string{
		"granted", "not at hand", "refused in time", "deadline passed while waiting for a share", "too large", "cancelled", "closed",
	}[o]
}

var errGaveUp = errors.New("the caller gave up")

// run draws until the Throttle is closed, and looks that it then refuses.
func (c *caller) run() {
	plan := &c.p.w.plan
	if plan.slots > 0 {
		c.runWithSlots()
		return
	}
	for c.p.closedAt.Load() == notYet {
		c.settle()
		switch mode(c.p.mode.Load()) {
		case modeCalm:
			if !c.acquire(plan.largest, 0, 0, false) { // a limiter that is broken on purpose may refuse at once, for ever
				time.Sleep(time.Millisecond)
			}
		case modeBusy:
			if !c.draw() {
				time.Sleep(exponential(c.r, plan.pace))
			}
		case modeLight:
			c.draw()
			time.Sleep(exponential(c.r, 2*time.Second))
		case modeIdle:
			time.Sleep(exponential(c.r, 3*time.Second))
		}
	}
	if c.acquire(1, 0, 0, false) || c.try(1) {
		c.p.w.violatef(breachClose, "%s: drawn from after Close", c.p.id)
	}
	c.p.w.countOutcomes(&c.met)
}

// draw makes one call of any kind.
func (c *caller) draw() (granted bool) {
	n := 1 + c.r.IntN(c.p.w.plan.largest)
	span := logUniform(c.r, time.Millisecond, 20*time.Second)
	switch k := c.r.IntN(100); {
	case k < 30:
		return c.acquire(n, 0, 0, false)
	case k < 60:
		return c.acquire(n, span, 0, false)
	case k < 70:
		return c.acquire(n, 0, span, false)
	case k < 80:
		return c.acquire(n, span, 0, true)
	case k < 85:
		return c.acquire(n, 0, 0, true)
	case k < 86:
		return c.acquire(c.p.w.maxCost()+1+c.r.IntN(5), span, 0, false)
	default:
		return c.try(n)
	}
}

func (c *caller) try(n int) bool {
	permit, ok := c.p.lim.TryAcquire(n)
	if !ok {
		c.met[outcomeNothing]++
		return false
	}
	if permit.N() != n {
		c.p.w.violatef(breachCount, "%s: TryAcquire of %d got %d", c.p.id, n, permit.N())
	}
	c.keep(permit)
	return true
}

// acquire waits for n tokens, or any up to n. deadline and cancel are in how much
// time the call's context has to end; 0 for never.
func (c *caller) acquire(n int, deadline, cancel time.Duration, upTo bool) (granted bool) {
	permit, granted := c.acquireFrom(c.p.lim, n, deadline, cancel, upTo)
	if granted {
		c.keep(permit)
	}
	return granted
}

// acquireFrom is acquire on a limiter that may be another, and keeps no permit.
func (c *caller) acquireFrom(lim throttle.Limiter, n int, deadline, cancel time.Duration, upTo bool) (permit throttle.Permit, granted bool) {
	w := c.p.w
	call := call{began: w.now(), n: n, upTo: upTo}
	ctx := context.Background()
	if w.flight != nil && !w.isCalm() {
		ctx = w.flight.under
	}
	if deadline > 0 {
		var end context.CancelFunc
		call.deadline = call.began + deadline
		ctx, end = context.WithDeadline(ctx, w.start.Add(call.deadline))
		defer end()
	}
	if cancel > 0 {
		var end context.CancelCauseFunc
		call.cancel = call.began + cancel
		ctx, end = context.WithCancelCause(ctx)
		stop := time.AfterFunc(cancel, func() { end(errGaveUp) })
		defer func() { stop.Stop(); end(nil) }()
	}
	if deadline > 0 && lim == c.p.lim {
		c.p.setPending(c.index, call)
		defer c.p.setPending(c.index, noCall)
	}
	if upTo {
		permit, call.err = lim.AcquireUpTo(ctx, n)
	} else {
		permit, call.err = lim.Acquire(ctx, n)
	}
	call.got = permit.N()
	c.met[c.judge(&call)]++
	return permit, call.err == nil
}

// keep takes a permit down, and settles it later, perhaps.
func (c *caller) keep(permit throttle.Permit) {
	place := c.p.note(permit.N())
	if mode(c.p.mode.Load()) != modeCalm && c.r.IntN(3) == 0 {
		due := c.p.w.now() + time.Millisecond + exponential(c.r, c.p.w.plan.hold)
		c.open = append(c.open, heldPermit{permit, place, due})
	}
}

// settle settles what is due: as drawn, above, below, or not at all; and again,
// which must change nothing.
func (c *caller) settle() {
	if len(c.open) == 0 {
		return
	}
	if mode(c.p.mode.Load()) == modeCalm {
		c.open = nil // used as drawn
		return
	}
	now, plan := c.p.w.now(), &c.p.w.plan
	kept := c.open[:0]
	for _, h := range c.open {
		if now < h.due {
			kept = append(kept, h)
			continue
		}
		n := h.permit.N()
		switch k := c.r.IntN(8); {
		case k == 0:
			h.permit.Settle(n + 1 + c.r.IntN(max(1, n/4)))
		case k < 3 || !plan.giveBack:
			h.permit.Settle(n)
		case k < 6:
			used := c.r.IntN(n)
			c.p.settled(h.place, used)
			h.permit.Settle(used)
		default:
			c.p.settled(h.place, 0)
			h.permit.Cancel()
		}
		if c.r.IntN(2) == 0 {
			h.permit.Cancel()
		}
		h.permit.Settle(c.r.IntN(2 * n))
	}
	c.open = kept
}
