package shell

import (
	"context"
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A call is one call to Acquire or AcquireUpTo, and what it came to. Times are since
// the beginning of the run.
type call struct {
	began, deadline, cancel time.Duration // deadline and cancel: 0 for none
	n, got                  int
	upTo                    bool
	err                     error
}

// foreseen are the reasons of a call that is told at once that its deadline cannot be met.
// Those but the first come of tokens that are issued one by one.
var foreseen = map[throttle.Reason]bool{
	throttle.ReasonLimit: true, throttle.ReasonSlotsTaken: true, throttle.ReasonFrozen: true, throttle.ReasonStoreLost: true,
}

// noCall stands for no call under way.
var noCall call

// judgeWaiting looks, while all else stands still, that nobody waits for a token that
// cannot be had in time even by the first in the queue. Larger draws are left out:
// some of their tokens may have been collected, which nobody sees from outside.
func (w *world) judgeWaiting(p *process, st *throttle.Status) {
	if st.Closed || st.Lease.Share == 0 || st.Waiting == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pending {
		if c.n == 0 || c.n > 1 && !c.upTo {
			continue
		}
		w.waits++
		if len(w.live) > 1 { // refusals reckon with the share that comes when it is asked for, and it may not come in time
			continue
		}
		if most := st.Tokens + st.Rate*(c.deadline-w.now()).Seconds() + 0.001; most < 1 {
			w.violatef(breachDeadline, "%s: waits for a token until %v, and can have %g at most", p.id, c.deadline, most)
		}
	}
}

// judge judges a call at the instant at which it returned.
func (c *caller) judge(call *call) outcome {
	w, now := c.p.w, c.p.w.now()
	bad := func(b breach, format string) outcome {
		w.violatef(b, "%s: %s: %d tokens (up to: %v) asked for at %v, deadline %v, cancelled %v, returned at %v with %d tokens and %v",
			c.p.id, format, call.n, call.upTo, call.began, call.deadline, call.cancel, now, call.got, call.err)
		return outcomeNothing
	}
	closed := time.Duration(c.p.closedAt.Load())
	switch {
	case call.deadline > 0 && now > call.deadline:
		return bad(breachDeadline, "returned after its deadline")
	case call.cancel > 0 && now > max(call.cancel, call.began):
		return bad(breachDeadline, "returned after it was cancelled")
	case closed != notYet && now > max(closed, call.began):
		return bad(breachClose, "went on waiting after Close")
	case call.err == nil && (call.got < 1 || call.got > call.n || !call.upTo && call.got != call.n):
		return bad(breachCount, "got what it had not asked for")
	case call.err == nil:
		return outcomeGranted
	}
	var e *throttle.Error
	switch {
	case !errors.As(call.err, &e):
		if call.cancel > 0 && now == call.cancel && errors.Is(call.err, errGaveUp) {
			return outcomeCancelled
		}
		if errors.Is(call.err, errCalm) {
			return outcomeCancelled
		}
		return bad(breachError, "failed with an error that is not documented")
	case errors.Is(call.err, throttle.ErrClosed):
		if closed == notYet || errors.Is(call.err, throttle.ErrThrottled) {
			return bad(breachError, "says closed")
		}
		return outcomeClosed
	case !errors.Is(call.err, throttle.ErrThrottled):
		return bad(breachError, "is neither throttled nor closed")
	case e.Reason == throttle.ReasonTooLarge:
		if call.upTo || call.n <= w.maxCost() || now != call.began {
			return bad(breachError, "says too large")
		}
		return outcomeTooLarge
	case call.deadline == 0:
		return bad(breachError, "was throttled though it had no deadline")
	case errors.Is(call.err, context.DeadlineExceeded):
		if now != call.deadline {
			return bad(breachDeadline, "says that its deadline has passed")
		}
		return outcomeDeadline
	case !foreseen[e.Reason] || e.RetryAfter <= call.deadline-now:
		return bad(breachDeadline, "was refused though it could have had its tokens")
	}
	return outcomeAtOnce
}

// probe looks at a moment at which all else stands still that a call whose deadline
// cannot be met fails at once, and that tokens at hand can be had. One token more than
// what accrues until the deadline cannot be had in time.
func (w *world) probe(p *process) {
	st := p.th.Status()
	if st.Closed || st.Lease.Share == 0 {
		return
	}
	d := caller{p: p, index: callers, r: w.looker}
	if st.Tokens >= 1 && st.Waiting == 0 && !d.try(1) {
		w.violatef(breachDeadline, "%s: %g tokens at hand, and TryAcquire got none", p.id, st.Tokens)
	}
	const within = 5 * time.Millisecond
	rate := max(st.Rate, st.Ceiling()*float64(st.Lease.Even)/float64(limit.WholeShare)) // of the share that comes when it asks
	n := int(max(st.Tokens, 0)) + int(rate*within.Seconds()) + 3
	if n > w.maxCost() {
		return
	}
	w.probes++
	if d.acquire(n, within, 0, false) || w.now() != w.looked {
		w.violatef(breachDeadline, "%s: asked for %d tokens within %v with %g at hand and %g per second, and was not refused at once",
			p.id, n, within, st.Tokens, rate)
	}
}
