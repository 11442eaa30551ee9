package mapper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A wrapped map reports the pods that each of its limits needs: the time of its calls counts, without their waits.
func TestPodsWantedOfAMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metered := hook.WithMeter(100).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
		th, err := throttle.New(throttle.Limit{Max: 10}, metered)
		require.NoError(t, err)
		slots, err := throttle.NewInFlight(200, metered)
		require.NoError(t, err)
		all := throttle.All(th, slots)
		h := mapper.Wrap(mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
			time.Sleep(2 * time.Second)
			return mapsdk.MessagesBuilder()
		}), all)
		for _, l := range []throttle.Limiter{th, slots} {
			_, ok := hook.PodsWanted(l)
			require.False(t, ok, "no call has ended")
		}
		until := time.Now().Add(3 * time.Minute)
		for range 100 { // as many as the vertex has in flight
			go func() {
				for time.Now().Before(until) {
					h.Map(t.Context(), nil, nil)
					time.Sleep(time.Millisecond)
				}
			}()
		}
		time.Sleep(3 * time.Minute)
		pods, ok := hook.PodsWanted(th)
		require.True(t, ok)
		require.InDelta(t, 10*2/100.0, pods, 0.02, "10 a second that take 2 s, in 100 places")
		pods, ok = hook.PodsWanted(slots)
		require.True(t, ok)
		require.InDelta(t, 200/100.0, pods, 0.02, "the slots would take more")
		time.Sleep(time.Minute)
		for range 10 {
			time.Sleep(10 * time.Second)
			pods, ok = hook.PodsWanted(th)
		}
		require.True(t, ok)
		require.Zero(t, pods, "nothing is under way")
		require.NoError(t, th.Close())
		require.NoError(t, slots.Close())
	})
}

// Without a meter there is nothing to report, and a limiter of another package has none.
func TestNoPodsWantedWithoutAMeter(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 10})
	require.NoError(t, err)
	require.Nil(t, hook.Meters(th))
	require.Nil(t, hook.Meters(throttletest.New()))
	_, ok := hook.PodsWanted(th)
	require.False(t, ok)
}
