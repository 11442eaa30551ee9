package throttle_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func slotsOf(t *testing.T, n int) *throttle.InFlight {
	t.Helper()
	l, err := throttle.NewInFlight(n)
	require.NoError(t, err)
	return l
}

func rateOf(t *testing.T, limit throttle.Limit) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(limit)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	return th
}

// watch returns a draw whose settlement is watched.
func watch(t *testing.T, l throttle.Limiter, n int, f func(used int) int) throttle.Permit {
	t.Helper()
	p, err := l.Acquire(t.Context(), n)
	require.NoError(t, err)
	p, ok := hook.OnSettle(p, f).(throttle.Permit)
	require.True(t, ok)
	return p
}

// A watched permit is settled once, with what the function says; a negative number cancels it.
func TestSettlementsAreWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(p throttle.Permit)
		says int // of the function; -1: what it was told
		told int
		want int // slots that are free at once
	}{
		"settle": {func(p throttle.Permit) { p.Settle(7) }, -1, 7, 2},
		"cancel": {func(p throttle.Permit) { p.Cancel() }, -1, -1, 2},
		"twice":  {func(p throttle.Permit) { p.Settle(3); p.Settle(9); p.Cancel() }, 1, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, within := range []bool{false, true} {
				slots := slotsOf(t, 2)
				l := throttle.Limiter(slots)
				if within {
					l = throttle.All(throttle.PerCall(slots), rateOf(t, throttle.Limit{Max: 100_000}))
				}
				var told []int
				p := watch(t, l, 1, func(used int) int {
					told = append(told, used)
					return max(tc.says, used)
				})
				require.Equal(t, 1, p.N())
				tc.end(p)
				require.Equal(t, []int{tc.told}, told)
				for range tc.want {
					_, ok := slots.TryAcquire(1)
					require.True(t, ok)
				}
			}
		})
	}
}

// Many that settle and cancel a watched permit at once settle it once.
func TestSettlementsAtOnce(t *testing.T) {
	slots := slotsOf(t, 1)
	for range 200 {
		var told atomic.Int32
		p := watch(t, slots, 1, func(used int) int { told.Add(1); return used })
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { p.Settle(1) })
			all.Go(p.Cancel)
		}
		all.Wait()
		require.EqualValues(t, 1, told.Load())
	}
}

// The outcome of a call reaches an adaptive limit through a watched permit, alone and within an All.
func TestOutcomesOfWatchedPermits(t *testing.T) {
	granted := func(within bool, o throttle.Outcome) (n int) {
		synctest.Test(t, func(t *testing.T) {
			l := throttle.Limiter(rateOf(t, throttle.Limit{Max: 100, Adaptive: true}))
			if within {
				l = throttle.All(l, throttle.PerCall(slotsOf(t, 100)))
			}
			for began := time.Now(); time.Since(began) < 10*time.Second; n++ {
				p := watch(t, l, 1, func(used int) int { return used })
				p.Report(o)
				p.Settle(1)
			}
		})
		return n
	}
	for _, within := range []bool{false, true} {
		require.Less(t, 2*granted(within, throttle.OutcomeRefused), granted(within, throttle.OutcomeAccepted))
	}
}
