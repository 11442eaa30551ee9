package consensus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ceiling is what the whole pool may use, as this processor has it.
func (n *node) ceiling() float64 {
	st := n.th.Status()
	if st.Lease.Ceiling == 0 {
		return float64(st.Limit.Max)
	}
	return st.Lease.Ceiling
}

// watch samples the ceiling every 100 ms for d.
func watch(d time.Duration, n *node) (out []float64) {
	for range d / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond)
		out = append(out, n.ceiling())
	}
	return out
}

// requireNoDip fails where a ceiling falls.
func requireNoDip(t *testing.T, ceilings []float64) {
	t.Helper()
	for i := 1; i < len(ceilings); i++ {
		require.GreaterOrEqual(t, ceilings[i], ceilings[i-1]-1e-9, "after %d00 ms", i+1)
	}
}

var tenToTwenty = throttle.Limit{Max: 20, Min: 10, RampUpDuration: time.Minute, Mode: throttle.RampScheduled{}}

const deferredTime = "time of the last write"

// eachServer tells a story on a memory store's kind of server, and, without the race detector, on one that learns its time late.
func eachServer(t *testing.T, story func(t *testing.T, s *world.Server)) {
	t.Helper()
	for _, name := range testkit.Some([]string{"own time", deferredTime}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := world.NewServer()
				s.Deferred = name == deferredTime
				story(t, s)
			})
		})
	}
}

// From 10 to 20 in a minute is one more every six seconds, smoothly.
func TestRampRisesByItsSlope(t *testing.T) {
	eachServer(t, func(t *testing.T, s *world.Server) {
		n := limited(t, s, "a", tenToTwenty, 1)
		time.Sleep(3 * time.Second)
		require.Greater(t, n.share(), 0.0)
		before := n.ceiling()
		require.InDelta(t, 10.3, before, 0.25, "the ramp begins with the pool")
		for range 9 {
			seconds := watch(6*time.Second, n)
			requireNoDip(t, seconds)
			require.InDelta(t, before+1, n.ceiling(), 0.05, "one more every six seconds")
			before = n.ceiling()
			for i := 10; i < len(seconds); i++ {
				require.InDelta(t, 1./6, seconds[i]-seconds[i-10], 0.04, "smooth within the second")
			}
		}
		time.Sleep(6 * time.Second)
		require.InDelta(t, 20, n.ceiling(), 0, "and stays at the top")
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 20, n.ceiling(), 0)
	})
}
