package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
)

// A meter learns what calls drew and did not return, and how long callers were held back, for whatever reasons.
func TestMeterOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := full(t, 10, withMeter(2))
		slots := flight(t, 1, withMeter(2))
		take(t, th, 10).Settle(7)
		time.Sleep(50 * time.Microsecond)
		take(t, th, 3)
		acquire(t, th, 1)
		told := th.metered()
		require.InDelta(t, 99950*time.Microsecond, told.Held, float64(time.Microsecond))
		require.InDelta(t, 10, told.Share, 1e-3)
		require.Equal(t, callmeter.Limit{Drawn: 11, Held: told.Held, Share: told.Share}, told)

		p := take(t, slots, 1)
		time.AfterFunc(time.Second, p.Cancel)
		acquire(t, slots, 1)
		require.Equal(t, callmeter.Limit{Held: time.Second, Share: 1, Slots: true}, slots.metered())
	})
}

// Only a limiter with one meter says how many pods it needs.
func TestMeterSaysHowManyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, other, none := whole(t, Limit{Max: 10}, withMeter(2)), whole(t, Limit{Max: 10}, withMeter(2)), whole(t, Limit{Max: 10})
		all := All(th, other, none)
		require.Empty(t, metersOf(none))
		require.Len(t, metersOf(all), 2)
		meters := metersOf(all)
		meters.Open()
		time.Sleep(time.Second)
		meters.Ran(time.Second)
		meters.Close()
		for name, tc := range map[string]struct {
			l  Limiter
			ok bool
		}{"one": {th, true}, "two": {all, false}, "none": {none, false}, "one of two": {All(th, none), true}} {
			_, ok := podsWanted(tc.l)
			require.Equal(t, tc.ok, ok, name)
		}
	})
}
