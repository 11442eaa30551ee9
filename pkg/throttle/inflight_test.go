package throttle

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestInFlightWithoutALimit(t *testing.T) {
	sharer := &script{}
	f := flight(t, 0, WithSharer(sharer), withMeter(1))
	require.True(t, Unlimited(f))
	require.Nil(t, sharer.h, "there is nothing to share")
	require.Empty(t, metersOf(f))
	take(t, f, 0)
	refused, ok := f.TryAcquire(-3)
	require.False(t, ok)
	require.Zero(t, refused.N())
	p := take(t, f, 1<<40)
	p.Cancel()
	acquire(t, f, 5)
	_, held := f.Throttled()
	require.False(t, held)
	require.Zero(t, slotHolder{f}.Report(time.Second).Demand)
	require.Zero(t, slotHolder{f}.Report(0).Debt)
	for _, n := range []int{-1, maxTokens + 1} {
		_, err := NewInFlight(n)
		require.ErrorContains(t, err, "allowed: 0 (no limit) to 1000000000")
	}
}

// However the whole is divided, the slots of all together are never more than there are.
func TestInFlightSharesNeverAddUpToMore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		slots := 1 + r.IntN([]int{5, 100, 1000, 1_000_000}[r.IntN(4)])
		left, sum := wholeShare, 0
		even := wholeShare / int64(1+r.IntN(50))
		for left > 0 {
			share := min(left, even)
			if even%2 == 0 {
				share = min(left, r.Int64N(wholeShare/10)+1)
			}
			left -= share
			f := flight(t, slots, WithSharer(&script{first: limit.Lease{Share: share}}))
			sum += f.Status().Slots
		}
		require.LessOrEqual(t, sum, slots)
	}
}

// A model of three processors whose shares move: none grants a slot above its share,
// and without calls that outlive a fall the pool never has more than max in use.
func TestInFlightRandomShares(t *testing.T) {
	for seed := range uint64(testkit.Fewer(30)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			const slots = 12
			var fs []*InFlight
			var ss []*script
			for range 3 {
				s := &script{}
				ss = append(ss, s)
				fs = append(fs, flight(t, slots, WithSharer(s)))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for _, f := range fs {
				for range 8 {
					wg.Go(func() {
						for ctx.Err() == nil {
							if p, err := f.Acquire(ctx, 1); err == nil {
								time.Sleep(7 * time.Millisecond)
								p.Settle(1)
							}
						}
					})
				}
			}
			for range 100 {
				for _, s := range ss {
					s.give(0) // what falls comes before what rises
				}
				granted := int64(0)
				for _, f := range fs {
					granted += f.Status().Granted
				}
				time.Sleep(8 * time.Millisecond)
				for _, f := range fs {
					granted -= f.Status().Granted
					require.Zero(t, f.Status().InUse, "calls ended")
				}
				require.Zero(t, granted, "granted without a share")
				left := 1.0
				for _, s := range ss {
					share := left * r.Float64()
					left -= share
					s.give(share)
				}
				for range 10 {
					time.Sleep(time.Millisecond)
					synctest.Wait()
					inUse := 0
					for _, f := range fs {
						st := f.Status()
						require.LessOrEqual(t, st.InUse, st.Slots)
						require.Equal(t, min(st.Slots, 8), st.InUse, "everyone wants more")
						inUse += st.InUse
					}
					require.LessOrEqual(t, inUse, slots)
				}
			}
			cancel()
			wg.Wait()
		})
	}
}

func TestInFlightIsSettledOnceFromManyGoroutines(t *testing.T) {
	f := flight(t, 100)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				p, err := f.AcquireUpTo(t.Context(), 40)
				if err != nil {
					t.Error(err)
					return
				}
				var settle sync.WaitGroup
				for range 3 {
					settle.Go(p.Cancel)
				}
				settle.Wait()
			}
		})
	}
	wg.Wait()
	require.Zero(t, f.Status().InUse)
	require.Zero(t, f.Status().Waiting)
}

// The clock of the caller's own decides when a lease is over.
func TestInFlightGoesByItsClock(t *testing.T) {
	c := &manualClock{now: time.Unix(1_800_000_000, 0)}
	s := &script{}
	f := flight(t, 2, WithSharer(s), withClock(c))
	s.h.Lease(limit.Lease{Share: wholeShare, Until: c.Now().Add(time.Second)})
	take(t, f, 1)
	c.advance(time.Second)
	deny(t, f, 1)
}

// InUse is the smallest share that allows what is under way: neither is a slot in use that
// the others may have, nor is more kept than need be.
func TestInFlightInUseIsWhatTheCallsNeed(t *testing.T) {
	for _, slots := range []int{1, 2, 3, 7, 10, 999, 1000, 1001, 12345, maxTokens} {
		s := &script{first: limit.Lease{Share: wholeShare}}
		f := flight(t, slots, WithSharer(s))
		require.Zero(t, slotHolder{f}.Report(0).InUse)
		for _, n := range []int{1, slots/3 + 1, slots/2 + 1, slots} {
			n = min(n, slots)
			p := take(t, f, n)
			share := slotHolder{f}.Report(0).InUse
			require.LessOrEqual(t, share, wholeShare)
			s.h.Lease(limit.Lease{Share: share})
			require.GreaterOrEqual(t, f.Status().Slots, n, "%d of %d", n, slots)
			s.h.Lease(limit.Lease{Share: share - 1})
			require.Less(t, f.Status().Slots, n, "%d of %d", n, slots)
			s.h.Lease(limit.Lease{Share: 0})
			require.Equal(t, share, slotHolder{f}.Report(0).InUse, "also above the share in force")
			p.Cancel()
			s.h.Lease(limit.Lease{Share: wholeShare})
		}
	}
}
