package consensus_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A meter judges all windows at once: it counts what is granted against the integral of
// what was allowed, and knows where that was lowest.
type meter struct {
	over, lowest, worst float64
}

// add takes a step of d in which n tokens were granted and rate was allowed at most.
func (m *meter) add(n int64, rate float64, d time.Duration) {
	m.over += float64(n)
	m.worst = max(m.worst, m.over-m.lowest)
	m.over -= rate * d.Seconds()
	m.lowest = min(m.lowest, m.over)
}

// While overrides come and go and processors join and leave, no window sees more than the
// limits in force allow: in the interval in which an override spreads, the larger one.
func TestNoWindowExceedsTheOverrides(t *testing.T) {
	for seed := range uint64(testkit.Fewer(4)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				s := world.NewServer()
				s.Deferred = seed%2 == 1
				nodes := busy(t, s, 3, thousand)
				joined, counted := len(nodes), int64(0)
				all := append([]*node(nil), nodes...)
				for _, n := range all {
					counted += n.used.Load()
				}
				var m meter
				limits := []float64{1000} // newest last
				changed := time.Now().Add(-time.Hour)
				most := 1000.0
				const step = 10 * time.Millisecond
				for range 30 * int(time.Second/step) {
					time.Sleep(step)
					if rng.IntN(400) == 0 && time.Since(changed) > 2*interval {
						next := float64(50 + rng.IntN(3000))
						require.NoError(t, protocol.SaveOverride(t.Context(), s, "pool", protocol.Override{Max: int(next)}))
						limits, changed, most = append(limits, next), time.Now(), max(most, next)
					}
					if rng.IntN(500) == 0 {
						joined++
						nodes = append(nodes, limited(t, s, fmt.Sprint("p", joined), thousand, 8))
						all = append(all, nodes[len(nodes)-1])
					}
					if rng.IntN(500) == 0 && len(nodes) > 1 {
						nodes[0].stop()
						require.NoError(t, nodes[0].th.Close())
						nodes = nodes[1:]
					}
					allowed := limits[len(limits)-1]
					if len(limits) > 1 && time.Since(changed) <= interval+interval/5 {
						allowed = max(allowed, limits[len(limits)-2])
					}
					total := int64(0)
					for _, n := range all {
						total += n.used.Load()
					}
					m.add(total-counted, allowed, step)
					counted = total
				}
				require.LessOrEqual(t, m.worst, most/10+float64(joined)+most*step.Seconds(), "burst and a token each")
			})
		})
	}
}

// A ramp over several processors grants no more than the integral of its line, and
// nearly all of it.
func TestNoWindowExceedsTheRamp(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		l := throttle.Limit{Max: 1000, Min: 100, Burst: 50, RampUpDuration: 30 * time.Second, Mode: throttle.RampScheduled{}}
		nodes := make([]*node, 3)
		began := time.Now()
		for i := range nodes {
			nodes[i] = limited(t, s, fmt.Sprint("p", i), l, 8)
		}
		var m meter
		counted, allowed := int64(0), 0.0
		const step = 10 * time.Millisecond
		for range 40 * int(time.Second/step) {
			time.Sleep(step)
			total := int64(0)
			for _, n := range nodes {
				total += n.used.Load()
			}
			rate := min(100+30*time.Since(began).Seconds(), 1000)
			m.add(total-counted, rate, step)
			counted, allowed = total, allowed+rate*step.Seconds()
		}
		require.LessOrEqual(t, m.worst, 50.0+3+10)
		require.GreaterOrEqual(t, float64(counted), allowed*0.93)
	})
}
