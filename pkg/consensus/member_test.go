package consensus_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var quiet = slog.New(slog.DiscardHandler)

// A node is one processor of a pool under test: member, throttle and load.
type node struct {
	m    *consensus.Member
	th   *throttle.Throttle
	link *world.Link
	used atomic.Int64
	stop context.CancelFunc
}

func (n *node) share() float64 { return n.m.View().Share.Fraction() }

// start joins a processor to the pool. workers is the number of callers that
// draw as fast as they can.
func start(t *testing.T, store driver.Store, id string, workers int, opts ...consensus.Option) *node {
	t.Helper()
	return limited(t, store, id, throttle.Limit{Max: 1000}, workers, opts...)
}

// limited joins a processor with a limit of its own to the pool, with callers that
// draw as fast as they can.
func limited(t *testing.T, store driver.Store, id string, l throttle.Limit, workers int, opts ...consensus.Option) *node {
	t.Helper()
	n := &node{link: world.NewLink(store)}
	n.m, n.th = attach(t, n.link, id, l, opts...)
	n.work(t, workers)
	return n
}

// attach joins the pool through a link, and makes a limiter that draws on it.
func attach(t *testing.T, link driver.Store, id string, l throttle.Limit, opts ...consensus.Option) (*consensus.Member, *throttle.Throttle) {
	t.Helper()
	opts = append([]consensus.Option{consensus.WithID(id), consensus.WithLogger(quiet)}, opts...)
	m, err := consensus.Join(t.Context(), link, "pool", opts...)
	require.NoError(t, err)
	th, err := throttle.New(l, throttle.WithSharer(m), throttle.OnClose(m.Leave))
	require.NoError(t, err)
	return m, th
}

// callers starts callers that draw so many tokens at a time, as fast as they can, until stop is called. Each permit goes to use.
func callers(th *throttle.Throttle, n, tokens int, use func(throttle.Permit)) (stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	for range n {
		go func() {
			for {
				p, err := th.Acquire(ctx, tokens)
				if err != nil {
					return
				}
				use(p)
			}
		}()
	}
	return cancel
}

// work starts callers, who end with the test. They make about a hundred calls a second: minutes of more take long to compute.
// Of a hard limit so many tokens are not always to be had at once.
func (n *node) work(t *testing.T, workers int) {
	t.Helper()
	tokens := 1
	if l := n.th.Limit(); !l.Hard {
		tokens = max(1, int(l.Rate()/100))
	}
	n.stop = callers(n.th, workers, tokens, func(p throttle.Permit) { n.used.Add(int64(p.N())) })
	stop := n.stop
	t.Cleanup(func() {
		stop()
		n.link.Cut.Store(false)
		n.link.Hang.Store(false)
		_ = n.th.Close()
	})
}

// pool starts n processors and gives them time to agree.
func pool(t *testing.T, n, workers int, opts ...consensus.Option) (driver.Store, []*node) {
	t.Helper()
	store := memstore.New()
	nodes := make([]*node, n)
	for i := range nodes {
		nodes[i] = start(t, store, fmt.Sprintf("p%02d", i), workers, opts...)
	}
	time.Sleep(5 * time.Second)
	return store, nodes
}

func sum(nodes []*node) (total float64) {
	for _, n := range nodes {
		total += n.share()
	}
	return total
}

// within polls in virtual time until ok, and returns how long it took.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		require.LessOrEqual(t, time.Since(began), limit, what)
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

const interval = driver.DefaultLease / 10

func TestMemberAloneHasTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, memstore.New(), "a", 1)
		within(t, interval, "the whole limit", func() bool { return n.share() == 1 })
		time.Sleep(time.Minute)
		require.InDelta(t, 60_000, n.used.Load(), 600)
	})
}

func TestMembersShareEvenlyWhenAllAreBusy(t *testing.T) {
	for _, policy := range []struct {
		name string
		p    consensus.Policy
	}{{"even", consensus.Even}, {"fair", consensus.Fair}} {
		t.Run(policy.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, nodes := pool(t, 4, 8, consensus.WithPolicy(policy.p))
				for _, n := range nodes {
					require.InDelta(t, 0.25, n.share(), 0.0125, n.m.View())
					require.True(t, n.m.View().Agreed)
					require.Equal(t, 4, n.m.View().PoolSize)
					n.used.Store(0)
				}
				time.Sleep(30 * time.Second)
				var used int64
				for _, n := range nodes {
					used += n.used.Load()
				}
				require.LessOrEqual(t, used, int64(30_000+100+4))
				require.GreaterOrEqual(t, used, int64(29_700))
			})
		})
	}
}

func TestMemberJoinsABusyPool(t *testing.T) {
	for _, live := range []int{1, 3, 15} {
		t.Run(fmt.Sprint(live), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, nodes := pool(t, live, 8)
				n := start(t, store, "new", 8)
				fair := 1 / float64(live+1)
				took := within(t, 2*interval, "0.95 of a fair share", func() bool { return n.share() >= 0.95*fair })
				t.Log("a fair share after", took)
				require.LessOrEqual(t, sum(append(nodes, n)), 1.0)
			})
		})
	}
}

func TestMemberLeavesAndTheOthersUseItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := pool(t, 4, 8)
		require.NoError(t, nodes[3].th.Close())
		require.Zero(t, nodes[3].share())
		took := within(t, interval+interval/5, "the whole limit in use", func() bool { return sum(nodes[:3]) >= 0.99 })
		t.Log("in use after", took)
	})
}

func TestMemberDiesAndTheOthersUseItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := pool(t, 4, 8, consensus.WithOnStoreLoss(consensus.Stop))
		nodes[3].stop()
		nodes[3].link.Cut.Store(true)
		limit := wire.Removal(driver.DefaultLease) + interval
		took := within(t, limit, "the whole limit in use", func() bool { return sum(nodes[:3]) >= 0.99 })
		t.Log("in use after", took)
		require.GreaterOrEqual(t, took, driver.DefaultLease, "while it may still draw its claim stays")
		require.Zero(t, nodes[3].share())
	})
}

func TestAllLoadOnOneOfSixteen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := pool(t, 16, 8)
		for _, n := range nodes[1:] {
			n.stop()
		}
		took := within(t, 3*time.Second, "0.95 of the limit on one", func() bool { return nodes[0].share() >= 0.95 })
		t.Log("0.95 after", took)
		nodes[0].used.Store(0)
		time.Sleep(30 * time.Second)
		require.GreaterOrEqual(t, nodes[0].used.Load(), int64(0.98*30_000))
	})
}

func TestStoreLost(t *testing.T) {
	t.Run("stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := pool(t, 2, 4, consensus.WithOnStoreLoss(consensus.Stop))
			for _, n := range nodes {
				n.link.Cut.Store(true)
			}
			time.Sleep(driver.DefaultLease)
			for _, n := range nodes {
				require.Zero(t, n.share())
				require.Equal(t, string(protocol.StateLost), n.m.View().State)
				require.ErrorIs(t, n.m.View().LastError, world.ErrCut)
				th, throttled := n.th.Throttled()
				require.True(t, throttled)
				require.Equal(t, throttle.ReasonStoreLost, th.Reason)
			}
			for _, n := range nodes {
				n.link.Cut.Store(false)
			}
			within(t, driver.DefaultLease/2+500*time.Millisecond, "back in use", func() bool { return sum(nodes) >= 0.99 })
		})
	})
	t.Run("degrade", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := pool(t, 2, 4)
			for _, n := range nodes {
				n.link.Cut.Store(true)
			}
			time.Sleep(driver.DefaultLease + time.Second)
			for _, n := range nodes {
				require.InDelta(t, 0.5, n.share(), 0.03)
				require.True(t, n.m.View().Degraded)
			}
			for _, n := range nodes {
				n.stop() // an hour of calls takes long to compute
			}
			time.Sleep(time.Hour)
			require.Zero(t, sum(nodes), "a share without consent ends after an hour")
		})
	})
	t.Run("degrade, who has it all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := pool(t, 8, 4)
			for _, n := range nodes[1:] {
				n.stop()
			}
			within(t, 3*time.Second, "nearly all of the limit on one", func() bool { return nodes[0].share() >= 0.9 })
			nodes[0].link.Cut.Store(true)
			time.Sleep(driver.DefaultLease + time.Second)
			require.True(t, nodes[0].m.View().Degraded)
			require.InDelta(t, 1.0/8, nodes[0].share(), 1e-9, "an even part, and no more")
			time.Sleep(wire.Removal(driver.DefaultLease))
			require.LessOrEqual(t, sum(nodes), 1+1.0/8)
		})
	})
	t.Run("hanging store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := pool(t, 1, 1, consensus.WithOnStoreLoss(consensus.Stop))
			nodes[0].link.Hang.Store(true)
			time.Sleep(driver.DefaultLease)
			require.Zero(t, nodes[0].share())
			used := nodes[0].used.Load()
			time.Sleep(time.Minute)
			require.Equal(t, used, nodes[0].used.Load(), "nothing is granted without a lease")
		})
	})
}

func TestNewerProcessOfOneIDWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		older := start(t, store, "same", 2)
		time.Sleep(3 * time.Second)
		require.Equal(t, driver.Whole, older.m.View().Share)
		newer := start(t, store, "same", 2)
		within(t, 2*interval, "the older is told", func() bool { return older.m.View().State == string(protocol.StateReplaced) })
		require.Zero(t, older.share())
		th, _ := older.th.Throttled()
		require.Equal(t, throttle.ReasonReplaced, th.Reason)
		used := older.used.Load()
		within(t, wire.Removal(driver.DefaultLease)+interval, "the newer has it all", func() bool { return newer.share() == 1 })
		require.Zero(t, older.share())
		require.Equal(t, used, older.used.Load(), "it draws nothing")

		require.NoError(t, newer.th.Close())
		within(t, 2*interval, "the older goes on when the newer has left", func() bool { return older.share() > 0 })
	})
}

// A processor that is content with a little less than it wants does not ask more
// often for it.
func TestOneSyncPerIntervalAtAnyRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := pool(t, 4, 16)
		before := nodes[0].link.Syncs.Load()
		time.Sleep(100 * interval)
		require.InDelta(t, 102, nodes[0].link.Syncs.Load()-before, 4)
	})
}

func TestJoinFailFast(t *testing.T) {
	link := world.NewLink(memstore.New())
	link.Cut.Store(true)
	_, err := consensus.Join(t.Context(), link, "pool", consensus.WithID("a"), consensus.WithFailFast())
	require.ErrorIs(t, err, world.ErrCut)
	require.ErrorContains(t, err, `pool "pool"`)
}

// Connecting may take longer than a sync may.
func TestJoinFailFastHasPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := world.NewLink(memstore.New())
		store.Takes.Store(int64(time.Hour))
		join := func() (*consensus.Member, time.Duration, error) {
			began := time.Now()
			m, err := consensus.Join(t.Context(), store, "pool", consensus.WithLease(driver.MinLease), consensus.WithFailFast())
			return m, time.Since(began), err
		}
		_, took, err := join()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, took, "four times half a second")

		time.AfterFunc(1100*time.Millisecond, func() { store.Takes.Store(int64(10 * time.Millisecond)) })
		m, took, err := join()
		require.NoError(t, err)
		require.Equal(t, 1510*time.Millisecond, took)
		require.NoError(t, m.Leave(t.Context()))
	})
}

func TestJoinRefusesBadOptions(t *testing.T) {
	for _, c := range []struct {
		name, pool, want string
		opts             []consensus.Option
	}{
		{"no pool", "", "Pool", nil},
		{"short lease", "p", "Lease is 1s, allowed: 3s to 10s", []consensus.Option{consensus.WithLease(time.Second)}},
		{"long lease", "p", "Lease is 1m", []consensus.Option{consensus.WithLease(time.Minute)}},
		{"fraction of a millisecond", "p", "Lease", []consensus.Option{consensus.WithLease(3*time.Second + 1)}},
		{"zero byte in the ID", "p", "ID", []consensus.Option{consensus.WithID("a\x00b")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := consensus.Join(t.Context(), memstore.New(), c.pool, c.opts...)
			var re *driver.RequestError
			require.ErrorAs(t, err, &re)
			require.ErrorContains(t, err, c.want)
		})
	}
}
