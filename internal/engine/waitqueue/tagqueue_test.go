package waitqueue

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// fairQueue returns a fair queue, and tag queues with these weights.
func fairQueue(weights ...float64) (q *Queue[int], all []*TagQueue[int]) {
	q = &Queue[int]{}
	q.MakeFair()
	for _, w := range weights {
		all = append(all, NewTagQueue[int](w))
	}
	return q, all
}

// grant serves the first waiter with what it asks for, and returns it.
func grant(q *Queue[int]) *Waiter[int] {
	w := q.First
	q.Remove(w)
	q.Served(w, w.Least)
	return w
}

func push(q *Queue[int], l *TagQueue[int], n int) *Waiter[int] {
	w := &Waiter[int]{TagQueue: l, Least: n}
	q.Push(w)
	return w
}

// shares serves n tokens to tag queues in which two always wait, and counts them by tag queue.
func shares(q *Queue[int], all []*TagQueue[int], sizes []int, n int) []int {
	count := make([]int, len(all))
	for i, l := range all {
		push(q, l, sizes[i])
		push(q, l, sizes[i])
	}
	for served := 0; served < n; {
		w := grant(q)
		i := slices.Index(all, w.TagQueue)
		count[i] += w.Least
		served += w.Least
		push(q, w.TagQueue, w.Least)
	}
	return count
}

func TestQueuesAreServedByWeight(t *testing.T) {
	for _, sizes := range [][]int{{5, 5, 5}, {1, 1, 1}, {20, 1, 7}} {
		q, all := fairQueue(10, 30, 60)
		count := shares(q, all, sizes, 10_000)
		for i, want := range []int{1000, 3000, 6000} {
			require.InDelta(t, want, count[i], 40, "%v of %v", count, sizes)
		}
	}
}

func TestIdleQueueSavesUpNothing(t *testing.T) {
	q, l := fairQueue(1, 1)
	for range 100 {
		push(q, l[0], 1)
		grant(q)
	}
	busy := push(q, l[0], 1)
	push(q, l[0], 1)
	idle := push(q, l[1], 1)
	push(q, l[1], 1)
	require.Equal(t, []*Waiter[int]{busy, idle}, []*Waiter[int]{grant(q), grant(q)})
	require.Equal(t, l[0], grant(q).TagQueue, "they take turns")
}

// While a waiter is set aside, others pass it, those of its tag queue too. Then it is the first of its tag queue, which goes on as if it had been idle.
func TestWaitersSetAside(t *testing.T) {
	q, l := fairQueue(1, 1)
	large := push(q, l[0], 5)
	require.True(t, q.SetAside(large))
	require.False(t, q.SetAside(large))
	require.Nil(t, q.First)
	require.False(t, q.Empty())
	for i := range 2 {
		require.True(t, q.IsNext(&Waiter[int]{TagQueue: l[i], Age: Latest}))
	}
	for i := range 2 {
		for range 100 {
			push(q, l[i], 1)
		}
	}
	require.InDelta(t, 99, q.Before(&Waiter[int]{TagQueue: l[1], Age: Latest})-100, 1, "it is not before others")
	for range 50 {
		require.NotEqual(t, large, grant(q))
		require.True(t, q.IsAside(large))
	}
	require.Equal(t, []*Waiter[int]{large}, slices.Collect(q.Aside()))

	q.Refit(func(w *Waiter[int]) bool { return w.Least > 1 })
	require.Equal(t, large, grant(q))
	require.Nil(t, q.First, "the others do not fit")
	q.Refit(func(*Waiter[int]) bool { return true })
	require.Empty(t, slices.Collect(q.Aside()))
	for i := range 150 {
		if w := grant(q); i >= 10 && i < 50 {
			require.NotEqual(t, w.TagQueue, grant(q).TagQueue, "they take turns")
		}
		if q.Empty() {
			break
		}
	}
	gone := push(q, l[0], 3)
	q.SetAside(gone)
	q.Remove(gone)
	require.True(t, q.Empty())
	require.Zero(t, q.Tokens)
}

// A caller that gives up costs its tag queue nothing, wherever in the tag queue it stood: the tag queue goes on where it was.
func TestCallersThatGiveUpCostTheirQueueNothing(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		q, l := fairQueue(25, 75)
		var waiting []*Waiter[int]
		count := [2]int{}
		for range 4000 {
			for len(waiting) < 30 { // the first tag queue has callers that give up, the second one has patient ones
				waiting = append(waiting, push(q, l[0], 1+r.IntN(3)))
			}
			for range 10 { // ten times as many give up as are served
				i := r.IntN(len(waiting))
				if w := waiting[i]; w.Queued() {
					q.Remove(w)
				}
				waiting = append(slices.Delete(waiting, i, i+1), push(q, l[0], 1+r.IntN(3)))
			}
			if l[1].Empty() {
				push(q, l[1], 2)
			}
			w := grant(q)
			count[slices.Index(l, w.TagQueue)] += w.Least
			waiting = slices.DeleteFunc(waiting, func(v *Waiter[int]) bool { return v == w })
		}
		require.InDelta(t, 0.25, float64(count[0])/float64(count[0]+count[1]), 0.01, "seed %d: %v", seed, count)
	}
}

// What a tag queue has used above its part counts by its new weight: nobody waits for what a tiny weight made of it.
func TestNewWeightsCountForWhatWasUsed(t *testing.T) {
	q, l := fairQueue(1e-3, 100)
	push(q, l[0], 10)
	push(q, l[1], 10)
	grant(q)
	grant(q)
	push(q, l[0], 10)
	q.SetWeight(l[0], 100)
	for range 3 {
		push(q, l[1], 10)
	}
	order := []*TagQueue[int]{grant(q).TagQueue, grant(q).TagQueue, grant(q).TagQueue}
	require.Contains(t, order, l[0])
	for _, w := range []float64{0, -1, math.NaN()} {
		q.SetWeight(l[0], w)
		require.InDelta(t, leastWeight, l[0].Weight(), 0)
	}
}

// The queue agrees with itself: All is the order in which it serves, IsNext holds for the first alone, Before is what All has before, to a
// waiter of each other tag queue, and no sum is lost.
func TestFairQueueAgreesWithItself(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		q, l := fairQueue(1, 5, 20, 100)
		var waiting []*Waiter[int]
		for range 200 {
			switch r.IntN(6) {
			case 0, 1, 2:
				w := &Waiter[int]{Least: 1 + r.IntN(9), Many: r.IntN(8) == 0, TagQueue: l[r.IntN(4)]}
				q.Push(w)
				waiting = append(waiting, w)
			case 3:
				if q.First != nil {
					w := grant(q)
					waiting = slices.DeleteFunc(waiting, func(v *Waiter[int]) bool { return v == w })
				}
			case 4:
				if len(waiting) > 0 {
					i := r.IntN(len(waiting))
					q.Remove(waiting[i])
					waiting = slices.Delete(waiting, i, i+1)
				}
			case 5:
				q.SetWeight(l[r.IntN(4)], 1+100*r.Float64())
				if len(waiting) > 0 {
					w := waiting[r.IntN(len(waiting))]
					w.Many = true
					q.Move(w)
				}
			}
			order := slices.Collect(q.All())
			require.Len(t, order, q.Len)
			require.True(t, slices.Equal(byAge(waiting), byAge(order)))
			tokens := 0
			for i, w := range order {
				require.Equal(t, i == 0, q.First == w && q.IsNext(w))
				slack := 0
				if w.inTagQueue {
					slack = 4 * 10
				}
				require.InDelta(t, tokens, q.Before(w), float64(slack), "seed %d", seed)
				require.GreaterOrEqual(t, q.About(w)+2*slack, q.Before(w), "seed %d", seed)
				require.LessOrEqual(t, q.About(w), q.Tokens)
				tokens += w.Least
			}
			require.Equal(t, tokens, q.Tokens)
		}
	}
}

func BenchmarkFairQueue(b *testing.B) {
	q, l := fairQueue(make([]float64, 1000)...)
	for _, tagQueue := range l {
		for range 100 {
			push(q, tagQueue, 1)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		w := grant(q)
		q.Insert(w)
	}
}
