package consensus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// holdsSlots joins a processor that shares ten slots. It returns when two intervals are over.
func holdsSlots(t *testing.T, s *server, id string) (*world.Link, *throttle.InFlight) {
	link := world.NewLink(s)
	m, err := consensus.Join(t.Context(), link, "pool",
		consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
	require.NoError(t, err)
	f, err := throttle.NewInFlight(10, throttle.WithSharer(m), throttle.OnClose(m.Leave))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	time.Sleep(2 * interval)
	return link, f
}

// What a processor has in use when it dies is counted as in use for its lease at least, and
// is another's after the removal.
func TestSlotsOfADeadProcessorReturn(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		link, a := holdsSlots(t, s, "a")
		_, ok := a.TryAcquire(8)
		require.True(t, ok)
		_, b := holdsSlots(t, s, "b")
		link.Cut.Store(true)
		took := within(t, wire.Removal(driver.DefaultLease)+3*interval, "all slots for b", func() bool {
			b.TryAcquire(1)
			return b.Status().InUse == 10
		})
		require.Greater(t, took, driver.DefaultLease, "a may draw on them tag bucket then")
	})
}

// A processor that is cut off for more than a lease and less than a removal time, or whose store forgets
// everything, keeps the slots of its calls under way.
func TestSlotsInUseOutliveAnOutage(t *testing.T) {
	// The store misses a processor from its last sync before the outage to its first one after it.
	const outage = 12 * time.Second
	require.Greater(t, outage, driver.DefaultLease)
	require.Less(t, outage+2*(interval+interval/5), wire.Removal(driver.DefaultLease))
	for _, kind := range []string{"cut off", "wiped"} {
		t.Run(kind, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				link, a := holdsSlots(t, s, "a")
				p, ok := a.TryAcquire(8)
				require.True(t, ok)
				_, b := holdsSlots(t, s, "b")
				if kind == "wiped" {
					s.wipe()
				} else {
					link.Cut.Store(true)
					time.AfterFunc(outage, func() { link.Cut.Store(false) })
				}
				for range 600 {
					b.TryAcquire(1)
					require.LessOrEqual(t, a.Status().InUse+b.Status().InUse, 10)
					time.Sleep(100 * time.Millisecond)
				}
				require.Equal(t, 2, b.Status().InUse)
				p.Cancel()
				within(t, 5*interval, "more slots for b", func() bool { b.TryAcquire(1); return b.Status().InUse > 5 })
			})
		})
	}
}

// Twenty processors want a slot all the time, and there are three: all three are used nearly all the
// time, never more, and everybody has its turn.
func TestFewerSlotsThanProcessorsAreTakenInTurns(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		const processors, slots, call = 20, 3, 500 * time.Millisecond
		var inUse, most atomic.Int64
		calls, link := make([]atomic.Int64, processors), world.NewLink(s)
		ctx, end := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		defer callers.Wait()
		defer end()
		for i := range processors {
			m, err := consensus.Join(t.Context(), link, "pool", consensus.WithID(fmt.Sprintf("p%02d", i)), consensus.WithLogger(quiet))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(slots, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			callers.Go(func() {
				for {
					p, err := f.Acquire(ctx, 1)
					if err != nil {
						return
					}
					if now := inUse.Add(1); now > most.Load() {
						most.Store(now)
					}
					time.Sleep(call)
					inUse.Add(-1)
					calls[i].Add(1)
					p.Settle(1)
				}
			})
		}
		time.Sleep(30 * time.Second) // tag bucket they agree
		for i := range calls {
			calls[i].Store(0)
		}
		link.Syncs.Store(0)
		const watched = 4 * time.Minute
		time.Sleep(watched)
		total, least := int64(0), int64(1<<62)
		for i := range calls {
			total, least = total+calls[i].Load(), min(least, calls[i].Load())
		}
		use := float64(total) * float64(call) / float64(slots*watched)
		syncs := float64(link.Syncs.Load()) / processors / watched.Seconds()
		t.Logf("%.3f of the slots used, the least of %d processors %.2f of an even part, %.2f syncs each second",
			use, processors, float64(least*processors)/float64(total), syncs)
		require.LessOrEqual(t, most.Load(), int64(slots))
		require.GreaterOrEqual(t, use, 0.8)
		require.GreaterOrEqual(t, least*processors*2, total, "everyone has half an even part at least")
		require.LessOrEqual(t, syncs, 2.0, "who has no slot does not ask for one all the time")
	})
}
