package sourcer_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// cadences are the platforms that a source has to deliver its limit to.
var cadences = map[string]func(batch int) core{
	"one batch at a time": func(batch int) core {
		return core{batch: batch, permits: 1, timeout: time.Second, write: 3 * time.Millisecond}
	},
	"one batch at a time, 100 ms": func(batch int) core {
		return core{batch: batch, permits: 1, timeout: 100 * time.Millisecond, write: 3 * time.Millisecond}
	},
	"one batch at a time, a sink of 15 ms": func(batch int) core {
		return core{batch: batch, permits: 1, timeout: time.Second, write: 15 * time.Millisecond}
	},
	"read-ahead": func(batch int) core {
		return core{batch: batch, permits: 4, timeout: time.Second, write: 15 * time.Millisecond}
	},
	"fast": func(batch int) core {
		return core{batch: batch, permits: 1, write: 3 * time.Millisecond}.fast()
	},
}

// poolOf returns the limiters of pods in one pool, which has begun.
func poolOf(t *testing.T, pods int, l throttle.Limit) []*throttle.Throttle {
	t.Helper()
	store := memstore.New()
	all := make([]*throttle.Throttle, pods)
	for i := range all {
		m, err := consensus.Join(t.Context(), store, "sources", consensus.WithID(fmt.Sprintf("pod-%d", i)))
		require.NoError(t, err)
		all[i], err = throttle.New(l, throttle.WithSharer(m), throttle.OnClose(m.Leave))
		require.NoError(t, err)
	}
	time.Sleep(20 * time.Second) // virtual: the pool's beginning
	return all
}

// leastUse is the part of a limit per second that has to arrive. With less than two messages a second for each pod a minute has few
// messages, so that one more or less at its ends, and shares that move between pods, weigh more: 0.965 was seen.
func leastUse(limit, pods int) float64 {
	if limit < 2*pods {
		return 0.95
	}
	return 0.97
}

// A cadence is a pool of sources on one kind of platform.
type cadence struct {
	platform           core
	limit, pods, batch int
	length             time.Duration // of what is measured
}

// use runs a new pool, judges each window of it, and returns the part of the limit that it delivered. No window sees more than
// the limit, the burst, a token for each pod, and a batch of each.
func (c cadence) use(t *testing.T) (use float64) {
	const settle = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		limiters := poolOf(t, c.pods, throttle.Limit{Max: c.limit})
		var got arrivals
		var running sync.WaitGroup
		began := time.Now()
		for _, l := range limiters {
			running.Go(func() { c.platform.run(t, sourcer.Wrap(&source{}, l), settle+c.length, began, &got) })
		}
		running.Wait()
		for _, l := range limiters {
			require.NoError(t, l.Close())
		}

		whole := float64(c.limit)
		ceiling := float64(c.pods*c.batch) / (c.platform.write + time.Millisecond).Seconds()
		use = float64(got.between(settle, settle+c.length)) / (min(whole, ceiling) * c.length.Seconds())
		t.Logf("%.3f of the limit, %.1f Reads a second and pod, %d empty", use,
			float64(got.reads)/float64(c.pods)/(settle+c.length).Seconds(), got.empty)
		burst := limiters[0].Limit().Burst
		for _, window := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
			require.LessOrEqual(t, float64(got.worst(window)), whole*window.Seconds()+float64(burst+c.pods+c.pods*c.batch), window)
		}
		require.LessOrEqual(t, float64(got.empty), 1.4*float64(c.pods)*float64(settle+c.length)/float64(c.platform.readTimeout()), "it spins")
	})
	return use
}

// A source delivers its limit, whatever the platform does between two Reads. When shares happen to move at a bad moment one run of 20
// seconds lacks up to 5 % (4 of 900 runs of eight pods did): so a run that falls short is averaged with two more.
func TestASourceDeliversItsLimitInEveryCadence(t *testing.T) {
	for name, platform := range cadences {
		for _, limit := range testkit.Some([]int{10, 50, 200, 1000, 5000}) {
			for _, pods := range []int{1, 2, 8} {
				for _, batch := range []int{50, 500} {
					c := cadence{platform: platform(batch), limit: limit, pods: pods, batch: batch, length: 20 * time.Second}
					if limit < 1000 { // what comes at the end of a batch is a larger part of few messages
						c.length = time.Minute
					}
					t.Run(fmt.Sprintf("%s/%d per second, %d pods, batch %d", name, limit, pods, batch), func(t *testing.T) {
						t.Parallel()
						use := c.use(t)
						if use < leastUse(limit, pods) {
							use = (use + c.use(t) + c.use(t)) / 3
						}
						require.GreaterOrEqual(t, use, leastUse(limit, pods))
					})
				}
			}
		}
	}
}
