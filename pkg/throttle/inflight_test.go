package throttle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

func TestInFlightHoldsSlotsUntilSettled(t *testing.T) {
	for _, tc := range []struct {
		name   string
		settle func(p Permit)
		inUse  int
	}{
		{"never", func(Permit) {}, 3},
		{"as drawn", func(p Permit) { p.Settle(3) }, 0},
		{"less", func(p Permit) { p.Settle(1) }, 0},
		{"more", func(p Permit) { p.Settle(100) }, 0},
		{"cancelled", Permit.Cancel, 0},
		{"twice", func(p Permit) { p.Settle(3); p.Cancel() }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := flight(t, 4)
			p := take(t, f, 3)
			require.Equal(t, 3, p.N())
			deny(t, f, 2)
			tc.settle(p)
			st := f.Status()
			require.Equal(t, tc.inUse, st.InUse)
			require.Equal(t, int64(3), st.Granted)
			require.Equal(t, int64(2), st.Refused)
		})
	}
}

func TestInFlightIsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight(t, 3)
		first := take(t, f, 3)
		large := beginWith(f.Acquire, 2, 0)
		small := beginWith(f.Acquire, 1, 0)
		upTo := beginWith(f.AcquireUpTo, 5, 0)
		require.Equal(t, 3, f.Status().Waiting)
		deny(t, f, 1)
		first.Settle(1)
		p := large.end(t).permit
		require.Equal(t, 1, small.end(t).permit.N())
		require.True(t, upTo.waits())
		deny(t, f, 1, "somebody waits")
		p.Cancel()
		require.Equal(t, 2, upTo.end(t).permit.N())
		require.Equal(t, 3, f.Status().InUse)
	})
}

func TestInFlightDoesNotOvertakeALargeDraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight(t, 4)
		p, q := take(t, f, 2), take(t, f, 2)
		large, small := beginWith(f.Acquire, 4, 0), beginWith(f.Acquire, 1, 0)
		p.Cancel()
		require.True(t, large.waits())
		require.True(t, small.waits(), "two slots are free, but not for it")
		q.Cancel()
		require.Equal(t, 4, large.end(t).permit.N())
		require.True(t, small.waits())
	})
}

func TestInFlightErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flight(t, 2, WithName("calls"))
		_, err := f.Acquire(t.Context(), 3)
		require.Equal(t, Error{Reason: ReasonTooLarge, Limit: "calls", Cost: 3, Largest: 2, by: f}, *throttled(t, err))
		p, err := f.AcquireUpTo(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, 2, p.N())

		_, err = f.Acquire(timeout(t, time.Second), 1)
		require.ErrorIs(t, err, ErrThrottled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		e := throttled(t, err)
		require.Equal(t, ReasonInFlight, e.Reason)
		require.Equal(t, "in_flight", string(e.Reason))
		require.Equal(t, "calls", e.Limit)
		require.Equal(t, 1, e.Cost)
		require.Zero(t, e.RetryAfter)
		th, held := f.Throttled()
		require.True(t, held)
		require.Equal(t, Throttling{Reason: ReasonInFlight, Limit: "calls"}, th)

		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := beginWith(func(context.Context, int) (Permit, error) { return f.Acquire(ctx, 1) }, 1, 0)
		cancel(stop)
		require.Equal(t, stop, c.end(t).err)
		require.Zero(t, f.Status().Waiting)
		_, err = f.Acquire(ctx, 1)
		require.Equal(t, stop, err)

		c = beginWith(f.Acquire, 1, 0)
		closed := 0
		g := flight(t, 1, OnClose(func(context.Context) error { closed++; return stop }))
		require.ErrorIs(t, g.Close(), stop)
		require.NoError(t, g.Close())
		require.Equal(t, 1, closed)

		require.NoError(t, f.Close())
		require.ErrorIs(t, c.end(t).err, ErrClosed)
		_, err = f.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed)
		_, err = f.Acquire(t.Context(), 0)
		require.ErrorIs(t, err, ErrClosed)
		deny(t, f, 1)
		deny(t, f, 0)
		th, held = f.Throttled()
		require.True(t, held)
		require.Equal(t, ReasonClosed, th.Reason)
		p.Cancel()
		require.Zero(t, f.Status().InUse)
		require.True(t, f.Status().Closed)
	})
}

func TestInFlightWithoutALimit(t *testing.T) {
	f := flight(t, 0)
	require.True(t, Unlimited(f))
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

func TestInFlightShares(t *testing.T) {
	for _, tc := range []struct {
		slots int
		share int64
		want  int
	}{
		{10, WholeShare, 10},
		{10, WholeShare / 2, 5},
		{10, WholeShare / 3, 3},
		{3, WholeShare / 3, 1},
		{7, WholeShare / 7 * 2, 1}, // rounded down twice: the limit comes first
		{1000, WholeShare / 3, 333},
		{1, WholeShare / 2, 0},
		{1, WholeShare - 1, 1},
		{1, WholeShare - 2, 0},
		{2000, WholeShare / 2, 1000},
		{2000, WholeShare/2 - 1, 999},
		{maxTokens, WholeShare - 1, maxTokens - 1},
		{maxTokens, WholeShare, maxTokens},
		{1, 0, 0},
		{1000, 0, 0},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			f := flight(t, tc.slots, WithSharer(&script{first: Lease{Share: tc.share}}))
			require.Equal(t, tc.want, f.Status().Slots)
			if tc.want > 0 {
				require.Equal(t, tc.want, take(t, f, tc.want).N())
			}
			deny(t, f, 1)
		})
	}
}

// However the whole is divided, the slots of all together are never more than there are.
func TestInFlightSharesNeverAddUpToMore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		slots := 1 + r.IntN([]int{5, 100, 1000, 1_000_000}[r.IntN(4)])
		left, sum := WholeShare, 0
		even := WholeShare / int64(1+r.IntN(50))
		for left > 0 {
			share := min(left, even)
			if even%2 == 0 {
				share = min(left, r.Int64N(WholeShare/10)+1)
			}
			left -= share
			f := flight(t, slots, WithSharer(&script{first: Lease{Share: share}}))
			sum += f.Status().Slots
		}
		require.LessOrEqual(t, sum, slots)
	}
}

func TestInFlightShareThatFallsLetsCallsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{first: Lease{Share: WholeShare}}
		f := flight(t, 4, WithSharer(s))
		var permits []Permit
		for range 4 {
			permits = append(permits, take(t, f, 1))
		}
		c := beginWith(f.Acquire, 1, 0)
		s.give(0.5)
		require.Equal(t, 4, f.Status().InUse)
		require.Equal(t, 2, f.Status().Slots)
		permits[0].Cancel()
		permits[1].Cancel()
		require.True(t, c.waits(), "two are in use, and two is what the share allows")
		permits[2].Cancel()
		require.NoError(t, c.end(t).err)
		require.Equal(t, 2, f.Status().InUse)

		c = beginWith(f.Acquire, 1, 0)
		require.True(t, c.waits())
		s.give(0.75)
		require.NoError(t, c.end(t).err, "a share that grows serves who waits")
	})
}

func TestInFlightGrantsNothingWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		f := flight(t, 4, WithSharer(s))
		deny(t, f, 1)
		c := beginWith(f.Acquire, 1, time.Hour)
		s.lend(1, time.Second)
		p := c.end(t).permit
		time.Sleep(time.Second)
		deny(t, f, 1, "the lease is over")
		require.Zero(t, f.Status().Lease.Share)
		for _, tc := range []struct {
			lease Lease
			want  Reason
		}{
			{Lease{Share: WholeShare, Until: time.Now()}, ReasonStoreLost},
			{Lease{Share: WholeShare, Until: time.Now(), Reason: ReasonReplaced}, ReasonReplaced},
			{Lease{}, ReasonNoShare},
			{Lease{Reason: ReasonReplaced}, ReasonReplaced},
			{Lease{Share: WholeShare / 5, Reason: ReasonStoreLost}, ReasonNoShare},
		} {
			s.h.Lease(tc.lease)
			_, err := f.Acquire(timeout(t, time.Millisecond), 1)
			require.Equal(t, tc.want, throttled(t, err).Reason)
			_, err = All(f, whole(t, Limit{Max: 1})).Acquire(timeout(t, time.Millisecond), 1)
			require.Equal(t, tc.want, throttled(t, err).Reason)
		}
		p.Cancel()
		require.Zero(t, f.Status().InUse)
	})
}

func TestInFlightDemandAndDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{first: Lease{Share: WholeShare}}
		f := flight(t, 10, WithSharer(s))
		require.Zero(t, slotHolder{f}.Report(time.Second).Demand)
		require.Zero(t, slotHolder{f}.Report(0).Debt)
		p, q := take(t, f, 3), take(t, f, 4)
		require.EqualValues(t, never, slotHolder{f}.Report(0).Debt, "nobody knows when the calls end")
		s.give(0.5)
		require.Equal(t, WholeShare*7/10, slotHolder{f}.Report(time.Second).Demand, "what is in use, also above the share")
		c := beginWith(f.Acquire, 2, 0)
		require.Positive(t, s.pokes.Load())
		require.Equal(t, WholeShare*9/10, slotHolder{f}.Report(time.Second).Demand, "and what waits")
		p.Cancel()
		require.True(t, c.waits())
		q.Cancel()
		c.end(t).permit.Cancel()
		require.Equal(t, WholeShare*9/10, slotHolder{f}.Report(time.Second).Demand, "at most, over two reports")
		require.Equal(t, WholeShare*9/10, slotHolder{f}.Report(time.Second).Demand)
		require.Zero(t, slotHolder{f}.Report(time.Second).Demand, "idle")
		require.Zero(t, slotHolder{f}.Report(0).Debt)

		pokes := s.pokes.Load()
		deny(t, f, 6)
		require.Greater(t, s.pokes.Load(), pokes)
		require.Equal(t, WholeShare, slotHolder{f}.Report(time.Second).Demand)
		require.Equal(t, WholeShare, slotHolder{f}.Report(time.Second).Demand)
		require.Zero(t, slotHolder{f}.Report(time.Second).Demand)
		require.Equal(t, int64(333_333_334), demandOf(t, 3, 1), "rounded up, to be enough")
	})
}

func demandOf(t *testing.T, slots, use int) int64 {
	t.Helper()
	f := flight(t, slots)
	take(t, f, use)
	return slotHolder{f}.Report(time.Second).Demand
}

// A model of three processors whose shares move: none grants a slot above its share,
// and without calls that outlive a fall the pool never has more than max in use.
func TestInFlightRandomShares(t *testing.T) {
	for seed := range uint64(race.Fewer(30)) {
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
	f := flight(t, 2, WithSharer(s), WithClock(c))
	s.h.Lease(Lease{Share: WholeShare, Until: c.Now().Add(time.Second)})
	take(t, f, 1)
	c.advance(time.Second)
	deny(t, f, 1)
}

// InUse is the smallest share that allows what is under way: neither is a slot in use that
// the others may have, nor is more kept than need be.
func TestInFlightInUseIsWhatTheCallsNeed(t *testing.T) {
	for _, slots := range []int{1, 2, 3, 7, 10, 999, 1000, 1001, 12345, maxTokens} {
		s := &script{first: Lease{Share: WholeShare}}
		f := flight(t, slots, WithSharer(s))
		require.Zero(t, slotHolder{f}.Report(0).InUse)
		for _, n := range []int{1, slots/3 + 1, slots/2 + 1, slots} {
			n = min(n, slots)
			p := take(t, f, n)
			share := slotHolder{f}.Report(0).InUse
			require.LessOrEqual(t, share, WholeShare)
			s.h.Lease(Lease{Share: share})
			require.GreaterOrEqual(t, f.Status().Slots, n, "%d of %d", n, slots)
			s.h.Lease(Lease{Share: share - 1})
			require.Less(t, f.Status().Slots, n, "%d of %d", n, slots)
			s.h.Lease(Lease{Share: 0})
			require.Equal(t, share, slotHolder{f}.Report(0).InUse, "also above the share in force")
			p.Cancel()
			s.h.Lease(Lease{Share: WholeShare})
		}
	}
}
