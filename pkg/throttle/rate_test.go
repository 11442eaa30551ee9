package throttle

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Every millisecond brings one token, not a thousand at the top of a second.
func TestRateIsSmooth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1000})
		time.Sleep(10 * time.Nanosecond) // what rounding may cost in three seconds
		for ms := 1; ms <= 3000; ms++ {
			time.Sleep(time.Millisecond - 20*time.Nanosecond)
			require.Zero(t, drain(th), "just before %d ms", ms)
			time.Sleep(20 * time.Nanosecond)
			require.Equal(t, 1, drain(th), "at %d ms", ms)
		}
	})
}

// A cost that does not fit into the bucket's units must not wrap around.
func TestTryAcquireOfHugeCostIsRefused(t *testing.T) {
	for _, l := range append([]Limit{{Max: 1, Per: time.Hour}}, extremes...) {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, l)
				for shift := range 62 {
					for _, n := range []int{1 << shift, 1<<shift + 1, 1<<shift - 1, 5 << shift, maxTokens, 1 << 62} {
						if n < 1 {
							continue
						}
						p, ok := th.TryAcquire(n)
						require.False(t, ok, "%d tokens of an empty bucket", n)
						require.Zero(t, p.N())
					}
				}
				require.Zero(t, th.Status().Granted)
			})
		})
	}
}

func TestDrawsWithTokensDoNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1_000_000, Burst: 1_000_000})
		const runs = 20_000
		time.Sleep(time.Second)
		require.Zero(t, testing.AllocsPerRun(runs, func() {
			if _, ok := th.TryAcquire(1); !ok {
				t.Error("no tokens")
			}
		}), "TryAcquire")
		require.Zero(t, testing.AllocsPerRun(runs, func() {
			p, _ := th.TryAcquire(1)
			p.Settle(1)
			p.Cancel()
		}), "TryAcquire and Settle")
		ctx := t.Context()
		require.Zero(t, testing.AllocsPerRun(runs, func() {
			if _, err := th.Acquire(ctx, 1); err != nil {
				t.Error(err)
			}
		}), "Acquire")
		drain(th)
		require.Zero(t, testing.AllocsPerRun(runs, func() {
			if _, ok := th.TryAcquire(1); ok {
				t.Error("a token")
			}
		}), "TryAcquire without tokens")
	})
}
