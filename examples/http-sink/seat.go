package main

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A seat is the place of one request among the concurrent ones. A request gives it up while it waits for a limit, so that an exhausted or
// paused destination takes no place from others. It is used by one goroutine.
type seat struct {
	slots chan struct{} // one for each taken place
	held  bool
}

// take waits for a place.
func (s *seat) take(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryTake takes a place if there is one.
func (s *seat) tryTake() bool {
	select {
	case s.slots <- struct{}{}:
		s.held = true
	default:
	}
	return s.held
}

// leave gives the place up, if it is held.
func (s *seat) leave() {
	if s.held {
		<-s.slots
		s.held = false
	}
}

// within returns the context of a request that has the seat. If there is only one seat, the request keeps it while it waits, so that
// messages go in order.
func (s *seat) within(ctx context.Context) context.Context {
	if cap(s.slots) == 1 {
		return ctx
	}
	return context.WithValue(ctx, seatKey{}, s)
}

type seatKey struct{}

// A seated limiter draws for requests that have a seat.
type seated struct {
	throttle.Limiter

	now throttle.Limiter // the same, without a bound on waits
}

// Unwrap exposes the reason for waits; see hook.ExternalWait.
func (l seated) Unwrap() throttle.Limiter { return l.Limiter }

// Acquire implements throttle.Limiter. Waiting calls hold no place, and hold no tokens while they wait for a place again.
func (l seated) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok {
		return l.Limiter.Acquire(ctx, n)
	}
	for {
		if permit, ok := l.atHand(n); ok {
			return permit, nil
		}
		s.leave()
		permit, err := l.Limiter.Acquire(ctx, n)
		if err != nil || s.tryTake() {
			return permit, err
		}
		permit.Cancel()
		if err := s.take(ctx); err != nil {
			return throttle.Permit{}, err
		}
	}
}

// atHand draws without waiting. It does not try a draw that would have to wait, because refusals count as demand.
func (l seated) atHand(n int) (throttle.Permit, bool) {
	if t, ok := l.now.(interface {
		Throttled() (throttle.Throttling, bool)
	}); ok {
		if _, throttled := t.Throttled(); throttled {
			return throttle.Permit{}, false
		}
	}
	return l.now.TryAcquire(n)
}
