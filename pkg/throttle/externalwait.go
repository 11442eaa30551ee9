package throttle

import (
	"cmp"
	"context"
	"errors"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// externalWait is hook.ExternalWait.
func externalWait(ctx context.Context, l Limiter, tag string, n int) (over func(err error)) {
	s, cost := seatFor(l, n)
	if s == nil {
		passed := waitsFor(ctx, Error{Reason: ReasonPause, Tag: tag, Cost: n})
		return func(error) { passed() }
	}
	s.CountWait(ReasonPause)
	v := s.of.follow(ctx, Wait{Limit: s.of.name, Tag: cmp.Or(tag, s.label), Reason: ReasonPause, Cost: cost})
	s.Gate.Waits.Outside(s.Gate.Now(), 1)
	return func(err error) {
		s.Gate.Waits.Outside(s.Gate.Now(), -1)
		if _, counted := errors.AsType[*Error](err); err != nil && !counted && waitqueue.DeadlinePassed(ctx) {
			s.CountRefusal(ReasonPause)
		}
		v.end(0, err)
	}
}

// refuse is hook.Refuse.
func refuse(l Limiter, e Error) *Error {
	s, cost := seatFor(l, e.Cost)
	if s == nil {
		return &e
	}
	e.Limit, e.Tag, e.Cost, e.by = s.of.name, cmp.Or(e.Tag, s.label), cost, s.self
	if e.Reason.Listed() {
		s.CountRefusal(e.Reason)
	}
	return &e
}

// seatFor returns the seat of the *Throttle or *InFlight that shows a held-back draw of n tokens from l, and the draw's cost there; nil for
// none.
func seatFor(l Limiter, n int) (s *seat, cost int) {
	if h, ok := unwrapTo[interface {
		holder(n int) (*seat, int)
	}](l); ok {
		return h.holder(n)
	}
	return nil, 0
}

func (j *multi) holder(n int) (s *seat, cost int) {
	for _, p := range j.Children {
		at, price := seatFor(p.Limiter, p.Price(n))
		if at != nil && (s == nil || cost <= 0 && price > 0) {
			s, cost = at, price
		}
	}
	return s, cost
}

func (t *Throttle) holder(n int) (*seat, int) { return t.seat.showing(t.Unlimited(), n) }
func (f *InFlight) holder(n int) (*seat, int) { return f.seat.showing(f.Unlimited(), n) }

// showing returns the seat and the cost of a draw of n tokens, unless there is no limit.
func (s *seat) showing(unlimited bool, n int) (*seat, int) {
	if unlimited {
		return nil, 0
	}
	return s, n
}
