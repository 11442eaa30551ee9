package autoscale

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// calm is a quiet time before the backlog, backlog ten minutes of it, and after the time in which the rest of it is done and the pods end.
var (
	calm    = phase{3 * time.Minute, 5}
	backlog = phase{10 * time.Minute, -1}
	after   = phase{10 * time.Minute, 5}
)

// judged is how long a scaler may take to find the number of pods: what follows in the backlog is judged.
const judged = 4 * time.Minute

// A result is what a run came to.
type result struct {
	most int     // pods at any time
	use  float64 // of the limit, in the judged part of the backlog
	last int     // pods in the end
}

// play runs a vertex with a limit of 50 a second through the backlog.
func play(t *testing.T, v *vertex) (r result) {
	t.Helper()
	v.t, v.limit = t, throttle.Limit{Max: 50}
	records := v.run(calm, backlog, after)
	at := func(d time.Duration) record { return records[d/time.Second-1] }
	from, to := at(calm.lasts+judged), at(calm.lasts+backlog.lasts)
	r.use = float64(to.done-from.done) / (to.at - from.at).Seconds() / 50
	for _, rec := range records {
		r.most = max(r.most, rec.pods)
	}
	r.last = records[len(records)-1].pods
	t.Logf("at most %d pods, %.3f of the limit, %d pods in the end", r.most, r.use, r.last)
	return r
}

// loads are the times of a call, and the pods of 100 calls at once that 50 calls a second need.
var loads = []struct {
	name  string
	takes time.Duration
	needs int
}{
	{"one pod is enough", 500 * time.Millisecond, 1},
	{"two pods are needed", 3 * time.Second, 2},
	{"four pods are needed", 7 * time.Second, 4},
}

// With the hint Numaflow's scaler stops at the pods that the limit needs, at most one more. Without it the pods reach scale.max.
func TestNumaflowScalesToTheLimit(t *testing.T) {
	testkit.SkipShort(t, "minutes of a pool")
	for _, c := range loads {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := numaflow{min: 1, max: 10, rateMax: rateMax(50), step: 1}
				r := play(t, &vertex{concurrency: 100, takes: c.takes, lookback: time.Minute, reads: s.rateMax, scaler: s})
				require.LessOrEqual(t, r.most, c.needs+1)
				require.GreaterOrEqual(t, r.use, 0.97)
				require.Equal(t, 1, r.last)
			})
		})
		t.Run(c.name+", without the hint", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := numaflow{min: 1, max: 10, step: 2}
				r := play(t, &vertex{concurrency: 100, takes: c.takes, lookback: 2 * time.Minute, scaler: s})
				require.Equal(t, s.max, r.most)
			})
		})
	}
}

// A HorizontalPodAutoscaler that follows numathrottle_pods_wanted runs the pods that the limit needs.
func TestTheGaugeScalesToTheLimit(t *testing.T) {
	testkit.SkipShort(t, "minutes of a pool")
	for _, c := range loads {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := play(t, &vertex{concurrency: 100, takes: c.takes, scaler: &hpa{min: 1, max: 10}})
				require.LessOrEqual(t, r.most, c.needs+1)
				require.GreaterOrEqual(t, r.use, 0.97)
				require.Equal(t, 1, r.last)
			})
		})
	}
}
