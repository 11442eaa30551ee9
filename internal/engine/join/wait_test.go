package join

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An outcome is what an Acquire has returned.
type outcome struct {
	*Bundle[permit]

	err error
}

// waiting lets a caller draw, and returns once it waits, with where it says how it ended.
func waiting(ctx context.Context, j *All[permit], n int, upTo bool) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		g, err := j.Acquire(ctx, n, upTo)
		ended <- outcome{g, err}
	}()
	synctest.Wait()
	return ended
}

// A call counts as one wait, for the limiter that it waited for first, and is watched where it waits.
func TestAWaitIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 9, 0, 0)
		list[0].seat.Aside = true
		j, h := allOf(list)
		ended := waiting(t.Context(), j, 3, false)
		require.Equal(t, []string{"waits b", "watch b 3"}, list[1].logged())
		require.Empty(t, list[2].logged())
		list[1].give(3)
		synctest.Wait()
		require.Equal(t, []string{"over 0 false"}, list[1].logged())
		require.Equal(t, []string{"watch c 3"}, list[2].logged())
		require.Equal(t, []int{9, 3, 0}, hands(list), "nothing is held")
		list[2].give(3)
		require.Equal(t, 3, (<-ended).N)
		require.Equal(t, []string{"over 3 false"}, list[2].logged())
		require.Equal(t, []int{6, 0, 0}, hands(list))
		require.Zero(t, h.guarded)
	})
}

// Where a caller is counted beside the limit's queue, its attempt says so.
func TestAsideIsWhereACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, aside := range []bool{false, true} {
			list := fakes(t, 0, 9)
			list[0].seat.Aside = aside
			j, _ := allOf(list)
			ended := waiting(t.Context(), j, 3, false)
			require.Equal(t, aside, list[0].standing[0].Attempt.Aside.Load())
			list[0].give(3)
			<-ended
		}
	})
}

// A failed wait is over with its error, and everything goes back.
func TestAWaitThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 9, 0)
		x := newForeign(9)
		j := New(&fakeHost{}, append(children(list), Child[permit]{Limiter: x}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := waiting(ctx, j, 3, false)
		cancel()
		var why refused
		require.ErrorAs(t, (<-ended).err, &why)
		require.Equal(t, refused{sharing.Refusal{Reason: "b", Cost: 3}, "b", true}, why)
		require.Equal(t, []string{"waits b", "watch b 3", "over 0 true"}, list[1].logged(), "a caller that leaves is neither a refusal nor a demand")
		require.Equal(t, []int{9, 0}, hands(list))
		require.Equal(t, 9, x.hand)
	})
}

// A caller that can do without waits for no budget.
func TestAFallbackWaitsForNoBudget(t *testing.T) {
	list := fakes(t, 9, 0)
	list[1].budget = true
	j, h := allOf(list)
	h.fallback = true
	_, err := j.Acquire(t.Context(), 3, false)
	var why refused
	require.ErrorAs(t, err, &why)
	require.False(t, why.ended)
	require.Equal(t, []string{"wanted 3 true", "refused b"}, list[1].logged())
}

// A caller that has waited before keeps its age.
func TestAWaiterKeepsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 0)
		j, _ := allOf(list)
		ended := make(chan error, 1)
		go func() {
			_, err := j.Wait(t.Context(), 3, false, 7)
			ended <- err
		}()
		synctest.Wait()
		require.EqualValues(t, 7, list[0].standing[0].Age)
		list[0].give(3)
		require.NoError(t, <-ended)
	})
}

// While a caller waits for a limiter without a source it holds nothing. What is granted there is used if the others have theirs at hand.
func TestNothingIsHeldDuringAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 9, 9)
		x, y := newForeign(5), newForeign(0)
		h := &fakeHost{}
		j := New(h, append(children(list), Child[permit]{Limiter: x}, Child[permit]{Limiter: y}.Within(double)))
		ended := waiting(t.Context(), j, 4, false)
		require.Equal(t, []int{9, 9}, hands(list))
		require.Equal(t, 5, x.hand)
		require.Equal(t, []int{8}, y.asked, "by its price")
		require.Equal(t, []int{4}, h.waits)
		y.comes <- 8
		require.Equal(t, []permit{{list[0], 4}, {list[1], 4}, {x, 4}, {y, 8}}, (<-ended).Permits)
		require.Equal(t, []int{5, 5}, hands(list))
		require.Equal(t, 1, x.hand)
		require.Equal(t, 1, h.overs)
		require.Equal(t, []int{1, 1}, []int{h.guarded, h.freed})
	})
}

// If the others lack tokens by then, what was granted goes back, and the caller waits for them.
func TestWhatCannotBeUsedGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 9)
		x := newForeign(0)
		h := &fakeHost{}
		j := New(h, append(children(list), Child[permit]{Limiter: x}))
		ended := waiting(t.Context(), j, 4, false)
		list[0].hand = 0
		x.comes <- 4
		synctest.Wait()
		require.Equal(t, []int{4, 4}, []int{x.hand, x.back})
		require.Empty(t, list[0].logged(), "it sleeps for a moment")
		require.Equal(t, []int{4, 4}, h.waits)
		time.Sleep(shortestPause)
		synctest.Wait()
		require.Equal(t, []string{"waits a", "watch a 4"}, list[0].logged())
		list[0].give(4)
		require.Equal(t, 4, (<-ended).N)
		require.Equal(t, []int{0, 0}, []int{x.hand, hands(list)[0]})
		require.Equal(t, 2, h.overs)
	})
}

// Limiters that grant Acquire and refuse TryAcquire don't keep a caller busy: its pauses grow to a tenth of a second.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := newForeign(9), newForeign(9)
		x.late, y.late = 1000, 10
		h := &fakeHost{}
		j := New(h, []Child[permit]{{Limiter: x}, {Limiter: y}})
		began := time.Now()
		g, err := j.Acquire(t.Context(), 2, false)
		require.NoError(t, err)
		require.Equal(t, []permit{{x, 2}, {y, 2}}, g.Permits)
		require.Equal(t, (1+2+4+8+16+32+64+100+100+100)*time.Millisecond, time.Since(began))
		require.Len(t, h.waits, 11+10)
		require.Equal(t, 21, h.overs)
		require.Equal(t, []int{7, 20}, []int{x.hand, x.back})
	})
}

// A draw of up to some tokens halves what limiters without a source refuse, and waits for one at the last.
func TestUpToHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 9)
		x, y := newForeign(3), newForeign(9)
		j := New(&fakeHost{}, append(children(list), Child[permit]{Limiter: x}, Child[permit]{Limiter: y}))
		g, err := j.Acquire(t.Context(), 9, true)
		require.NoError(t, err)
		require.Equal(t, 2, g.N, "of 9, 4, 2")
		require.Equal(t, []permit{{list[0], 2}, {x, 2}, {y, 2}}, g.Permits)
		require.Zero(t, y.back)

		x.hand = 0
		ended := waiting(t.Context(), j, 4, true)
		require.Equal(t, []int{1}, x.asked)
		list[0].hand = 0
		x.comes <- 8 // it can't use one now, and tries again with all that it wants
		time.Sleep(shortestPause)
		synctest.Wait()
		list[0].give(9)
		require.Equal(t, 4, (<-ended).N)
	})
}

// A call ends with its context wherever it waits, and with ErrClosed when one of the limiters is closed.
func TestAWaitForOthersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := fakes(t, 9)
		x := newForeign(0)
		h := &fakeHost{}
		j := New(h, append(children(list), Child[permit]{Limiter: x}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := waiting(ctx, j, 4, false)
		cancel()
		require.Equal(t, context.Canceled, (<-ended).err)
		ended = waiting(t.Context(), j, 4, false)
		h.end(sharing.ErrClosed)
		require.Equal(t, sharing.ErrClosed, (<-ended).err)
		ended = waiting(t.Context(), j, 4, false)
		h.end(errors.New("another cause"))
		require.Equal(t, context.Canceled, (<-ended).err)
		require.Equal(t, []int{9}, hands(list))
		require.Equal(t, []int{3, 3}, []int{h.guarded, h.freed})

		y := newForeign(9) // while it sleeps
		x.hand, x.late, y.late = 9, 1000, 1000
		only := New(h, []Child[permit]{{Limiter: x}, {Limiter: y}})
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		_, err := only.Acquire(ctx, 4, false)
		require.EqualError(t, err, "ended: 4 tokens of 2 others")
		_, err = only.Wait(ctx, 3, false, 0)
		require.EqualError(t, err, "ended: 3 tokens of 2 others")
		require.Equal(t, []int{9, 9}, []int{x.hand, y.hand})
	})
}

// The locks are taken by rank, and limiters without a source are drawn from last, in the order given.
func TestChildrenAreSorted(t *testing.T) {
	list := fakes(t, 1, 1, 1, 1)
	x, y, z := newForeign(1), newForeign(1), newForeign(1)
	sorted := append(children(list), Child[permit]{Limiter: x}, Child[permit]{Limiter: y}, Child[permit]{Limiter: z})
	for range 500 {
		mixed := make([]Child[permit], 0, len(sorted))
		foreigns := sorted[len(list):]
		own := rand.Perm(len(list))
		for len(own)+len(foreigns) > 0 {
			if len(own) == 0 || len(foreigns) > 0 && rand.IntN(2) == 0 {
				mixed, foreigns = append(mixed, foreigns[0]), foreigns[1:]
				continue
			}
			mixed, own = append(mixed, sorted[own[0]]), own[1:]
		}
		sort(mixed)
		require.Equal(t, sorted, mixed)
	}
}

// A draw for which nobody can have the tokens is refused with its reason, whoever stands there.
func TestAnImpossibleDrawDoesNotWait(t *testing.T) {
	list := fakes(t, 9, 4)
	list[1].largest = 5
	j, _ := allOf(list)
	_, err := j.Acquire(t.Context(), 6, false)
	var why refused
	require.ErrorAs(t, err, &why)
	require.Equal(t, limit.ReasonTooLarge, why.Reason)
	require.Equal(t, []string{"refused too_large"}, list[1].logged(), "it is no demand")
}
