package consensus_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A processor that is cut off for less than a removal time, or whose store forgets
// everything, keeps the slots of its calls under way.
// What a processor has in use when it dies is counted as in use for its lease at least, and
// is another's after the removal.
func TestSlotsOfADeadProcessorReturn(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		join := func(id string) (*flaky, *throttle.InFlight) {
			link := &flaky{Store: s}
			m, err := consensus.Join(t.Context(), link, "pool", consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
			require.NoError(t, err)
			f, err := throttle.NewInFlight(10, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() })
			time.Sleep(2 * interval)
			return link, f
		}
		link, a := join("a")
		_, ok := a.TryAcquire(8)
		require.True(t, ok)
		_, b := join("b")
		link.cut.Store(true)
		took := within(t, consensus.Removal(consensus.DefaultLease)+3*interval, "all slots for b", func() bool {
			b.TryAcquire(1)
			return b.Status().InUse == 10
		})
		require.Greater(t, took, consensus.DefaultLease, "a may draw on them till then")
	})
}

func TestSlotsInUseOutliveAnOutage(t *testing.T) {
	for _, outage := range []string{"cut off", "wiped"} {
		t.Run(outage, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *server) {
				join := func(id string) (*flaky, *throttle.InFlight) {
					link := &flaky{Store: s}
					m, err := consensus.Join(t.Context(), link, "pool",
						consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
					require.NoError(t, err)
					f, err := throttle.NewInFlight(10, throttle.WithSharer(m), throttle.OnClose(m.Leave))
					require.NoError(t, err)
					t.Cleanup(func() { _ = f.Close() })
					time.Sleep(2 * interval)
					return link, f
				}
				link, a := join("a")
				p, ok := a.TryAcquire(8)
				require.True(t, ok)
				_, b := join("b")
				for i := range 600 {
					switch {
					case i == 10 && outage == "cut off":
						link.cut.Store(true)
					case i == 10:
						s.wipe()
					case i == 150: // 14 s later, below a removal time
						link.cut.Store(false)
					}
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
		calls := make([]atomic.Int64, processors)
		ctx, end := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		defer callers.Wait()
		defer end()
		for i := range processors {
			m, err := consensus.Join(t.Context(), s, "pool", consensus.WithID(fmt.Sprintf("p%02d", i)), consensus.WithLogger(quiet))
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
		time.Sleep(30 * time.Second) // till they agree
		for i := range calls {
			calls[i].Store(0)
		}
		const watched = 4 * time.Minute
		time.Sleep(watched)
		total, least := int64(0), int64(1<<62)
		for i := range calls {
			total, least = total+calls[i].Load(), min(least, calls[i].Load())
		}
		use := float64(total) * float64(call) / float64(slots*watched)
		t.Logf("%.3f of the slots used, the least of %d processors %.2f of an even part", use, processors, float64(least*processors)/float64(total))
		require.LessOrEqual(t, most.Load(), int64(slots))
		require.GreaterOrEqual(t, use, 0.8)
		require.GreaterOrEqual(t, least*processors*2, total, "everyone has half an even part at least")
	})
}
