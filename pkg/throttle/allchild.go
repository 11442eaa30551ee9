package throttle

import (
	"math"
	"slices"
)

// A child is one limiter of an All.
type child struct {
	limiter Limiter
	seat    *seat // of the same limiter if it is of this package
	costs   []func(int) int
	// attached marks a child that belongs to the same limiter as an earlier one.
	attached bool
}

// price returns the cost of n tokens here.
func (p child) price(n int) int {
	if len(p.costs) == 0 {
		return n
	}
	sum := 0
	for _, cost := range p.costs {
		c := max(cost(n), 0)
		if sum > math.MaxInt-c {
			return math.MaxInt
		}
		sum += c
	}
	return sum
}

// asks returns how many tokens must be at hand for a draw of n; see waitqueue.Part.
func (p child) asks(n int) int { return max(p.price(max(n, 1)), 1) }

// draws returns how many tokens a draw of n takes. One that costs none takes a slot, and a token of a limiter of another package, which may
// be slots.
func (p child) draws(n int) int {
	if p.countsCalls() {
		return max(p.price(n), 1)
	}
	return p.price(n)
}

// countsCalls reports whether a draw that costs no tokens takes one here.
func (p child) countsCalls() bool {
	return p.seat == nil || p.seat.perCall
}

// within returns the child as part of a Weigh.
func (p child) within(outer func(int) int) child {
	if outer == nil {
		return p
	}
	inner := p.price
	p.costs = []func(int) int{func(n int) int { return inner(max(outer(n), 0)) }}
	return p
}

// ofTag reports whether ForTag returned the child's limiter.
func (p child) ofTag() bool {
	_, ok := p.limiter.(*tagView)
	return ok
}

// flatten appends the children of l. A draw of n takes cost(n) from l, or n if cost is nil.
func flatten(children []child, l Limiter, cost func(int) int) []child {
	if Unlimited(l) {
		return children
	}
	var of []child
	switch l := l.(type) {
	case *multi:
		of = l.children
	case *tagged:
		of = l.children
	case *Throttle: // a type that embeds one may have methods of its own
		of = []child{{limiter: l, seat: &l.seat}}
		if l.tags != nil {
			of = l.tags.other.parts()
			for i := range of {
				of[i].limiter = l
			}
		}
	case *tagView:
		of = l.live().parts()
	case *InFlight:
		of = []child{{limiter: l, seat: &l.seat}}
		if l.tags != nil {
			of[0].seat = &l.tags.other.own
		}
	case *slotView:
		of = l.parts()
	default:
		of = []child{{limiter: l}}
	}
	for _, p := range of {
		children = add(children, p.within(cost))
	}
	return children
}

// add adds a child. A limiter of this package that is already there is drawn from once, for both.
func add(children []child, p child) []child {
	for i := range children {
		if q := &children[i]; p.seat != nil && q.seat != nil && q.seat.rank == p.seat.rank {
			*q = q.joined(&p)
			q.costs = []func(int) int{q.within(nil).price, p.price}
			return children
		}
	}
	return append(children, p)
}

// joined returns the child for the tags of both, if they are those of an InFlight.
func (p child) joined(with *child) child {
	v, ok := p.seat.native.(*slotTagSource)
	w, also := with.seat.native.(*slotTagSource)
	if ok && also && v.view != w.view {
		both := v.tags.viewOf(append(slices.Clone(v.view.names), w.view.names...), false)
		p.limiter, p.seat = both, &both.own
	}
	return p
}

// join returns the Limiter for children.
func join(children []child) Limiter {
	switch {
	case len(children) == 0:
		return unlimited{}
	case single(children):
		return children[0].limiter
	}
	j := multiOf(children)
	keep(j)
	for _, p := range children {
		if tellsTags(p.limiter) {
			return &tagged{multi: j}
		}
	}
	return j
}

// single reports whether the children are one limiter without weights.
func single(children []child) bool {
	for i, p := range children {
		if len(p.costs) > 0 || p.attached != (i > 0) {
			return false
		}
	}
	return true
}

// multiOf returns the multi that draws from children.
func multiOf(children []child) *multi {
	slices.SortStableFunc(children, func(p, q child) int { // in lock order, other packages last
		switch {
		case p.seat != nil && q.seat != nil && p.seat.rank < q.seat.rank, p.seat != nil && q.seat == nil:
			return -1
		case p.seat == nil && q.seat == nil:
			return 0
		}
		return 1
	})
	j := &multi{children: children}
	for len(j.natives) < len(children) && children[len(j.natives)].seat != nil {
		p := children[len(j.natives)]
		child := p.seat.native.part()
		if len(p.costs) > 0 || p.countsCalls() {
			child.Price = p.draws
		}
		j.natives = append(j.natives, child)
	}
	return j
}
