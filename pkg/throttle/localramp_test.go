package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The ceiling in force is never above the ramp, which rises after a second in which enough was used, and falls after one in which little was.
func TestRampOfOneProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		full time.Duration // everything is used for so long
		top  float64       // of the ramp two seconds after the start
	}{"much of a second": {700 * time.Millisecond, 200}, "little of it": {300 * time.Millisecond, 100}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mode := RampGoBackN{ThresholdPercentage: 50}
				th := whole(t, Limit{Max: 1000, Min: 100, Burst: 100, RampUpDuration: 9 * time.Second, Mode: mode})
				top := 0.0
				for at := 10 * time.Millisecond; at < 3*time.Second; at += 10 * time.Millisecond {
					time.Sleep(10 * time.Millisecond)
					st := th.Status()
					if n := int(st.Tokens); at <= tc.full && n > 0 {
						take(t, th, n)
					}
					if at == 1500*time.Millisecond {
						take(t, th, 1) // traffic
					}
					top = max(top, st.Lease.Ceiling)
					ramp := tc.top
					switch int(at.Seconds()) {
					case 0:
						ramp = 100
					case 1:
						ramp = 100 + (tc.top-100)*(at.Seconds()-1)
					case 2:
						ramp = max(tc.top-100*(at.Seconds()-2), 100)
					}
					require.LessOrEqual(t, st.Lease.Ceiling, ramp+1e-6, "after %s", at)
					require.GreaterOrEqual(t, st.Lease.Ceiling, max(ramp-21, 100), "after %s", at)
				}
				require.InDelta(t, tc.top, top, 15)
			})
		})
	}
}

// A ramp that has risen takes no time any more.
func TestRampEnds(t *testing.T) {
	c := &manualClock{now: time.Unix(1_800_000_000, 0)}
	th := whole(t, Limit{Max: 1000, Min: 100, RampUpDuration: time.Second, Mode: RampScheduled{}}, withClock(c))
	ticks := as[*manualTimer](t, th.ramp.timer)
	require.False(t, ticks.at.IsZero())
	for range 30 {
		c.advance(rampEvery)
	}
	require.InDelta(t, 1000, th.Status().Rate, 1e-6)
	require.True(t, ticks.at.IsZero())
}
