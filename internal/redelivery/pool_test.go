package redelivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A pool of several pods, whose shares move, uses its limit with two deliveries of a message, and no message stays away for longer than
// all the messages take that are not handled yet.
func TestNackUsesTheLimitOfAPool(t *testing.T) {
	race.Skip(t, "it measures")
	for _, kind := range kinds {
		for _, where := range []setting{pipeline, readAhead} {
			if !atHand(kind, where.name) {
				continue // see TestNackOfAPoolWhereThePlatformHoldsMessagesBack
			}
			for _, pods := range []int{1, 2, 4, 8} {
				v, name := newVertex(kind, 40, where, asItIs)
				v.pods, v.messages, v.offered = pods, 3200, 3200
				name = fmt.Sprintf("%s, %d pods", name, pods)
				out := measure(t, v)
				t.Logf("%-60s use %.2f, deliveries %.2f, most %d, away %.2f", name, out.use, out.deliveries, out.most, out.away)
				require.GreaterOrEqual(t, out.use, 0.9, name) // 0.92 and 2.08 deliveries were seen once in four runs, 0.97 and 2.02 else
				require.LessOrEqual(t, out.deliveries, 2.1, name)
				require.LessOrEqual(t, out.away, 1.2, name)
			}
		}
	}
}

// A pod dies while messages that it has nacked are away: they come when they would have, and the others use the whole limit.
func TestNackOfAPodThatDies(t *testing.T) {
	race.Skip(t, "it measures")
	for _, pods := range []int{2, 4} {
		v, name := newVertex(unaryMap, 40, pipeline, asItIs)
		v.pods, v.messages, v.offered, v.killed = pods, 3200, 3200, 30*time.Second
		name = fmt.Sprintf("%s, %d pods", name, pods)
		out := measure(t, v)
		t.Logf("%-60s use %.2f, deliveries %.2f, most %d, away %.2f", name, out.use, out.deliveries, out.most, out.away)
		require.GreaterOrEqual(t, out.use, 0.85, "%s: the share of the dead lacks for 15 s of 160", name)
		require.LessOrEqual(t, out.deliveries, 2.3, name)
		require.LessOrEqual(t, out.away, 1.6, name)
	}
}

// Where the platform collects a chunk for a second nothing waits for tokens meanwhile, and the more pods there are the less of their
// shares is used. Without that second a
// large pool loses by lines of different length: a pod that is given more than its part of the messages has them come at its even share.
func TestNackOfAPoolWhereThePlatformHoldsMessagesBack(t *testing.T) {
	race.Skip(t, "it measures")
	for _, kind := range []string{batchMap, sink} {
		for pods, want := range map[int]struct{ use, short float64 }{1: {0.9, 0.95}, 2: {0.55, 0.85}, 4: {0.5, 0.45}, 8: {0.5, 0.35}} {
			for _, how := range []setting{asItIs, shortRead} {
				v, name := newVertex(kind, 40, pipeline, how)
				v.pods, v.messages, v.offered = pods, 3200, 3200
				name = fmt.Sprintf("%s, %d pods", name, pods)
				out := measure(t, v)
				t.Logf("%-60s use %.2f, deliveries %.2f, most %d, away %.2f, %v", name, out.use, out.deliveries, out.most, out.away, out.nacks)
				least := want.use
				if how.name == shortRead.name {
					least = want.short
				}
				require.GreaterOrEqual(t, out.use, least, name)
			}
		}
	}
}
