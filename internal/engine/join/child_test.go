package join

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func fixed(costs ...int) (list []func(int) int) {
	for _, c := range costs {
		list = append(list, func(int) int { return c })
	}
	return list
}

func double(n int) int { return 2 * n }
func less5(n int) int  { return n - 5 }

// What a draw costs is the sum of its costs, none of them below zero. What it asks for is a token at least.
func TestPrices(t *testing.T) {
	seat := &Seat[permit]{}
	for _, c := range []struct {
		costs       []func(int) int
		n           int
		price, asks int
	}{
		{nil, 7, 7, 7},
		{nil, 0, 0, 1},
		{fixed(3), 7, 3, 3},
		{fixed(3, 4), 7, 7, 7},
		{fixed(-3, 4), 7, 4, 4},
		{fixed(-3), 7, 0, 1},
		{fixed(0), 7, 0, 1},
		{[]func(int) int{double}, 0, 0, 2},
		{[]func(int) int{less5}, 7, 2, 2},
		{fixed(math.MaxInt-1, 1), 7, math.MaxInt, math.MaxInt},
		{fixed(math.MaxInt, 1), 7, math.MaxInt, math.MaxInt},
		{fixed(1, math.MaxInt, math.MaxInt, 5), 7, math.MaxInt, math.MaxInt},
	} {
		p := Child[permit]{Seat: seat, costs: c.costs}
		require.Equal(t, c.costs != nil, p.Weighed())
		require.Equal(t, c.price, p.Price(c.n))
		require.Equal(t, c.asks, p.Asks(c.n))
		require.Equal(t, c.price, p.draws(c.n))
		if cost := p.Cost(); c.costs != nil {
			require.Equal(t, c.price, cost(c.n))
		} else {
			require.Nil(t, cost)
		}
	}
}

// A slot is taken by a draw that costs none, and so is a token of a limiter without a source.
func TestADrawOfNothingCounts(t *testing.T) {
	for _, p := range []Child[permit]{{}, {Seat: &Seat[permit]{PerCall: true}}} {
		require.Equal(t, 1, p.draws(0))
		require.Equal(t, 5, p.draws(5))
		p.costs = fixed(-2)
		require.Equal(t, 1, p.draws(5))
		require.Zero(t, p.Price(5))
	}
	tokens := Child[permit]{Seat: &Seat[permit]{}}
	require.Zero(t, tokens.draws(0))
}

func TestCostsWithinCosts(t *testing.T) {
	p := Child[permit]{}
	require.False(t, p.Within(nil).Weighed())
	p = p.Within(double).Within(less5)
	require.True(t, p.Weighed())
	require.Equal(t, 4, p.Price(7), "less 5, then twice")
	seen := 7
	p = Child[permit]{}.Within(func(n int) int { seen = n; return n }).Within(less5)
	require.Zero(t, p.Price(3))
	require.Zero(t, seen, "an outer cost below zero is none")
}

// A merger keeps what it has become.
type merger struct {
	*fake

	with Child[permit]
}

func (m *merger) Merge(p, with Child[permit]) Child[permit] {
	m.with = with
	p.Attached = true
	return p
}

// A limiter that is named twice is drawn from once, for both.
func TestAddMergesEqualRanks(t *testing.T) {
	list := fakes(t, 10, 10)
	all := children(list)
	all = Add(all, Child[permit]{Seat: &Seat[permit]{Rank: 2}}.Within(double))
	require.Len(t, all, 2)
	require.Equal(t, 7, all[0].Price(7))
	require.Equal(t, 21, all[1].Price(7), "7 and 14")
	require.Same(t, &list[1].seat, all[1].Seat, "the first one stays")
	all = Add(all, Child[permit]{Seat: &Seat[permit]{Rank: 3}})
	require.Len(t, all, 3)
	for range 2 { // nobody knows whether these are one
		all = Add(all, Child[permit]{Limiter: newForeign(0)})
	}
	require.Len(t, all, 5)
	all = Add(all, Child[permit]{Seat: &Seat[permit]{Rank: 3}})
	require.Len(t, all, 5)

	m := &merger{fake: list[0]}
	list[0].seat.Source = m
	with := Child[permit]{Seat: &Seat[permit]{Rank: 1, PerCall: true}}
	all = Add(all, with)
	require.Equal(t, with, m.with)
	require.True(t, all[0].Attached)
	require.Equal(t, 14, all[0].Price(7), "a draw costs both, whatever it was merged into")
}

func TestSingle(t *testing.T) {
	plain, attached := Child[permit]{}, Child[permit]{Attached: true}
	weighed, weighedToo := plain.Within(double), attached.Within(double)
	for _, c := range []struct {
		single bool
		of     []Child[permit]
	}{
		{true, []Child[permit]{plain}},
		{true, []Child[permit]{plain, attached, attached}},
		{false, []Child[permit]{plain, plain}},
		{false, []Child[permit]{plain, attached, plain}},
		{false, []Child[permit]{attached}},
		{false, []Child[permit]{weighed}},
		{false, []Child[permit]{plain, weighedToo}},
	} {
		require.Equal(t, c.single, Single(c.of))
	}
}

// Sources stand in the order of their locks, before limiters without one, which keep theirs.
func TestOrder(t *testing.T) {
	at := func(rank uint64) Child[permit] {
		return Child[permit]{Seat: &Seat[permit]{Rank: rank, Source: &fake{}}}
	}
	x, y, z := newForeign(1), newForeign(2), newForeign(3)
	all := New(nil, []Child[permit]{{Limiter: x}, at(9), at(7), {Limiter: y}, at(8), {Limiter: z}, at(6)})
	var ranks []uint64
	for _, p := range all.Children[:4] {
		ranks = append(ranks, p.Seat.Rank)
	}
	require.Equal(t, []uint64{6, 7, 8, 9}, ranks)
	for i, f := range []*foreign{x, y, z} {
		require.Nil(t, all.Children[4+i].Seat)
		require.Same(t, f, all.Children[4+i].Limiter)
	}
	require.Len(t, all.Parts, 4)
	require.Empty(t, New(nil, []Child[permit]{{Limiter: x}}).Parts)
	require.Len(t, New(nil, []Child[permit]{at(1), at(2)}).Parts, 2)
}

// A part has a price of its own only where a draw costs something else.
func TestPricesOfParts(t *testing.T) {
	list := fakes(t, 0, 0, 0)
	all := children(list)
	all[1] = all[1].Within(double)
	list[2].seat.PerCall = true
	parts := New(nil, all).Parts
	require.Nil(t, parts[0].Price)
	require.Equal(t, 14, parts[1].Price(7))
	require.Zero(t, parts[1].Price(0))
	require.Equal(t, 7, parts[2].Price(7))
	require.Equal(t, 1, parts[2].Price(0))
}
