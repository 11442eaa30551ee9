package throttle

import (
	"context"
	"errors"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// externalWait is hook.ExternalWait.
func externalWait(ctx context.Context, l Limiter, tag string, n int) (over func(err error)) {
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

// refuse is hook.Refuse.
func refuse(l Limiter, e Error) *Error {
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

// An externalWaiter is a limiter that shows waits outside itself: a *Throttle or an *InFlight, or a type that embeds one.
type externalWaiter interface {
	describe(limit, tag *string)
	waitLog() *gate.WaitLog
	follow(ctx context.Context, w Wait) waitSpan
	// outside notes that more calls are held back before they draw; a negative more means fewer. No lock is held.
	outside(more int)
}

// externalWaiterOf returns the limiter that shows a held-back draw of n tokens from l, and the draw's cost there; nil for none.
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
