package lanes

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

type place struct {
	lane int
	s    Start
}

// serve takes n places of lanes that always have two waiters, and counts them by lane.
func serve(c *Clock, all []*Lane, n, size int) []int {
	var queue []place
	count := make([]int, len(all))
	for i, l := range all {
		queue = append(queue, place{i, c.Enter(l, size)}, place{i, c.Enter(l, size)})
	}
	for range n {
		best := 0
		for i := range queue {
			if queue[i].s.At < queue[best].s.At {
				best = i
			}
		}
		p := queue[best]
		c.Serve(all[p.lane], p.s, size)
		count[p.lane]++
		queue[best] = place{p.lane, c.Enter(all[p.lane], size)}
	}
	return count
}

func TestLanesAreServedByWeight(t *testing.T) {
	var c Clock
	all := []*Lane{{}, {}, {}}
	for i, w := range []float64{10, 30, 60} {
		all[i].SetWeight(w)
	}
	count := serve(&c, all, 1000, 5)
	for i, want := range []int{100, 300, 600} {
		require.InDelta(t, want, count[i], 3)
	}
}

func TestIdleLaneStartsAtThePresent(t *testing.T) {
	var c Clock
	busy, idle := &Lane{}, &Lane{}
	busy.SetWeight(1)
	idle.SetWeight(1)
	for range 100 {
		c.Serve(busy, c.Enter(busy, 1), 1)
	}
	waiting := c.Enter(busy, 1)
	first := c.Enter(idle, 1)
	require.InDelta(t, waiting.At, first.At, 0, "it has saved up nothing")
	require.Greater(t, c.Enter(idle, 1).At, first.At)
}

func TestLaneThatGivesUpOwesNothing(t *testing.T) {
	var c Clock
	l := &Lane{}
	l.SetWeight(2)
	a, b := c.Enter(l, 10), c.Enter(l, 10)
	require.Equal(t, []float64{0, 5}, []float64{a.At, b.At})
	c.Leave(l, b)
	require.InDelta(t, 5, c.Next(l), 0, "the last one is forgotten")
	c.Leave(l, a)
	require.InDelta(t, 0, c.Next(l), 0)
	s := c.Enter(l, 1)
	c.Serve(l, s, 7)
	require.InDelta(t, 3.5, c.Next(l), 1e-9, "what was really granted counts")
	require.Zero(t, l.Waiting())
}

func TestWeightsThatAreNone(t *testing.T) {
	for _, w := range []float64{0, -1, math.NaN()} {
		l := &Lane{}
		l.SetWeight(w)
		require.InDelta(t, least, l.Weight(), 0)
	}
	var c Clock
	require.Zero(t, c.Enter(nil, 5).At)
	c.Serve(nil, Start{}, 5)
}
