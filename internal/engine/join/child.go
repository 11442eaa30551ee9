package join

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A Permit is what a limiter grants. Cancel of the zero one does nothing.
type Permit interface{ Cancel() }

// A Limiter grants tokens. It may be of another package, and have no Source.
type Limiter[P Permit] interface {
	Acquire(ctx context.Context, n int) (P, error)
	AcquireUpTo(ctx context.Context, n int) (P, error)
	TryAcquire(n int) (P, bool)
}

// A Child is one limiter of an All.
type Child[P Permit] struct {
	Limiter Limiter[P]
	Seat    *Seat[P] // of the same limiter; nil: it has no Source
	costs   []func(int) int
	// Attached marks a child that belongs to the same limiter as an earlier one.
	Attached bool
}

// Weighed reports whether a draw of n costs another number of tokens here.
func (p Child[P]) Weighed() bool { return len(p.costs) > 0 }

// Price returns the cost of n tokens here.
func (p Child[P]) Price(n int) int { return price(p.costs, n) }

// price is inlined nowhere, so that Price is: that saves copying the child.
func price(costs []func(int) int, n int) int {
	if len(costs) == 0 {
		return n
	}
	sum := 0
	for _, cost := range costs {
		c := max(cost(n), 0)
		if sum > math.MaxInt-c {
			return math.MaxInt
		}
		sum += c
	}
	return sum
}

// Cost is Price if the child is weighed, or nil.
func (p Child[P]) Cost() func(n int) int {
	if !p.Weighed() {
		return nil
	}
	return p.Price
}

// Asks returns how many tokens must be at hand for a draw of n; see waitqueue.Part.
func (p Child[P]) Asks(n int) int { return max(p.Price(max(n, 1)), 1) }

// draws returns how many tokens a draw of n takes. One that costs none takes a slot, and a token of a limiter without a Source, which may be
// slots.
func (p *Child[P]) draws(n int) int {
	cost := price(p.costs, n)
	if p.countsCalls() {
		return max(cost, 1)
	}
	return cost
}

// countsCalls reports whether a draw that costs no tokens takes one here.
func (p *Child[P]) countsCalls() bool { return p.Seat == nil || p.Seat.PerCall }

// Within returns the child for draws of outer(n) tokens, or of n if outer is nil.
func (p Child[P]) Within(outer func(int) int) Child[P] {
	if outer == nil {
		return p
	}
	inner := p.Price
	p.costs = []func(int) int{func(n int) int { return inner(max(outer(n), 0)) }}
	return p
}

// Add adds a child. A source that is already there is drawn from once, for both.
func Add[P Permit](children []Child[P], p Child[P]) []Child[P] {
	for i := range children {
		if q := children[i]; p.Seat != nil && q.Seat != nil && q.Seat.Rank == p.Seat.Rank {
			costs := []func(int) int{q.Price, p.Price}
			if m, ok := q.Seat.Source.(Merger[P]); ok {
				q = m.Merge(q, p)
			}
			q.costs = costs
			children[i] = q
			return children
		}
	}
	return append(children, p)
}

// Single reports whether the children are one limiter without weights.
func Single[P Permit](children []Child[P]) bool {
	for i, p := range children {
		if p.Weighed() || p.Attached != (i > 0) {
			return false
		}
	}
	return true
}

// sort puts the children into the order of their locks, those without a Source last.
func sort[P Permit](children []Child[P]) {
	place := func(p Child[P]) uint64 {
		if p.Seat == nil {
			return math.MaxUint64
		}
		return p.Seat.Rank
	}
	slices.SortStableFunc(children, func(p, q Child[P]) int { return cmp.Compare(place(p), place(q)) })
}
