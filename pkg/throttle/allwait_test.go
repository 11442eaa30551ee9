package throttle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllWaitsForTheScarcest(t *testing.T) {
	for _, swap := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := whole(t, Limit{Max: 100, Burst: 10}), whole(t, Limit{Max: 10, Burst: 10}, WithName("scarce"))
			l := All(a, b)
			if swap {
				l = All(b, a)
			}
			began := time.Now()
			_, err := l.Acquire(timeout(t, 450*time.Millisecond), 5)
			require.Zero(t, time.Since(began), "told at once")
			e := throttled(t, err)
			require.Equal(t, Error{Reason: ReasonLimit, Limit: "scarce", Cost: 5, RetryAfter: e.RetryAfter, by: b}, *e)
			require.Same(t, b, e.By())
			require.InDelta(t, 0.5, e.RetryAfter.Seconds(), 1e-6)
			untouched(t, a, 0)
			untouched(t, b, 0)

			p, err := l.Acquire(timeout(t, 550*time.Millisecond), 5)
			require.NoError(t, err)
			require.Equal(t, 5, p.N())
			require.InDelta(t, 0.5, time.Since(began).Seconds(), 1e-6)
			require.InDelta(t, 5, a.Status().Tokens, 0.01, "ten had overflowed")
			require.InDelta(t, 0, b.Status().Tokens, 0.01)
			sound(t, a)
			sound(t, b)
		})
	}
}

// A call that waits for one limiter and then for another has waited once.
func TestAllCountsAWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 10, Burst: 10, MaxDebt: time.Minute}), whole(t, Limit{Max: 1, Burst: 5})
		time.Sleep(10 * time.Second)
		permit := take(t, a, 1)
		require.Equal(t, 5, drain(b))
		c := beginWith(All(a, b).Acquire, 5, 0)
		time.Sleep(4900 * time.Millisecond)
		require.Equal(t, int64(1), heldFor(b, ReasonLimit).Waits)
		permit.Settle(30)
		time.Sleep(200 * time.Millisecond)
		require.Positive(t, a.Status().Waiting, "it waits for the other one now")
		time.Sleep(time.Minute)
		require.NoError(t, c.end(t).err)
		require.Equal(t, int64(1), heldFor(a, ReasonLimit).Waits+heldFor(b, ReasonLimit).Waits)
		require.Greater(t, heldFor(a, ReasonLimit).Time, 100*time.Millisecond, "the time counts where it was spent")
	})
}

// While a caller waits for the scarcest, the others go on serving.
func TestAllDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		global := whole(t, Limit{Max: 1000, Burst: 100})
		slow := whole(t, Limit{Max: 1, Burst: 1})
		time.Sleep(time.Second + time.Microsecond)
		waiting := beginWith(All(global, slow).Acquire, 1, 0)
		require.NoError(t, waiting.end(t).err)
		waiting = beginWith(All(global, slow).Acquire, 1, 0)
		for range 900 {
			time.Sleep(time.Millisecond)
			require.Positive(t, drain(global), "the caller that waits for a slow limit takes nothing")
		}
		time.Sleep(time.Second)
		require.NoError(t, waiting.end(t).err)
	})
}

// A child that has lost its share holds up nobody at the others, also when a caller
// was next there already.
func TestAllWithAMemberThatLosesItsShare(t *testing.T) {
	for _, end := range []func(s *script){
		func(s *script) { s.give(0) },
		func(s *script) { s.lend(1, 500*time.Millisecond) }, // and nobody says so
	} {
		synctest.Test(t, func(t *testing.T) {
			a := whole(t, Limit{Max: 10, Burst: 5}, WithName("a"))
			b, s := scripted(t, Limit{Max: 10, Burst: 5}, 1, WithName("b"))
			c := beginWith(All(a, b).Acquire, 10, 3*time.Second) // a second for both
			time.Sleep(400 * time.Millisecond)
			require.Equal(t, 1, a.Status().Waiting)
			require.Equal(t, 1, b.Status().Waiting)
			end(s)
			time.Sleep(time.Second)
			require.Equal(t, 1, b.Status().Waiting, "for a share")
			require.Zero(t, a.Status().Waiting)
			require.Positive(t, drain(a))
			time.Sleep(2 * time.Second)
			err := c.end(t).err
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, "b", throttled(t, err).Limit)
			require.Contains(t, []Reason{ReasonNoShare, ReasonStoreLost}, throttled(t, err).Reason)
			sound(t, a)
			sound(t, b)
		})
	}
}

// Nor does a lease that ends unnoticed, after the others had everything ready.
func TestAllWithALeaseThatEndsUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, Limit{Max: 20, Burst: 10})
		b, s := scripted(t, Limit{Max: 10, Burst: 10}, 1)
		c := beginWith(All(a, b).Acquire, 10, 0)
		time.Sleep(600 * time.Millisecond)
		require.Equal(t, 1, a.Status().Waiting)
		require.Equal(t, 1, b.Status().Waiting)
		s.lend(1, 100*time.Millisecond)
		time.Sleep(time.Second)
		require.Equal(t, 10, drain(a))
		s.give(1)
		time.Sleep(2 * time.Second)
		require.NoError(t, c.end(t).err)
	})
}

// Whoever cannot be served in time any more is told so at that moment: a caller that is
// passed by an older one which waited elsewhere, and one whose share falls.
func TestAllTellsWhoDoesNotFitAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 10, Burst: 10}), whole(t, Limit{Max: 100, Burst: 10})
		began := time.Now()
		older := beginWith(All(a, b).Acquire, 10, 0) // a second for a, a tenth of it for b
		time.Sleep(850 * time.Millisecond)
		drain(b)
		passed := begin(b, 8, 100*time.Millisecond)
		require.True(t, passed.waits())
		time.Sleep(time.Second)
		require.NoError(t, older.end(t).err)
		r := passed.end(t)
		require.Equal(t, ReasonLimit, throttled(t, r.err).Reason)
		require.NotErrorIs(t, r.err, context.DeadlineExceeded)
		require.InDelta(t, 0.9, r.at.Sub(began).Seconds(), 1e-3)
	})
	synctest.Test(t, func(t *testing.T) {
		a, s := scripted(t, Limit{Max: 10, Burst: 10}, 1)
		b := whole(t, Limit{Max: 100, Burst: 10})
		c := beginWith(All(a, b).Acquire, 10, 2*time.Second)
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		s.give(0.1)
		r := c.end(t)
		require.Zero(t, r.at.Sub(began))
		require.InDelta(t, 9, throttled(t, r.err).RetryAfter.Seconds(), 0.1)
	})
}

func TestAllIsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 100, Burst: 10}), whole(t, Limit{Max: 50, Burst: 20})
		slots := flight(t, 3)
		var calls []*call
		for i := range 40 {
			l := All(a, b, PerCall(slots))
			if i%2 == 0 {
				l = All(PerCall(slots), b, a)
			}
			calls = append(calls, beginWith(func(ctx context.Context, n int) (Permit, error) {
				p, err := l.Acquire(ctx, n)
				if err == nil {
					go func() {
						time.Sleep(10 * time.Millisecond)
						p.Settle(n)
					}()
				}
				return p, err
			}, 1+i%13, 0))
		}
		time.Sleep(time.Minute)
		var last time.Time
		for i, c := range calls {
			r := c.end(t)
			require.NoError(t, r.err)
			require.False(t, r.at.Before(last), "call %d was overtaken", i)
			last = r.at
		}
		sound(t, a)
		sound(t, b)
	})
}

// A large draw on several limiters gets its tokens although streams of small draws
// would take them all, from each limiter for itself and from all together.
func TestAllDoesNotStarve(t *testing.T) {
	long(t)
	for _, tc := range []struct {
		name string
		n    int
		most time.Duration // that the large draw may take
	}{
		{"as large as the bucket", 10, time.Second},
		{"larger than the bucket", 40, 3 * time.Second},
	} {
		for _, rates := range [][2]int{{100, 100}, {100, 50}, {50, 100}, {100, 20}} {
			t.Run(fmt.Sprint(tc.name, rates), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := whole(t, Limit{Max: 10 * rates[0], Per: 10 * time.Second, Burst: 10})
					b := whole(t, Limit{Max: 10 * rates[1], Per: 10 * time.Second, Burst: 10})
					slots := flight(t, 4)
					ctx, cancel := context.WithCancel(t.Context())
					var wg sync.WaitGroup
					var small atomic.Int64
					for _, l := range []Limiter{a, a, a, b, b, b, slots, slots, slots, slots, slots, slots, All(b, a), All(slots, a)} {
						wg.Go(func() {
							for ctx.Err() == nil {
								if p, err := l.Acquire(ctx, 1); err == nil {
									small.Add(1)
									time.Sleep(5 * time.Millisecond)
									p.Settle(1)
								}
							}
						})
					}
					time.Sleep(time.Second)
					large := beginWith(All(a, b, PerCall(slots)).Acquire, tc.n, 0)
					began := time.Now()
					time.Sleep(2 * tc.most * 100 / time.Duration(min(rates[0], rates[1])))
					r := large.end(t)
					require.NoError(t, r.err)
					require.Less(t, r.at.Sub(began), tc.most*100/time.Duration(min(rates[0], rates[1])))
					r.permit.Settle(tc.n)
					require.Greater(t, small.Load(), int64(100), "the small draws went on")
					cancel()
					wg.Wait()
					sound(t, a)
					sound(t, b)
				})
			})
		}
	}
}

// Nor do several limits on calls in flight.
func TestAllOfSlotsDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g := flight(t, 1), flight(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				l, lasts := Limiter(f), 7*time.Millisecond
				if i%2 == 0 {
					l, lasts = g, 5*time.Millisecond
				}
				for ctx.Err() == nil {
					if p, err := l.Acquire(ctx, 1); err == nil {
						time.Sleep(lasts)
						p.Settle(1)
					}
				}
			})
		}
		time.Sleep(time.Second)
		for _, l := range []Limiter{All(f, g), All(g, f), All(f, Weigh(g, func(n int) int { return 2 * n }))} {
			c := beginWith(l.Acquire, 1, 0)
			time.Sleep(100 * time.Millisecond)
			c.end(t).permit.Settle(1)
		}
		cancel()
		wg.Wait()
		require.Zero(t, f.Status().InUse)
		require.Zero(t, g.Status().InUse)
	})
}

// Two Alls over the same limiters, named in different orders, never wait for each other.
func TestAllNeverDeadlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 1000, Burst: 5}), whole(t, Limit{Max: 1000, Burst: 7})
		slots := flight(t, 2)
		alls := []Limiter{All(a, b), All(b, a), All(slots, a, b), All(b, slots, a), All(All(a, slots), b), All(slots, b)}
		var wg sync.WaitGroup
		var done atomic.Int64
		for i := range 60 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 3))
				for range 30 {
					n := 1 + r.IntN(2)
					p, err := alls[i%len(alls)].Acquire(t.Context(), n)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
					p.Settle(n)
					done.Add(1)
				}
			})
		}
		wg.Wait() // synctest fails the test when nobody can go on
		require.Equal(t, int64(60*30), done.Load())
		require.Zero(t, slots.Status().InUse)
		sound(t, a)
		sound(t, b)
	})
}

func TestAllCancelledWaitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 10, Burst: 5}), whole(t, Limit{Max: 10, Burst: 5})
		slots := flight(t, 1)
		held := take(t, slots, 1)
		var calls []*call
		for i, l := range []Limiter{All(a, b), All(b, a), All(a, b, PerCall(slots)), All(PerCall(slots), b)} {
			calls = append(calls, beginWith(l.Acquire, 1+i, 0))
		}
		time.Sleep(50 * time.Millisecond)
		stop := errors.New("stop")
		for _, c := range calls {
			c.cancel()
			r := c.end(t)
			require.ErrorIs(t, r.err, context.Canceled)
			require.Zero(t, r.permit.N())
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		_, err := All(a, b).Acquire(ctx, 1)
		require.Equal(t, stop, err)
		held.Cancel()
		require.Zero(t, slots.Status().Waiting)
		require.Zero(t, slots.Status().InUse)
		time.Sleep(time.Second)
		untouched(t, a, 5)
		untouched(t, b, 5)
	})
}

func TestAllAcquireUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, slots := full(t, 20), full(t, 10), flight(t, 50)
		l := All(a, Weigh(b, func(n int) int { return 2 * n }), slots)
		p, err := l.AcquireUpTo(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, 3, p.N(), "no more than was asked for")
		p, err = l.AcquireUpTo(t.Context(), 100)
		require.NoError(t, err)
		require.GreaterOrEqual(t, p.N(), 2)
		require.LessOrEqual(t, b.Status().Tokens, 2.0, "all that b has")
		require.Equal(t, 3+p.N(), slots.Status().InUse)

		began := time.Now()
		drain(b)
		p, err = l.AcquireUpTo(t.Context(), 100)
		require.NoError(t, err)
		require.Equal(t, 1, p.N(), "one is enough")
		require.InDelta(t, 0.2, time.Since(began).Seconds(), 1e-6)
	})
}

// A limiter from which a draw takes nothing holds it up in no way.
func TestAllDoesNotWaitForWhatCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := whole(t, Limit{Max: 10, Burst: 10})
		b, _ := scripted(t, Limit{Max: 10}, 0)
		f := newForeign(0)
		hundredth := func(n int) int { return n / 100 }
		l := All(Weigh(b, hundredth), a, Weigh(f, hundredth))
		for _, acquire := range []func(context.Context, int) (Permit, error){l.Acquire, l.AcquireUpTo} {
			c := beginWith(acquire, 5, 0)
			time.Sleep(time.Second)
			c.end(t).permit.Settle(5)
		}
		take(t, l, 1)
		require.Zero(t, b.Status().Granted)
	})
}
