package virtual_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/virtual"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var epoch = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

// limiter returns the shipped limiter in a world.
func limiter(t *testing.T, w *virtual.World, l throttle.Limit, opts ...throttle.Option) *throttle.Throttle {
	t.Helper()
	clock := hook.WithClock(w).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
	th, err := throttle.New(l, append(opts, clock)...)
	require.NoError(t, err)
	return th
}

// The shipped Acquire waits in virtual time, in the order of arrival, with and without quotas.
func TestAcquireWaitsInTheWorld(t *testing.T) {
	for name, opts := range map[string][]throttle.Option{
		"no quotas": nil, "a tag with a total": {throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Total: 10, Burst: 1}}})},
	} {
		t.Run(name, func(t *testing.T) {
			w := virtual.NewWorld(epoch, 1)
			th := limiter(t, w, throttle.Limit{Max: 10, Burst: 1}, opts...)
			var order []int
			var at []time.Duration
			for i := range 5 {
				w.At(time.Second, func() {
					_, err := th.ForTag("a").Acquire(context.Background(), 1)
					require.NoError(t, err)
					order, at = append(order, i), append(at, w.Since())
				})
			}
			w.Run(time.Second)
			require.Equal(t, []int{0}, order, "one token was saved up")
			require.Equal(t, 4, w.Waiting())
			w.Run(time.Minute)
			require.Equal(t, []int{0, 1, 2, 3, 4}, order)
			for i := range at {
				require.InDelta(t, time.Second+time.Duration(i)*100*time.Millisecond, at[i], float64(time.Millisecond))
			}
			require.Zero(t, w.Waiting())
			require.NoError(t, th.Close())
		})
	}
}

// Time never goes back: what is due at a moment that is over runs now.
func TestAMomentThatIsOverIsNow(t *testing.T) {
	w := virtual.NewWorld(epoch, 1)
	var at []time.Duration
	note := func() { at = append(at, w.Since()) }
	w.At(time.Second, func() { note(); w.At(time.Millisecond, note); w.At(2*time.Second, note) })
	w.Run(time.Minute)
	require.Equal(t, []time.Duration{time.Second, time.Second, 2 * time.Second}, at)
	require.Equal(t, time.Minute, w.Since())
}

// A deadline in the world ends a wait that turned out longer than it looked, and one that is known to be too long at once.
func TestDeadlines(t *testing.T) {
	w := virtual.NewWorld(epoch, 1)
	th := limiter(t, w, throttle.Limit{Max: 1, Burst: 1})
	ended := map[string]time.Duration{}
	draw := func(name string, n int, patience time.Duration) {
		_, err := th.Acquire(w.WithDeadline(w.Since()+patience), n)
		require.Equal(t, err != nil, errors.Is(err, throttle.ErrThrottled), err)
		ended[name] = w.Since()
	}
	w.At(0, func() { draw("first", 1, time.Second) })
	w.At(0, func() { draw("second", 1, 2*time.Second) })
	w.At(0, func() { draw("too late", 1, 1500*time.Millisecond) })
	w.Run(100 * time.Millisecond)
	require.Contains(t, ended, "too late")
	require.NotContains(t, ended, "second")
	w.Run(time.Minute)
	require.InDelta(t, time.Second, ended["second"], float64(time.Millisecond))
	w.At(w.Since(), func() { // a pause comes while it waits
		_, err := th.Acquire(context.Background(), 1)
		require.NoError(t, err)
		draw("paused", 1, 3*time.Second)
	})
	w.At(w.Since()+500*time.Millisecond, func() {
		_, err := th.Pause(context.Background(), time.Time{}, "test")
		require.NoError(t, err)
	})
	began := w.Since()
	w.Run(began + time.Minute)
	require.Equal(t, began+3*time.Second, ended["paused"])
}

func TestTimers(t *testing.T) {
	w := virtual.NewWorld(epoch, 1)
	var fired []time.Duration
	timer := w.AfterFunc(10*time.Second, func() { fired = append(fired, w.Since()) })
	require.True(t, timer.Reset(2*time.Second), "sooner")
	require.True(t, timer.Reset(5*time.Second), "later again")
	w.Run(20 * time.Second)
	require.Equal(t, []time.Duration{5 * time.Second}, fired)
	require.False(t, timer.Reset(time.Second))
	require.True(t, timer.Stop())
	w.Run(time.Minute)
	require.Len(t, fired, 1)
	timer.Reset(time.Second)
	timer.Stop()
	timer.Reset(3 * time.Second)
	w.Run(2 * time.Minute)
	require.Equal(t, time.Minute+3*time.Second, fired[1])
	require.Len(t, fired, 2)
}
