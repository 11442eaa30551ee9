package opening

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A tag whose draws need tokens of two limits in pools uses its total, and its callers are served in order of arrival, also while it owes tokens
// because its first calls used more than they drew.
func TestATagOfTwoLimitsIsServedInOrder(t *testing.T) {
	for _, requests := range []throttle.Quota{{}, {Total: 1000}} {
		t.Run(fmt.Sprint(requests.Total, " requests"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var parts []throttle.Limiter
				of := func(q throttle.Quota) throttle.Quotas {
					return throttle.Quotas{Tags: map[string]throttle.Quota{"a": q}}
				}
				for i, c := range []Config{
					{Limit: throttle.Limit{Max: 120_000, Per: time.Minute, Burst: 2000}, Quotas: of(throttle.Quota{Total: 12_000})},
					{Limit: throttle.Limit{Max: 600, Per: time.Minute, Burst: 10}, Quotas: of(requests)},
				} {
					c.Store, c.Pool, c.ID = fmt.Sprint("memory://order", requests.Total), fmt.Sprint("p", i), "a"
					th, err := Open(t.Context(), c)
					require.NoError(t, err)
					defer func() { require.NoError(t, th.Close()) }()
					parts = append(parts, th.ForTag("a"))
				}
				ctx, cancel := context.WithCancel(t.Context())
				var calls, longest atomic.Int64
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for drawn := 175; ; drawn = 395 {
							came, cost := time.Now(), drawn
							tokens := throttle.Weigh(parts[0], func(int) int { return cost })
							p, err := throttle.All(tokens, throttle.PerCall(parts[1])).Acquire(ctx, 1)
							if err != nil {
								return
							}
							calls.Add(1)
							longest.Store(max(longest.Load(), int64(time.Since(came))))
							cost = 400
							p.Settle(1)
						}
					})
				}
				time.Sleep(2 * time.Minute)
				before := calls.Load()
				longest.Store(0)
				time.Sleep(5 * time.Minute)
				require.InDelta(t, 150, calls.Load()-before, 8)
				require.Less(t, time.Duration(longest.Load()), 40*time.Second, "it takes 16 s until the other seven were served")
				cancel()
				all.Wait()
			})
		})
	}
}

// A caller that came before its pod had a share, and whose tag has no tokens, holds nobody back while the pool is asked for them.
func TestATagWithoutTokensHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas := throttle.Quotas{Tags: map[string]throttle.Quota{"late": {Total: 1, Per: 31 * 24 * time.Hour}}}
		open := func(id, pool string, q throttle.Quotas) *throttle.Throttle {
			th, err := Open(t.Context(), Config{Store: "memory://nobody", Pool: pool, ID: id, Limit: throttle.Limit{Max: 1_000_000}, Quotas: q})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, th.Close()) })
			return th
		}
		_, err := open("a", "plain", throttle.Quotas{}).Acquire(t.Context(), 1)
		require.NoError(t, err)
		plain, tags := open("b", "plain", throttle.Quotas{}), open("b", "tags", quotas)
		acquire := func(ctx context.Context, tag string) error {
			_, err := throttle.All(plain, tags.ForTag(tag)).Acquire(ctx, 1)
			return err
		}
		late, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- acquire(late, "late") }()
		for plain.Status().Lease.Share == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		for range 1000 {
			time.Sleep(100 * time.Microsecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			require.NoError(t, acquire(ctx, "second"))
			cancel()
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
