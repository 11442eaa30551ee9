package join

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestTryAcquireIsAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		hands, left []int
		n           int
		lacks       int // -1: nothing does
	}{
		{[]int{5, 5}, []int{2, 2}, 3, -1},
		{[]int{3, 3}, []int{0, 0}, 3, -1},
		{[]int{2, 5}, []int{2, 5}, 3, 0},
		{[]int{5, 2}, []int{5, 2}, 3, 1},
		{[]int{5, 5, 2}, []int{5, 5, 2}, 3, 2},
		{[]int{2, 2}, []int{2, 2}, 3, 0},
		{[]int{1, 1}, []int{1, 1}, 0, -1},
		{[]int{1, 0}, []int{1, 0}, 0, 1},
	} {
		list := fakes(t, c.hands...)
		all, _ := allOf(list)
		g := all.TryAcquire(c.n)
		require.Equal(t, c.lacks < 0, g != nil)
		require.Equal(t, c.left, hands(list))
		for i, f := range list {
			var want []string
			if i == c.lacks {
				want = []string{"wanted " + string(rune('0'+max(c.n, 1))) + " false", "refused " + f.name}
			}
			require.Equal(t, want, f.logged(), "the first that lacks tokens is told, and no other")
			if g != nil && c.n > 0 {
				require.Equal(t, permit{f, c.n}, g.Permits[i])
			}
		}
		if g != nil {
			require.Equal(t, c.n, g.N)
			require.Len(t, g.Permits, len(list))
			require.Equal(t, all.Children, g.Children)
		}
	}
}

func TestADrawBelowNothingIsRefused(t *testing.T) {
	list := fakes(t, 5, 5)
	all, _ := allOf(list)
	require.Nil(t, all.TryAcquire(-1))
	require.Equal(t, []int{5, 5}, hands(list))
	require.Empty(t, list[0].log)
}

// A draw that can never succeed at one is no demand on any, and told to that one.
func TestAnImpossibleDrawIsNoDemand(t *testing.T) {
	list := fakes(t, 2, 5, 0)
	list[1].largest = 5
	all, _ := allOf(list)
	require.Nil(t, all.TryAcquire(6))
	require.Empty(t, list[0].logged())
	require.Equal(t, []string{"refused too_large"}, list[1].logged())
	require.Empty(t, list[2].logged())

	require.Nil(t, all.TryAcquire(5), "the largest draw is none of them")
	require.Equal(t, []string{"wanted 5 false", "refused a"}, list[0].logged())

	list[2].close()
	require.Nil(t, all.TryAcquire(1))
	require.Equal(t, []string{"refused closed"}, list[2].logged())
	require.Equal(t, []int{2, 5, 0}, hands(list))
	list[2].give(5)
	require.Nil(t, all.TryAcquire(1), "also with tokens at hand")
	require.Equal(t, []string{"refused closed"}, list[2].logged())
	require.Equal(t, []int{2, 5, 5}, hands(list))
}

func TestTryAcquireByPrices(t *testing.T) {
	list := fakes(t, 10, 20, 10, 10)
	all := children(list)
	all[1], all[2], all[3] = all[1].Within(double), all[2].Within(less5), all[3].Within(less5)
	list[3].seat.PerCall = true
	j := New(&fakeHost{}, all)
	require.NotNil(t, j.TryAcquire(7))
	require.Equal(t, []int{3, 6, 8, 8}, hands(list))
	g := j.TryAcquire(3)
	require.Equal(t, []int{0, 0, 8, 7}, hands(list), "a cost of nothing draws nothing, but a slot")
	require.Equal(t, []permit{{list[0], 3}, {list[1], 6}, {}, {list[3], 1}}, g.Permits)
	list[0].give(1)
	require.Nil(t, j.TryAcquire(1))
	require.Equal(t, []string{"wanted 2 false", "refused b"}, list[1].logged(), "by the price there")
	list[1].give(2)
	list[2].hand = 0
	require.Nil(t, j.TryAcquire(1), "it passes nothing that holds back the least draw")
	require.Equal(t, []string{"wanted 1 false", "refused c"}, list[2].logged())
}

// A draw may come between the look and the draw of another limiter: what was drawn goes back.
func TestADrawBetweenLeavesNothingDrawn(t *testing.T) {
	list := fakes(t, 5, 5, 5, 5)
	all := children(list)
	all[1] = all[1].Within(less5)
	list[2].seat.LockFree = lockFree{list[2]}
	list[3].between = 1
	j := New(&fakeHost{}, all)
	require.Nil(t, j.TryAcquire(4))
	require.Equal(t, []int{5, 5, 5, 5}, hands(list))
	require.Empty(t, list[0].logged())
	require.Equal(t, []string{"undraw 4"}, list[2].logged())
	require.Equal(t, []string{"wanted 4 false", "refused d"}, list[3].logged())
	require.NotNil(t, j.TryAcquire(4))
	require.Equal(t, []int{1, 5, 1, 1}, hands(list))

	require.Nil(t, j.TryAcquire(4))
	require.Equal(t, []string{"wanted 4 false", "refused a"}, list[0].logged())
	list[0].hand = 5
	require.Nil(t, j.TryAcquire(4))
	require.Equal(t, []string{"wanted 4 false", "refused no 4"}, list[2].logged(), "it explains without a lock")
}

// A limiter without a source is drawn from last, at least a token, and what was drawn from others goes back if it refuses.
func TestTryAcquireOfForeignLimiters(t *testing.T) {
	list := fakes(t, 9)
	x, y := newForeign(9), newForeign(4)
	j := New(&fakeHost{}, append([]Child[permit]{{Limiter: x}, {Limiter: y}}, children(list)...))
	g := j.TryAcquire(4)
	require.Equal(t, []permit{{list[0], 4}, {x, 4}, {y, 4}}, g.Permits)
	require.Nil(t, j.TryAcquire(1))
	require.Equal(t, []int{5}, hands(list))
	require.Equal(t, 5, x.hand)
	require.Equal(t, 1, x.back)
	require.Zero(t, y.back)
	require.Empty(t, list[0].logged(), "no other limiter hears of it")
	y.hand = 1
	require.NotNil(t, j.TryAcquire(0))
	require.Equal(t, []int{5}, hands(list))
	require.Equal(t, 4, x.hand)
	require.Zero(t, y.hand)
}

func TestWinNow(t *testing.T) {
	list := fakes(t, 5, 10)
	all := children(list)
	all[1] = all[1].Within(double)
	j := New(&fakeHost{}, all)
	require.Nil(t, j.WinNow(6))
	require.Equal(t, []int{5, 10}, hands(list))
	g := j.WinNow(5)
	require.Equal(t, 5, g.N)
	require.Equal(t, []permit{{list[0], 5}, {list[1], 10}}, g.Permits)
	require.Equal(t, []int{0, 0}, hands(list))
	require.Nil(t, j.WinNow(1))
	require.Empty(t, list[0].logged(), "no refusal is noted")
}

// Acquire draws at once from limiters that have enough, but not for a caller that is gone.
func TestAcquireWithoutAWait(t *testing.T) {
	list := fakes(t, 5, 5)
	all, h := allOf(list)
	g, err := all.Acquire(t.Context(), 3, false)
	require.NoError(t, err)
	require.Equal(t, 3, g.N)
	require.Equal(t, []int{2, 2}, hands(list))
	g, err = all.Acquire(t.Context(), 3, true)
	require.NoError(t, err)
	require.Equal(t, 2, g.N, "as many as all have")
	require.Equal(t, []int{0, 0}, hands(list))
	require.Empty(t, list[0].logged())
	require.Zero(t, h.guarded)

	list[0].hand, list[1].hand = 5, 5
	gone, leave := context.WithCancelCause(t.Context())
	why := errors.New("why")
	leave(why)
	for _, upTo := range []bool{false, true} {
		_, err = all.Acquire(gone, 3, upTo)
		require.Equal(t, why, err)
	}
	require.Equal(t, []int{5, 5}, hands(list))
}

// A seat explains a refusal as its source does, unless it is one for good.
func TestWhy(t *testing.T) {
	f := fakes(t, 0)[0]
	require.Equal(t, limit.Reason("a"), f.seat.Why(3))
	require.Equal(t, limit.ReasonTooLarge, f.seat.Why(1001))
	_, never := f.seat.Impossible(1000)
	require.False(t, never)
	f.close()
	require.Equal(t, limit.ReasonClosed, f.seat.Why(3))

	w := Newcomer(f, 3)
	require.Equal(t, 3, w.N)
	require.Equal(t, 3, w.Least)
	require.Equal(t, uint64(1<<64-1), w.Age, "behind all others")
}

func TestAlone(t *testing.T) {
	f := fakes(t, 5)[0]
	j := NewAlone(&f.seat)
	p, err := j.Acquire(t.Context(), 3, false)
	require.NoError(t, err)
	require.Equal(t, permit{f, 3}, p)
	p, err = j.Acquire(t.Context(), 3, true)
	require.NoError(t, err)
	require.Equal(t, permit{f, 2}, p)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	f.due, f.unknown = time.Minute, false
	p, err = j.Acquire(ctx, 3, false)
	var why refused
	require.ErrorAs(t, err, &why)
	require.Equal(t, "a", why.at)
	require.Zero(t, p)
}
