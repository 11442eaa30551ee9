package consensus_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Whoever restarts during a pause is paused, also when all do, and it ends by itself.
func TestPauseOutlivesEverybody(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		pool := newPods(s)
		all := pool.start(t, 3)
		end := time.Now().Add(10 * time.Minute)
		all[0].pause(t, 10*time.Minute)
		time.Sleep(10 * time.Second)
		all[1] = pool.restart(t, all[1], "p1", false)
		requireStill(t, time.Minute, all...)
		for i, p := range all {
			all[i] = pool.restart(t, p, fmt.Sprint("q", i), i == 2)
		}
		requireStill(t, time.Minute, all...)
		for _, p := range all {
			require.WithinDuration(t, end, p.end(t), 3*time.Second)
			require.GreaterOrEqual(t, time.Until(p.end(t)), time.Until(end)-interval)
		}
		requireStill(t, time.Until(end)-interval, all...)
		time.Sleep(5 * time.Second)
		require.InDelta(t, 1000, granted(time.Second, all...), 60)
	})
}

// The time for which nobody is there is a part of the pause.
func TestPauseGoesOnWhileThePoolIsEmpty(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		pool := newPods(s)
		all := pool.start(t, 2)
		end := time.Now().Add(6 * time.Hour)
		all[0].pause(t, 6*time.Hour)
		for range 2 {
			for _, p := range all {
				pool.stop(p, true)
			}
			time.Sleep(2 * time.Hour)
			all = pool.start(t, 2)
			requireStill(t, time.Minute, all...)
			require.WithinDuration(t, end, all[0].end(t), 5*time.Second)
			require.WithinDuration(t, end, all[1].end(t), 5*time.Second)
		}
		for _, p := range all {
			pool.stop(p, true)
		}
		time.Sleep(24 * time.Hour)
		all = pool.start(t, 2)
		require.NotZero(t, granted(10*time.Second, all...), "it is long over")
	})
}

// A store that loses everything gets the pause back, on its own clock.
func TestWipedStoreGetsThePauseBack(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		pool := newPods(s)
		all := pool.start(t, 2)
		for _, p := range all { // the logical clock stands still, and is hours behind the store's
			pool.stop(p, true)
		}
		time.Sleep(5 * time.Hour)
		all = pool.start(t, 2)
		end := time.Now().Add(time.Hour)
		all[0].pause(t, time.Hour)
		time.Sleep(10 * time.Second)
		s.wipe()
		time.Sleep(5 * time.Second)
		all = append(all, pool.join(t, "new"))
		requireStill(t, time.Minute, all...)
		for _, p := range all {
			require.WithinDuration(t, end, p.end(t), 3*time.Second)
		}
	})
}

// A store that is away stops its clock. Who was there goes by its own, and tells the others.
func TestPauseWhileTheStoreIsAway(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		pool := newPods(s)
		all := pool.start(t, 2)
		cutOff(true, all...)
		end := time.Now().Add(10 * time.Minute)
		r, err := all[0].th.Pause(t.Context(), end, "down")
		require.ErrorContains(t, err, "not on record yet")
		require.Zero(t, r.Generation)
		require.Equal(t, []string{"p0", "p1"}, r.Answered, "news need no store")
		require.True(t, all[1].paused())
		all[1].line.deaf.Store(true)
		r, err = all[0].th.Pause(t.Context(), end.Add(time.Minute), "down")
		require.Error(t, err)
		require.Equal(t, []string{"p1"}, r.Missing)
		end = end.Add(time.Minute)
		pool.endAfterAnOutage(t, end, 3*time.Second, all...)
	})
}

// endAfterAnOutage gives the store back after five minutes: the pause ends when it should, also for one that joins then.
func (p *pods) endAfterAnOutage(t *testing.T, end time.Time, off time.Duration, all ...*pod) {
	t.Helper()
	time.Sleep(5 * time.Minute)
	cutOff(false, all...)
	time.Sleep(10 * time.Second)
	all = append(all, p.join(t, "new"))
	time.Sleep(10 * time.Second)
	for _, o := range all {
		require.WithinDuration(t, end, o.end(t), off)
	}
}

// The logical clock stands still while the store is away: the pause does not.
func TestPauseDoesNotStandStillWithTheStore(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		pool := newPods(s)
		all := pool.start(t, 2)
		end := time.Now().Add(10 * time.Minute)
		all[0].pause(t, 10*time.Minute)
		time.Sleep(10 * time.Second)
		cutOff(true, all...)
		pool.endAfterAnOutage(t, end, 4*time.Second, all...)
	})
}

// A processor that is cut off knows nothing, and has no share by the end of its lease.
func TestWhoSendsNoReceiptLosesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		all := pool.start(t, 3)
		all[2].link.Cut.Store(true)
		all[2].line.deaf.Store(true)
		began := time.Now()
		r := all[0].pause(t, time.Hour)
		require.Equal(t, []string{"p2"}, r.Missing)
		require.Equal(t, []string{"p2"}, all[0].m.View().PauseMissing)
		require.NotZero(t, granted(time.Second, all[2]))
		time.Sleep(driver.DefaultLease - time.Since(began))
		requireStill(t, time.Minute, all...)
		require.Empty(t, all[0].m.View().PauseMissing, "it is no longer live")
		all[2].link.Cut.Store(false)
		requireStill(t, time.Minute, all...)
		require.True(t, all[2].paused())
	})
}

// Where a processor that is cut off may go on without the store, it does so in a pause that it knows
// nothing of, and stops when it can ask again.
func TestWhoIsCutOffGoesOnDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPods(memstore.New())
		pool.loss = consensus.Degrade
		all := pool.start(t, 3)
		all[2].link.Cut.Store(true)
		all[2].line.deaf.Store(true)
		r := all[0].pause(t, time.Hour)
		require.Equal(t, []string{"p2"}, r.Missing)
		time.Sleep(2 * driver.DefaultLease)
		require.True(t, all[2].th.Status().Lease.Degraded)
		require.InDelta(t, 60*1000/3, granted(time.Minute, all[2]), 60*20, "its last share")
		requireStill(t, time.Minute, all[:2]...)
		all[2].link.Cut.Store(false)
		time.Sleep(driver.DefaultLease*3/10 + interval) // it asks again after 0.3 leases at the latest
		require.True(t, all[2].paused())
		requireStill(t, time.Minute, all...)
	})
}

// Nothing is renewed by who cannot read what is paused.
func TestUnreadablePauseRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		all := newPods(s).start(t, 2)
		_, err := s.Save(t.Context(), "pool", driver.DocumentReport{Name: "pause", Version: 1 << 16, Body: []byte(`{"pauses":[],"of":"later"}`)})
		require.NoError(t, err)
		time.Sleep(driver.DefaultLease + 2*interval)
		requireStill(t, time.Minute, all...)
		held, _ := all[0].th.Throttled()
		require.Equal(t, throttle.ReasonUnreadable, held.Reason)
		_, err = all[0].th.Pause(t.Context(), time.Time{}, "")
		require.ErrorContains(t, err, "what is paused cannot be read")
		_, err = protocol.LoadPauses(t.Context(), s, "pool")
		require.ErrorContains(t, err, "holds no pauses")
		_, err = s.Save(t.Context(), "pool", driver.DocumentReport{Name: "pause", Version: 2 << 16, Base: 1 << 16, Body: []byte(`{"pauses":[]}`)})
		require.NoError(t, err)
		time.Sleep(2 * interval)
		require.NotZero(t, granted(time.Second, all...))
	})
}
