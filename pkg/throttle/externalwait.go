package throttle

import (
	"context"
	"errors"

	"github.com/numaproj-contrib/numathrottle/internal/gate"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
)

// ExternalWait tells l that a call which is to draw n tokens for a tag is held back before it
// draws, by whoever draws for it: package httpthrottle does so while the called service wants to be
// left alone. The wait shows as one for l, for ReasonPause: its observers are told, WaitStats
// and Status count it, Track knows of it, and so do the metrics. No token is asked for, so it is no demand.
//
// over must be called once, when the wait is over, with what the call fails with; nil when
// it goes on. An All shows the wait at the first made of its limiters that n tokens cost something
// at, and a Limiter with a method `Unwrap() Limiter` at what that returns. Of other limiters that are
// not of this package, and of those that are Unlimited, only Track knows. It never blocks, and may be called from any goroutine.
func ExternalWait(ctx context.Context, l Limiter, tag string, n int) (over func(err error)) {
	h, cost := externalWaiterOf(l, n)
	if h == nil {
		passed := waitsFor(ctx, Error{Reason: ReasonPause, Tag: tag, Cost: n})
		return func(error) { passed() }
	}
	w := Wait{Tag: tag, Reason: ReasonPause, Cost: cost}
	h.describe(&w.Limit, &w.Tag)
	h.waitLog().CountWait(ReasonPause)
	v := h.follow(ctx, w)
	h.outside(1)
	return func(err error) {
		h.outside(-1)
		if _, counted := errors.AsType[*Error](err); err != nil && !counted && waitqueue.DeadlinePassed(ctx) {
			h.waitLog().CountRefusal(ReasonPause)
		}
		v.end(0, err)
	}
}

// Refuse returns e as an error of l, for a call that is refused by whoever is to draw e.Cost tokens
// for it: with the name of the limit, its tag unless e has one, and what e.Cost comes to
// there. Which limiter that is, is as with ExternalWait; e stays as it is where only Track knows of
// waits. WaitStats counts it, if e.Reason is one of Reasons.
func Refuse(l Limiter, e Error) *Error {
	h, cost := externalWaiterOf(l, e.Cost)
	if h == nil {
		return &e
	}
	e.Cost = cost
	h.describe(&e.Limit, &e.Tag)
	e.by, _ = h.(Limiter)
	if e.Reason.Listed() {
		h.waitLog().CountRefusal(e.Reason)
	}
	return &e
}

// A externalWaiter is a limiter that shows waits which are not its own: a *Throttle or an
// *InFlight, or what embeds one.
type externalWaiter interface {
	describe(limit, tag *string)
	waitLog() *gate.WaitLog
	follow(ctx context.Context, w Wait) waitSpan
	// outside notes that so many more calls are held back before they draw; fewer when
	// more is negative. No lock is held.
	outside(more int)
}

// externalWaiterOf returns who shows that a draw of n tokens from l is held back, and what the draw
// costs there; nil for nobody.
func externalWaiterOf(l Limiter, n int) (by externalWaiter, cost int) {
	if s, ok := unwrapTo[interface {
		holder(n int) (externalWaiter, int)
	}](l); ok {
		return s.holder(n)
	}
	return nil, 0
}

func (j *multi) holder(n int) (by externalWaiter, cost int) {
	for _, p := range j.children {
		h, price := externalWaiterOf(p.limiter, p.price(n))
		if h != nil && (by == nil || cost <= 0 && price > 0) {
			by, cost = h, price
		}
	}
	return by, cost
}

func (t *Throttle) holder(n int) (by externalWaiter, cost int) {
	if t.Unlimited() {
		return nil, 0
	}
	return t, n
}

func (f *InFlight) holder(n int) (by externalWaiter, cost int) {
	if f.Unlimited() {
		return nil, 0
	}
	return f, n
}

// describe fills in the limit's name, and its tag unless there is one.
func (o *options) describe(limit, tag *string) {
	*limit = o.name
	if *tag == "" {
		*tag = o.common.Tag
	}
}

func (t *Throttle) outside(more int) { t.gate.Waits.Outside(t.gate.Now(), more) }
func (f *InFlight) outside(more int) { f.gate.Waits.Outside(f.gate.Now(), more) }

func (t *Throttle) waitLog() *gate.WaitLog { return &t.gate.Waits }
func (f *InFlight) waitLog() *gate.WaitLog { return &f.gate.Waits }
