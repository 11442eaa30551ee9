package fairslots

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pod is a processor of a pool whose store grants what its claims leave room for.
type pod struct{ demand, running, granted, free int64 }

// sync is one request of a pod: it asks, and calls begin in what it is granted. Calls beyond that go on until they end.
func (p *pod) sync(all []*pod, rank int, total, turn int64) {
	a, claimed := Asking{Here: p.demand, Total: total, Spare: p.free > 1, Turn: turn, Rank: rank, Processors: len(all)}, int64(0)
	for _, o := range all {
		if o != p {
			a.Elsewhere += o.demand
			claimed += max(o.granted, o.running)
		}
	}
	p.granted = max(min(a.Ask(), total-claimed), 0)
	if p.free++; p.granted+claimed >= total {
		p.free = 0
	}
	p.running = max(p.running, min(p.demand, p.granted))
}

// Whatever pods ask for, all slots of a total are in use where there is demand for them, and each pod gets its part by callers over some leases.
func TestAskUsesTheTotal(t *testing.T) {
	for _, tc := range []struct {
		total   int64
		demands []int64
	}{{4, []int64{10}}, {4, []int64{1, 1}}, {1, []int64{3, 3, 3, 3}}, {3, []int64{5, 5}}, {5, []int64{1, 9}}, {7, []int64{4, 4, 4}}, {2, []int64{1, 0, 0, 9}}} {
		var pods []*pod
		all := int64(0)
		for _, d := range tc.demands {
			pods = append(pods, &pod{demand: d})
			all += d
		}
		r := rand.New(rand.NewPCG(1, uint64(tc.total)))
		had, used, syncs := make([]int64, len(pods)), int64(0), int64(0)
		for at := range int64(40_000) { // ten syncs of each a lease
			turn := at / int64(10*len(pods))
			i := r.IntN(len(pods))
			p := pods[i]
			p.running = min(p.running, p.granted) // its calls are short
			p.sync(pods, i, tc.total, turn)
			sum := int64(0)
			for k, o := range pods {
				had[k] += o.running
				sum += max(o.granted, o.running)
			}
			require.LessOrEqual(t, sum, tc.total)
			used, syncs = used+sum, syncs+1
		}
		require.Greater(t, float64(used)/float64(syncs), 0.9*float64(min(tc.total, all)), "%v", tc)
		for k, d := range tc.demands {
			part := float64(min(d, tc.total))
			if all > tc.total {
				part = float64(tc.total*d) / float64(all)
			}
			got := float64(had[k]) / float64(syncs)
			require.True(t, got > 0.7*part-0.01 && got < part+0.5, "pod %d of %v has %v", k, tc, got)
		}
	}
}

// What is reserved for others is no part of the rest, neither are the callers that use it; an idle reservation is lent.
func TestAskByReservations(t *testing.T) {
	for want, of := range map[int64][]Asking{
		3: {{Here: 4, Elsewhere: 6, Total: 6, Reserved: 2, Processors: 2, Rank: 1}},
		2: {{Here: 4, Elsewhere: 6, Total: 6, ReservedElsewhere: 2, Processors: 2, Rank: 1}},
		9: {{Here: 9, Elsewhere: 1, Total: 10, ReservedElsewhere: 6, Processors: 2, Rank: 1}},
		1: {{Here: 3, Elsewhere: 6, Total: 1, Processors: 3, Rank: 0}, {Here: 3, Elsewhere: 6, Total: 1, Processors: 3, Rank: 1}},
		0: {{Here: 3, Elsewhere: 6, Total: 1, Processors: 3, Rank: 2}, {Here: 3, Elsewhere: 6, Total: 1, Processors: 3, Rank: 1, Turn: 1}},
	} {
		for _, a := range of {
			require.Equal(t, want, a.Ask(), "%+v", a)
		}
	}
}

func TestStepCountsFromTheLastStep(t *testing.T) {
	var turn Turn
	turn.Step(10, 1, 1)
	turn.Step(15, 2, 1)
	turn.Step(15, 9, 1)
	turn.Step(12, 9, 1) // a clock that goes back counts nothing
	turn.Step(16, 2, 2)
	require.InDelta(t, 21, turn.Start(0, 0), 1e-9)
	require.False(t, Reserved((&Turn{}).Start(0, 0)), "a new tag without a reservation")
	require.True(t, Reserved(turn.Start(1, 2)))
}

func TestAskOfNothing(t *testing.T) {
	require.Zero(t, Asking{Total: 3, Elsewhere: 9}.Ask())
	require.Equal(t, int64(2), Asking{Here: 2, Total: 3, Elsewhere: 1}.Ask())
	require.Equal(t, int64(3), Asking{Here: math.MaxInt32, Total: 3}.Ask())
}

// Tags that always wait have slot-seconds by weight, whatever their calls take; those below their reservation come first.
func TestTurnsAreBySlotSeconds(t *testing.T) {
	type call struct {
		of  int
		end float64
	}
	lengths := []float64{0.1, 0.2, 0.5, 1, 2, 5, 7, 10}
	weights := []float64{1, 1, 1, 1, 1, 1, 1, 3}
	turns, held, had := make([]Turn, len(lengths)), make([]int, len(lengths)), make([]float64, len(lengths))
	var calls []call
	last := 0.0
	for now := 0.0; now < 4000; now += 0.05 {
		for i := range turns {
			turns[i].Step(now, held[i], weights[i])
			had[i] += 0.05 * float64(held[i])
		}
		left := calls[:0]
		for _, c := range calls {
			if c.end <= now+1e-9 {
				held[c.of]--
				continue
			}
			left = append(left, c)
		}
		for calls = left; len(calls) < 4; {
			best := 0
			for i := range turns {
				if turns[i].Start(held[i], 0) < turns[best].Start(held[best], 0) {
					best = i
				}
			}
			last = max(last, turns[best].Start(held[best], 0))
			held[best]++
			calls = append(calls, call{best, now + lengths[best]})
		}
	}
	for i := range had {
		require.InDelta(t, 4000*4*weights[i]/10, had[i], 0.03*4000*4/10+10, "calls of %v s", lengths[i])
	}
	require.Greater(t, last, 1000.0)
}

func TestStartOfReserved(t *testing.T) {
	var a, b Turn
	a.Step(1000, 5, 1)
	require.True(t, Reserved(a.Start(1, 2)))
	require.Less(t, a.Start(1, 4), b.Start(1, 2), "the smaller part first")
	require.Less(t, a.Start(1, 2), b.Start(0, 0), "below its reservation, although it had more")
	require.Less(t, b.Start(0, 0), a.Start(2, 2))
	b.Join(a.Start(2, 2))
	require.InDelta(t, a.Start(2, 2), b.Start(0, 0), 0)
	b.Join(0)
	require.InDelta(t, a.Start(2, 2), b.Start(0, 0), 0, "what it had counts")
	a.Forget(2000)
	require.InDelta(t, 5000.0, b.Start(0, 0), 0)
	require.InDelta(t, 2000.0, a.Start(2, 2), 0, "what it had long ago")
	a.Forget(3000)
	require.InDelta(t, 2000.0, a.Start(2, 2), 0)
}
