package redelivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A goal is what a pool reaches in most runs.
type goal struct{ use, deliveries, away float64 }

// chance is by how much the middles of runs differ.
const chance = 0.03

// lacks names what a measurement lacks to a goal; empty: nothing.
func (g goal) lacks(want goal) string {
	switch {
	case g.use < want.use-chance:
		return "use of the limit"
	case g.deliveries > want.deliveries+chance:
		return "deliveries"
	case g.away > want.away:
		return "how long a message stays away, in the time that all take that are left"
	}
	return ""
}

// reaches measures a vertex until good runs are three ahead of bad ones, at most 25 times, and takes the middle. Which pod gets a message is a
// matter of chance: one run in twenty of two pods has 0.2 to 0.3 less, and with eight pods and a short read one in four on an idle machine.
func reaches(t *testing.T, v vertex, name string, want goal) {
	t.Helper()
	var use, deliveries, away []float64
	for ahead := 0; ahead < 3 && len(use) < 25; {
		out := measure(t, v)
		use, deliveries, away = append(use, out.use), append(deliveries, out.deliveries), append(away, out.away)
		if (goal{out.use, out.deliveries, out.away}).lacks(want) == "" {
			ahead++
		} else {
			ahead--
		}
	}
	middle := func(of []float64) float64 { slices.Sort(of); return of[len(of)/2] }
	got := goal{middle(use), middle(deliveries), middle(away)}
	name = fmt.Sprintf("%s, %d pods", name, v.pods)
	t.Logf("%-60s use %.2f, deliveries %.2f, away %.2f", name, got.use, got.deliveries, got.away)
	require.Empty(t, got.lacks(want), "%s: %+v, want %+v", name, got, want)
}

// A pool of several pods, whose shares move, uses 0.95 of its limit with two deliveries of a message. Where a pod earns three tokens
// and less while a message waits at most, and the platform says which pod a message comes to, it is less: a pod that gets four of them
// at a time denies one, and another one has a token too many.
func TestNackUsesTheLimitOfAPool(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for _, c := range []struct {
		where, how setting
		chunks     goal // with eight pods: batch map and sink
		singles    goal // with eight pods: all others
	}{
		{pipeline, asItIs, goal{}, goal{0.93, 2.06, 2}},
		{pipeline, shortRead, goal{0.65, 2.25, 7}, goal{0.8, 2.15, 6}},
		{monoVertex, shortRead, goal{0.92, 2.03, 2}, goal{0.92, 2.03, 2}},
		{readAhead, asItIs, goal{0.95, 2.05, 1.5}, goal{0.94, 2.06, 2}},
	} {
		for _, kind := range kinds {
			chunks := kind == batchMap || kind == sink
			if c.how.name == asItIs.name && !atHand(kind, c.where.name) {
				continue // see TestNackOfAPoolWhereThePlatformHoldsMessagesBack
			}
			for _, pods := range []int{1, 2, 4, 8} {
				if pods > 2 && (kind == streamMap || kind == transform) {
					continue // as the map
				}
				want := goal{0.95, 2.05, 3}
				switch {
				case pods == 8 && chunks:
					want = c.chunks
				case pods == 8:
					want = c.singles
				case pods == 4 && chunks && c.where.name == pipeline.name:
					want = goal{0.86, 2.12, 4}
				case pods == 4 && c.how.name == shortRead.name:
					want = goal{0.92, 2.07, 4}
				}
				v, name := newVertex(kind, 40, c.where, c.how)
				v.pods, v.messages, v.offered = pods, 3200, 3200
				reaches(t, v, name, want)
			}
		}
	}
}

// A pod dies while messages that it has nacked are away: they come when they would have, and the others use the whole limit.
func TestNackOfAPodThatDies(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for _, pods := range []int{2, 4} {
		v, name := newVertex(unaryMap, 40, pipeline, asItIs)
		v.pods, v.messages, v.offered, v.killed = pods, 3200, 3200, 30*time.Second
		reaches(t, v, name, goal{0.88, 2.15, 2.5}) // the share of the dead lacks for 15 s of 160
	}
}

// While a limit is paused, or its pool is frozen because the store has forgotten everything, messages wait and are nacked. What comes
// while it is paused is delivered once more. After that the limit is used as before; but where a pod has nacked far more messages than
// the others meanwhile, as a sink can that answers a batch at once, they come at its even part, and the end takes longer.
func TestNackInAPauseAndInAFreeze(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	pause := setting{"paused for 10 s", func(v *vertex) { v.paused = 30 * time.Second }}
	freeze := setting{"an empty store", func(v *vertex) { v.emptied = 30 * time.Second }}
	for _, c := range []struct {
		kind string
		what setting
		want goal
	}{
		{unaryMap, pause, goal{0.9, 2.12, 2}}, // 0.94 would be all but the pause
		{unaryMap, freeze, goal{0.93, 2.06, 2}},
		{sink, pause, goal{0.65, 2.15, 3}},
		{sink, freeze, goal{0.93, 2.06, 2}},
	} {
		v, name := newVertex(c.kind, 40, pipeline, shortRead, c.what)
		v.pods, v.messages, v.offered = 2, 3200, 3200
		reaches(t, v, name, c.want)
	}
}

// Where the platform collects a chunk for a second nothing waits for tokens meanwhile, unless the chunk is full; and a full one of 40
// costs 40 deliveries, of which a pod handles those that it earns tokens for within a second. With two deliveries of a message and
// shares that stand still meanwhile, no delays of nacks make more than 0.68, 0.60 and 0.57 of the limit of two, four and eight
// pods: see the page on the wrappers. With a burst of a second the tokens of that second are not lost; but a MonoVertex reads what is
// there at once, so that a pod has many messages at a time, and another one none.
func TestNackOfAPoolWhereThePlatformHoldsMessagesBack(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for _, c := range []struct {
		kind       string
		where, how setting
		want       map[int]goal // by pods
	}{
		{sink, pipeline, asItIs, map[int]goal{1: {0.95, 2.05, 1.2}, 2: {0.57, 2.7, 2.5}, 4: {0.54, 2.8, 4}, 8: {0.56, 2.6, 6}}},
		{batchMap, pipeline, asItIs, map[int]goal{1: {0.95, 2.05, 1.2}, 2: {0.57, 2.7, 2.5}}},
		{sink, pipeline, second, map[int]goal{1: {0.95, 2.02, 1.2}, 2: {0.94, 2.03, 2.5}, 4: {0.92, 2.06, 2}, 8: {0.82, 2.13, 4}}},
		{batchMap, pipeline, second, map[int]goal{1: {0.95, 2.02, 1.2}, 2: {0.94, 2.03, 2.5}}},
		{unaryMap, monoVertex, second, map[int]goal{1: {0.95, 2.02, 1.2}, 2: {0.9, 2.1, 3}, 4: {0.75, 2.3, 5}, 8: {0.6, 2.55, 8}}},
		{unaryMap, monoVertex, asItIs, map[int]goal{1: {0.95, 2.02, 1.2}, 2: {0.57, 2.7, 4}}},
	} {
		for pods, want := range c.want {
			v, name := newVertex(c.kind, 40, c.where, c.how)
			v.pods, v.messages, v.offered = pods, 3200, 3200
			reaches(t, v, name, want)
		}
	}
}
