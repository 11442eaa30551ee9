package consensus_test

import (
	"context"
	"errors"
	"sync"
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

// joined is a member with a limiter, which leaves when the test ends.
func joined(t *testing.T, s driver.Store, id string, l throttle.Limit, opts ...consensus.Option) *throttle.Throttle {
	t.Helper()
	m, err := consensus.Join(t.Context(), s, "pool", append(opts, consensus.WithID(id))...)
	require.NoError(t, err)
	th, err := throttle.New(l, throttle.WithSharer(m), throttle.OnClose(m.Leave))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	return th
}

// Refusals by the service bring the next request of an adaptive limit forward, so that the other pods learn of them soon. Here callers use
// all of the limit, which brings nothing forward.
func TestRefusalsAreReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var synced, refused atomic.Int64 // nanoseconds
		clock := func() int64 { return time.Now().UnixNano() }
		th := joined(t, memstore.New(), "a", throttle.Limit{Max: 100, Adaptive: true},
			consensus.WithOnSync(func(consensus.Synced) { synced.Store(clock()) }))
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		defer callers.Wait()
		defer stop()
		for range 10 {
			callers.Go(func() {
				for p, err := th.Acquire(ctx, 1); err == nil; p, err = th.Acquire(ctx, 1) {
					outcome := throttle.OutcomeAccepted
					if refused.Load() > 0 {
						outcome = throttle.OutcomeRefused
					}
					p.Report(outcome)
					p.Settle(1)
				}
			})
		}
		time.Sleep(20 * time.Second)
		for before := synced.Load(); synced.Load() == before; { // just after a sync
			time.Sleep(time.Millisecond)
		}
		refused.Store(clock())
		time.Sleep(driver.DefaultLease / 30) // a third of the interval
		require.Greater(t, synced.Load(), refused.Load(), "no request went out")
	})
}

// A member whose store has never answered tries to leave once, and does not use up the time that it has.
func TestWhoNeverJoinedLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		link := world.NewLink(memstore.New())
		link.CutWith(away)
		m, err := consensus.Join(t.Context(), link, "pool", consensus.WithID("a"))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, m.Leave(ctx), away)
		require.Less(t, time.Since(began), time.Second)
	})
}
