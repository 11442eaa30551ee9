package throttle

import (
	"context"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
)

// A child is one limiter of an All.
type child = join.Child[Permit]

// flatten appends the children of l. A draw of n takes cost(n) from l, or n if cost is nil.
func flatten(children []child, l Limiter, cost func(int) int) []child {
	if Unlimited(l) {
		return children
	}
	var of []child
	switch l := l.(type) {
	case *multi:
		of = l.Children
	case *tagged:
		of = l.Children
	case *Throttle: // a type that embeds one may have methods of its own
		of = []child{{Limiter: l, Seat: &l.seat.Seat}}
		if l.tags != nil {
			of = l.tags.other.parts()
			for i := range of {
				of[i].Limiter = l
			}
		}
	case *tagView:
		of = l.live().parts()
	case *InFlight:
		of = []child{{Limiter: l, Seat: &l.seat.Seat}}
		if l.tags != nil {
			of[0].Seat = &l.tags.other.own.Seat
		}
	case *slotView:
		of = l.parts()
	default:
		of = []child{{Limiter: l}}
	}
	for _, p := range of {
		children = join.Add(children, p.Within(cost))
	}
	return children
}

// allOf returns the Limiter for children.
func allOf(children []child) Limiter {
	switch {
	case len(children) == 0:
		return unlimited{}
	case join.Single(children):
		return children[0].Limiter
	}
	j := &multi{joined(children)}
	keep(j)
	for _, p := range children {
		if tellsTags(p.Limiter) {
			return &tagged{multi: j}
		}
	}
	return j
}

func joined(children []child) *join.All[Permit] { return join.New(host{}, children) }

// A host is this package as join sees it.
type host struct{}

// HasFallback implements join.Host.
func (host) HasFallback(ctx context.Context) bool { return ctx.Value(fallbackKey{}) != nil }

// Waits implements join.Host.
func (host) Waits(ctx context.Context, others []child, n int) (over func()) {
	return waitsFor(ctx, *heldByOthers(others, n))
}

// Ended implements join.Host.
func (host) Ended(ctx context.Context, others []child, n int) error {
	return ended(ctx, heldByOthers(others, n))
}

// heldByOthers returns the error for a draw of n tokens that limiters of other packages hold back, with the reason if one of them knows it.
func heldByOthers(others []child, n int) *Error {
	e := &Error{Reason: ReasonLimit, Cost: n}
	if t, ok := worstOf(others); ok {
		e.Reason, e.Limit, e.Tag, e.RetryAfter, e.Frozen = t.Reason, t.Limit, t.Tag, t.RetryAfter, t.Frozen
	}
	return e
}
