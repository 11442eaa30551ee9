package consensus_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Real limiters in a pool: a tag is held to its total, gets what is reserved at one processor alone, and the pool is used.
func TestTagsOverAPoolOfLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 300, Total: 400}, "capped": {Total: 100}}}
		p := newMatrixPool(t, 4, throttle.Limit{Max: 1000}, q)
		for _, th := range p.pods {
			p.closed(th, "hog", 4, 1)
			p.closed(th, "capped", 2, 1)
		}
		time.Sleep(10 * time.Second)
		require.InDelta(t, 100, p.over(20*time.Second, "capped"), 6)
		require.InDelta(t, 900, p.over(10*time.Second, "hog"), 20)
		p.closed(p.pods[2], "acme", 8, 1)
		time.Sleep(4 * interval)
		require.GreaterOrEqual(t, p.over(5*time.Second, "acme"), 0.98*300)
		require.LessOrEqual(t, p.over(10*time.Second, "acme"), 400.0+40)
		require.InDelta(t, 100, p.over(20*time.Second, "capped"), 6)
	})
}

// A changed quota holds at limiters that are in use, also for a tag that had none, and is over when it is cleared.
func TestLimitersGoByChangedQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newMatrixPool(t, 2, throttle.Limit{Max: 1000}, throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 400}}})
		for _, th := range p.pods {
			p.closed(th, "acme", 4, 1)
			p.closed(th, "newcomer", 4, 1)
		}
		uses := func(tag string, rate float64) { // a look may meet an interval in which one of the two pods lost its tokens
			t.Helper()
			got := 0.0
			for range 3 {
				if got = p.over(10*time.Second, tag); math.Abs(got-rate) <= rate/10 {
					return
				}
			}
			require.InDelta(t, rate, got, rate/10, tag)
		}
		time.Sleep(10 * time.Second)
		uses("acme", 400)
		uses("newcomer", 600)
		require.NoError(t, protocol.SaveQuota(t.Context(), p.store, "pool", "acme", &throttle.Quota{Total: 100}, false))
		require.NoError(t, protocol.SaveQuota(t.Context(), p.store, "pool", "newcomer", &throttle.Quota{Total: 50}, false))
		time.Sleep(5 * time.Second)
		// Tokens of one interval may be used in the next, so a window of few seconds says little.
		require.InDelta(t, 100, p.over(20*time.Second, "acme"), 8)
		require.InDelta(t, 50, p.over(20*time.Second, "newcomer"), 4)
		for _, tag := range []string{"acme", "newcomer"} {
			require.NoError(t, protocol.SaveQuota(t.Context(), p.store, "pool", tag, nil, false))
		}
		time.Sleep(5 * time.Second)
		uses("acme", 400)
		uses("newcomer", 600)
	})
}

// A call that needs more than an interval earns gets its tokens after the time that they take.
func TestALargeCallOfATagInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 600, Per: time.Minute}}}
		p := newMatrixPool(t, 1, throttle.Limit{Max: 1000}, q)
		time.Sleep(5 * time.Second)
		for range 3 {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := p.pods[0].ForTag("acme").Acquire(ctx, 100)
			cancel()
			require.NoError(t, err)
			require.InDelta(t, 10, time.Since(began).Seconds(), 2.5)
		}
	})
}

// Q7: where nothing goes wrong all of a budget is used, however many pods hold some of it when it ends.
func TestAllOfABudgetIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"spent": {Total: 400, Budgets: []throttle.Budget{{Amount: 2000, Per: "day"}}}}}
		p := newMatrixPool(t, 3, throttle.Limit{Max: 400}, q)
		for _, th := range p.pods { // other tags draw as well, so that some batches run out before they are used up
			p.open(th, "spent", 150, 1)
			p.open(th, "other", 20, 1)
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, 2000, p.of("spent").sum)
	})
}
