package throttle

import (
	"context"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A seat is what every native has: its place in the order of locks, its name, and the counts of what callers meet. No method needs the lock.
type seat struct {
	rank  uint64 // orders the locks: an attempt holds those of all its sources
	gate  *gate.Gate
	of    *options // name and observers
	self  Limiter  // in errors
	label string   // the tag in errors
	// native is the limiter, and lockFree the same if draws that do not wait take no lock; nil: they do.
	native   native
	lockFree lockFree
	side     tagSide // nil: there are no tags
	// perCall says that a draw of no tokens takes one, and aside that its callers are counted beside the limit's queue.
	perCall, aside bool
}

// A lockFree undoes, and explains, draws that do not wait without a lock; see seat.
type lockFree interface {
	untake(p Permit)
	why(n int) Reason
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

// seated implements native for the limiters that have their seat in them.
func (s *seat) seated() *seat { return s }

// untake undoes native.take as if it had never happened.
func (s *seat) untake(p Permit) {
	if s.lockFree != nil {
		s.lockFree.untake(p)
		return
	}
	undo(s.native, p)
}

// why returns the reason for refusing n tokens to a caller that comes now.
func (s *seat) why(n int) Reason {
	if s.lockFree != nil {
		return s.lockFree.why(n)
	}
	if r, never := s.impossible(n); never {
		return r
	}
	s.native.Lock()
	defer s.native.Unlock()
	w := newcomer(s.native, n)
	return s.native.Refusal(&w).Reason
}

// impossible reports whether a draw of n tokens is refused for good, and why.
func (s *seat) impossible(n int) (r Reason, never bool) {
	return part{Source: s.native, Gate: s.gate}.Impossible(n)
}

// countWait counts a wait by reason.
func (s *seat) countWait(r Reason) {
	if s.side != nil {
		s.side.countWait(r)
	}
	s.gate.Waits.CountWait(r)
}

// countRefusal counts a refusal by reason.
func (s *seat) countRefusal(r Reason) {
	if s.side != nil {
		s.side.countRefusal(r)
	}
	s.gate.Waits.CountRefusal(r)
}

// watch begins to watch a wait; over is called when it has ended.
func (s *seat) watch(ctx context.Context, r Reason, n int) (over func(n int, err error)) {
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

// errorOf makes the error of a refusal.
func (s *seat) errorOf(r sharing.Refusal) *Error {
	e := &Error{
		Reason: r.Reason, Limit: s.of.name, Tag: s.label, Cost: r.Cost, RetryAfter: r.RetryAfter, Frozen: r.Frozen, Fallback: r.Fallback, by: s.self,
	}
	if e.Reason == ReasonTooLarge {
		e.Largest = s.native.Largest()
	}
	if s.side != nil {
		s.side.complete(e)
	}
	return e
}
