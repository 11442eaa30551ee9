package consensus_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A tenantNode is a processor whose limiter has quotas.
type tenantNode struct {
	m    *consensus.Member
	th   *throttle.Throttle
	link *flaky
	used map[string]*atomic.Int64
}

func tenants(t *testing.T, store consensus.Store, id string, q throttle.Quotas, opts ...consensus.Option) *tenantNode {
	t.Helper()
	n := &tenantNode{link: &flaky{Store: store}, used: map[string]*atomic.Int64{}}
	opts = append([]consensus.Option{consensus.WithID(id), consensus.WithLogger(quiet)}, opts...)
	m, err := consensus.Join(t.Context(), n.link, "pool", opts...)
	require.NoError(t, err)
	th, err := throttle.New(throttle.Limit{Max: 1000, Per: time.Second}, throttle.WithSharer(m), throttle.WithQuotas(q), throttle.OnClose(m.Leave))
	require.NoError(t, err)
	n.m, n.th = m, th
	t.Cleanup(func() { n.link.cut.Store(false); _ = th.Close() })
	return n
}

// call starts callers of a tag who draw as fast as they can.
func (n *tenantNode) call(t *testing.T, tag string, callers int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	used := &atomic.Int64{}
	n.used[tag] = used
	for range callers {
		go func() {
			for {
				p, err := n.th.ForTag(tag).Acquire(ctx, 1)
				if err != nil {
					return
				}
				used.Add(int64(p.N()))
			}
		}()
	}
}

// over is what a tag uses per second over the whole pool in d.
func over(d time.Duration, tag string, nodes ...*tenantNode) float64 {
	sum := func() (n int64) {
		for _, o := range nodes {
			if u := o.used[tag]; u != nil {
				n += u.Load()
			}
		}
		return n
	}
	before := sum()
	time.Sleep(d)
	return float64(sum()-before) / d.Seconds()
}

// Real limiters in a pool: a tag is held to its total, gets what is reserved at one processor alone, and the pool is used.
func TestTagsOverAPoolOfLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 300, Total: 400}, "capped": {Total: 100}}}
		var nodes []*tenantNode
		for i := range 4 {
			n := tenants(t, store, fmt.Sprint("p", i), q)
			nodes = append(nodes, n)
			n.call(t, "hog", 4)
			n.call(t, "capped", 2)
		}
		time.Sleep(10 * time.Second)
		require.InDelta(t, 100, over(20*time.Second, "capped", nodes...), 6)
		require.InDelta(t, 900, over(10*time.Second, "hog", nodes...), 20)
		nodes[2].call(t, "acme", 8)
		time.Sleep(4 * interval)
		require.GreaterOrEqual(t, over(5*time.Second, "acme", nodes...), 0.98*300)
		require.LessOrEqual(t, over(10*time.Second, "acme", nodes...), 400.0+40)
		require.InDelta(t, 100, over(20*time.Second, "capped", nodes...), 6)
	})
}

// A changed quota holds at limiters that are in use, also for a tag that had none, and is over when it is cleared.
func TestLimitersGoByChangedQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 400}}}
		a, b := tenants(t, store, "a", q), tenants(t, store, "b", q)
		for _, n := range []*tenantNode{a, b} {
			n.call(t, "acme", 4)
			n.call(t, "newcomer", 4)
		}
		uses := func(tag string, rate float64) { // a look may meet an interval in which one of the two pods lost its tokens
			t.Helper()
			got := 0.0
			for range 3 {
				if got = over(10*time.Second, tag, a, b); math.Abs(got-rate) <= rate/10 {
					return
				}
			}
			require.InDelta(t, rate, got, rate/10, tag)
		}
		time.Sleep(10 * time.Second)
		uses("acme", 400)
		uses("newcomer", 600)
		require.NoError(t, consensus.SaveQuota(t.Context(), store, "pool", "acme", &throttle.Quota{Total: 100}, false))
		require.NoError(t, consensus.SaveQuota(t.Context(), store, "pool", "newcomer", &throttle.Quota{Total: 50}, false))
		time.Sleep(5 * time.Second)
		// Tokens of one interval may be used in the next, so a window of few seconds says little.
		require.InDelta(t, 100, over(20*time.Second, "acme", a, b), 8)
		require.InDelta(t, 50, over(20*time.Second, "newcomer", a, b), 4)
		for _, tag := range []string{"acme", "newcomer"} {
			require.NoError(t, consensus.SaveQuota(t.Context(), store, "pool", tag, nil, false))
		}
		time.Sleep(5 * time.Second)
		uses("acme", 400)
		uses("newcomer", 600)
	})
}

// A call that needs more than an interval earns gets its tokens after the time that they take.
func TestALargeCallOfATagInAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 600, Per: time.Minute}}}
		n := tenants(t, store, "a", q)
		time.Sleep(5 * time.Second)
		for range 3 {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := n.th.ForTag("acme").Acquire(ctx, 100)
			cancel()
			require.NoError(t, err)
			require.InDelta(t, 10, time.Since(began).Seconds(), 2.5)
		}
	})
}
