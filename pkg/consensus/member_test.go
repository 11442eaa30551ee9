package consensus_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
