package opening

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ceiling is what the whole pool may use, as th has it.
func ceiling(th *throttle.Throttle) float64 {
	st := th.Status()
	if st.Lease.Ceiling == 0 {
		return float64(st.Limit.Max)
	}
	return st.Lease.Ceiling
}

// A limit ramps up on every kind of store that needs no server, by its settings alone.
func TestRampWithoutAServer(t *testing.T) {
	for _, store := range []string{"memory://TestRampWithoutAServer", "static://?replicas=2"} {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := mustOpen(t, Config{Limit: throttle.Limit{Max: 20, Min: 10, RampUpDuration: time.Minute}, Store: store, Logger: quiet()})
				time.Sleep(10 * time.Second)
				require.InDelta(t, 10, ceiling(th), 0, "nobody calls")
				draw(th)
				time.Sleep(30 * time.Second)
				require.InDelta(t, 14.8, ceiling(th), 0.5, "29 or 30 steps, and a part of one")
				require.NoError(t, th.Close())
			})
		})
	}
}

// A limit follows the service by its settings alone, with and without a pool.
func TestAdaptiveWithoutAServer(t *testing.T) {
	for _, store := range []string{"memory://TestAdaptiveWithoutAServer", "static://?replicas=2"} {
		t.Run(store, func(t *testing.T) {
			t.Setenv("NUMATHROTTLE_MAX", "100")
			t.Setenv("NUMATHROTTLE_ADAPTIVE", "true")
			t.Setenv("NUMATHROTTLE_ADAPTIVE_MIN", "30")
			t.Setenv("NUMATHROTTLE_STORE", store)
			synctest.Test(t, func(t *testing.T) {
				c, err := Load()
				require.NoError(t, err)
				c.Logger = quiet()
				th := mustOpen(t, c)
				time.Sleep(10 * time.Second)
				for range 20 {
					p, err := th.Acquire(t.Context(), 1)
					require.NoError(t, err)
					p.Report(throttle.OutcomeOverloaded)
					time.Sleep(500 * time.Millisecond)
				}
				require.InDelta(t, 30, ceiling(th), 5)
				require.NoError(t, th.Close())
			})
		})
	}
}

func TestPauseWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []string{"memory://", "static://?replicas=4"} {
			th := mustOpen(t, Config{Limit: throttle.Limit{Max: 1000}, Store: store, Logger: quiet()})
			eventually(t, grants(th), "a token")
			r, err := th.Pause(t.Context(), time.Now().Add(time.Minute), "told so")
			require.NoError(t, err)
			require.Empty(t, r.Missing)
			require.InDelta(t, 60, time.Until(r.Until).Seconds(), 0.1)
			time.Sleep(time.Minute - time.Second)
			require.False(t, grants(th)(), store)
			time.Sleep(3 * time.Second)
			require.True(t, grants(th)(), store)
			require.NoError(t, th.Close())
		}
	})
}
