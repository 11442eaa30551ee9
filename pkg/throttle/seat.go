package throttle

import (
	"context"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A seat is a join.Seat with a name, and with what callers meet there. No method needs the lock.
type seat struct {
	join.Seat[Permit]
	of    *options // name and observers
	self  Limiter  // in errors
	label string   // the tag in errors
	side  tagSide  // nil: there are no tags
}

// A tagSide is what the tags of a draw add to a seat.
type tagSide interface {
	// countWait and countRefusal count a wait and a refusal to the tags, beside those of the limit.
	countWait(r Reason)
	countRefusal(r Reason)
	// waits notes that n tokens are waited for, and why; end ends that.
	waits(n int, r Reason) (end func())
	// complete adds to an error what the tags know.
	complete(e *Error)
}

var ranks atomic.Uint64

// nextRank returns the position of a new limiter in the order of locks.
func nextRank() uint64 { return ranks.Add(1) }

// take makes s the seat of a limiter.
func (s *seat) take(of native, as seat) {
	*s = as
	s.Source, s.Owner = of, s
}

// ownerOf returns the seat of a child that has one.
func ownerOf(p *child) *seat {
	s, _ := p.Seat.Owner.(*seat) // each is one: see seat.take
	return s
}

// CountWait implements join.Owner.
func (s *seat) CountWait(r Reason) {
	if s.side != nil {
		s.side.countWait(r)
	}
	s.Gate.Waits.CountWait(r)
}

// CountRefusal implements join.Owner.
func (s *seat) CountRefusal(r Reason) {
	if s.side != nil {
		s.side.countRefusal(r)
	}
	s.Gate.Waits.CountRefusal(r)
}

// Watch implements join.Owner.
func (s *seat) Watch(ctx context.Context, r Reason, n int) (over func(n int, err error)) {
	v := s.of.follow(ctx, Wait{Limit: s.of.name, Tag: s.label, Reason: r, Cost: n})
	end := func() {}
	if s.side != nil {
		end = s.side.waits(n, r)
	}
	return func(got int, err error) {
		end()
		v := v // the closure then has the waitSpan in it
		v.end(got, err)
	}
}

// Refused implements join.Owner.
func (s *seat) Refused(ctx context.Context, r sharing.Refusal, over bool) error {
	e := s.errorOf(r)
	if over {
		return ended(ctx, e)
	}
	return e
}

// errorOf makes the error of a refusal.
func (s *seat) errorOf(r sharing.Refusal) *Error {
	e := &Error{
		Reason: r.Reason, Limit: s.of.name, Tag: s.label, Cost: r.Cost, RetryAfter: r.RetryAfter, Frozen: r.Frozen, Fallback: r.Fallback, by: s.self,
	}
	if e.Reason == ReasonTooLarge {
		e.Largest = s.Source.Largest()
	}
	if s.side != nil {
		s.side.complete(e)
	}
	return e
}
