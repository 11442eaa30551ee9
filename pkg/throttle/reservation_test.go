package throttle

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/race"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

var perSecond = Limit{Max: 1, Strict: true}

// One caller after the other gets a slot, never earlier than it, and the bucket earns
// nothing by itself.
func TestIssuedOneCallPerSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, perSecond)
		c.up, c.back = 3*time.Millisecond, 4*time.Millisecond
		time.Sleep(time.Hour)
		require.Zero(t, c.mint.asked(), "nobody asked")
		var at []time.Time
		for range 20 {
			p := acquire(t, th, 1)
			p.Settle(1)
			at = append(at, time.Now())
		}
		sound(t, th)
		require.Len(t, c.mint.issued(), 20)
		for i := range at {
			late := at[i].Sub(c.mint.issued()[i])
			require.True(t, late >= 0 && late < bucket.Validity(time.Second), "call %d is %s after its slot", i, late)
		}
		require.Less(t, at[19].Sub(at[0]), 21*time.Second)
		require.LessOrEqual(t, c.mint.asked(), 25, "one order a slot")
	})
}

// Callers that wait are served in their order, each at a slot of its own.
func TestIssuedQueue(t *testing.T) {
	for _, ahead := range []int{0, 1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			l := perSecond
			l.MaxReserved = ahead
			th, c := issued(t, l)
			c.up, c.back = 100*time.Millisecond, 100*time.Millisecond
			var calls []*call
			for range 10 {
				calls = append(calls, begin(th, 1, 0))
			}
			time.Sleep(15 * time.Second)
			var last time.Time
			for _, call := range calls {
				r := call.end(t)
				require.NoError(t, r.err)
				require.GreaterOrEqual(t, r.at.Sub(last), time.Second-bucket.Validity(time.Second))
				last = r.at
			}
			sound(t, th)
			require.Len(t, c.mint.issued(), 10)
			if ahead == 100 {
				require.LessOrEqual(t, c.mint.asked(), 3, "the first comes alone, the others together")
			}
		})
	}
}

func TestIssuedTryAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, perSecond)
		deny(t, th, 1, "it does no I/O")
		synctest.Wait()
		require.Equal(t, 1, c.mint.asked(), "but one slot is fetched")
		take(t, th, 1)
		deny(t, th, 1)
		time.Sleep(1100 * time.Millisecond)
		take(t, th, 1)

		_, _ = th.TryAcquire(1)
		time.Sleep(time.Minute)
		deny(t, th, 1, "its slot is long over")
		deny(t, th, 2)
		sound(t, th)
	})
}

// A token is void a validity after its slot, to the moment.
func TestIssuedTokenIsVoid(t *testing.T) {
	for _, late := range []time.Duration{0, time.Nanosecond} {
		synctest.Test(t, func(t *testing.T) {
			th, c := issued(t, perSecond)
			c.up = 50 * time.Millisecond
			_, _ = th.TryAcquire(1)
			time.Sleep(50*time.Millisecond + time.Nanosecond)
			synctest.Wait()
			require.InDelta(t, 1, th.Status().Tokens, 0)
			time.Sleep(time.Until(c.mint.issued()[0]) + 200*time.Millisecond - time.Nanosecond - time.Nanosecond + late*2)
			_, ok := th.TryAcquire(1)
			require.Equal(t, late == 0, ok)
		})
	}
}

// A draw of n takes n slots.
func TestIssuedCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 10, Strict: true, MaxReserved: 2})
		big, small := begin(th, 5, 0), begin(th, 1, 0)
		time.Sleep(399 * time.Millisecond)
		require.True(t, big.waits())
		time.Sleep(2 * time.Millisecond)
		require.Equal(t, 5, big.end(t).permit.N())
		require.True(t, small.waits())
		time.Sleep(100 * time.Millisecond)
		small.end(t)
		require.Len(t, c.mint.issued(), 6)

		big = begin(th, 5, 0)
		time.Sleep(250 * time.Millisecond)
		big.cancel()
		synctest.Wait()
		sound(t, th)
		used := len(c.mint.issued())
		acquire(t, th, 1)
		require.Len(t, c.mint.issued(), used+1, "what the other had collected is over")

		_, err := th.Acquire(t.Context(), 11)
		require.Equal(t, ReasonTooLarge, throttled(t, err).Reason)
		sound(t, th)
	})
}

// What is not used comes not back, and what was used above is paid by slots.
func TestIssuedSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, perSecond)
		p := acquire(t, th, 1)
		p.Cancel()
		deny(t, th, 1, "the slot is over")
		p = acquire(t, th, 1)
		p.Settle(4)
		began := time.Now()
		acquire(t, th, 1)
		require.InDelta(t, 4, time.Since(began).Seconds(), 0.2)
		require.Len(t, c.mint.issued(), 6)
		sound(t, th)
	})
}

// A slot that nobody waits for any more is given back before it comes.
func TestIssuedGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Strict: true, MaxReserved: 10})
		acquire(t, th, 1)
		first := begin(th, 1, 0)
		require.Equal(t, 1, th.Status().Issued.Reserved)
		first.cancel()
		synctest.Wait()
		require.ErrorIs(t, first.end(t).err, context.Canceled)
		require.Equal(t, 1, c.mint.returned())
		require.Len(t, c.mint.issued(), 1)
		require.Zero(t, th.Status().Issued.Reserved)
		began := time.Now()
		acquire(t, th, 1)
		require.Equal(t, time.Second, time.Since(began), "the slot is there for the next")
	})
}

// A deadline that is known to be too near is told at once, with the reason.
func TestIssuedDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, perSecond)
		acquire(t, th, 1)
		ctx := timeout(t, 500*time.Millisecond)
		began := time.Now()
		_, err := th.Acquire(ctx, 1)
		require.Zero(t, time.Since(began))
		require.Equal(t, time.Second, throttled(t, err).RetryAfter)

		_, _ = c.mint.reserve(limit.Order{}) // another processor takes the slots to come
		c.mint.set(func(m *mint) { m.next = m.next.Add(10 * time.Second) })
		short := begin(th, 1, 3*time.Second)
		time.Sleep(1100 * time.Millisecond)
		e := throttled(t, short.end(t).err)
		require.Equal(t, ReasonSlotsTaken, e.Reason)
		require.Greater(t, e.RetryAfter, 9*time.Second)
		require.NotErrorIs(t, e, context.DeadlineExceeded)
		held, ok := th.Throttled()
		require.True(t, ok)
		require.True(t, held.Issued.Issuing)
		require.Equal(t, ReasonSlotsTaken, held.Reason)
		sound(t, th)
	})
}

// Without the store nothing is granted; when it is back, those who wait are served.
func TestIssuedWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, perSecond)
		c.mint.set(func(m *mint) { m.down = true })
		w := begin(th, 1, 0)
		time.Sleep(time.Minute)
		require.True(t, w.waits())
		held, _ := th.Throttled()
		require.Equal(t, ReasonStoreLost, held.Reason)
		c.mint.set(func(m *mint) { m.down = false })
		time.Sleep(5 * time.Second)
		require.NoError(t, w.end(t).err)

		c.h.Lease(Lease{Issuing: true, Until: time.Now().Add(time.Second)})
		time.Sleep(2 * time.Second)
		orders := c.mint.asked()
		w = begin(th, 1, 0)
		time.Sleep(time.Minute)
		require.True(t, w.waits(), "the lease is over")
		require.Equal(t, orders, c.mint.asked(), "and nobody asks")
		c.issue()
		time.Sleep(time.Second)
		require.NoError(t, w.end(t).err)
	})
}

// What is reserved is lost with the lease, also when the next one comes at once: the store may
// have forgotten it meanwhile, and the processor has not told it.
func TestIssuedEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Per: time.Minute, Strict: true, MaxReserved: 2})
		c.h.Lease(Lease{Issuing: true, Until: time.Now().Add(10 * time.Second)})
		waiting := []*call{begin(th, 1, 0), begin(th, 1, 0)}
		synctest.Wait()
		waiting[0].end(t)
		require.Equal(t, 1, th.Status().Issued.Reserved)
		c.h.Lease(Lease{Issuing: true, Until: time.Now().Add(20 * time.Second)})
		require.Equal(t, 1, th.Status().Issued.Reserved, "a lease that goes on keeps it")
		time.Sleep(20 * time.Second)
		c.mint.set(func(m *mint) { m.next = time.Now().Add(time.Hour) }) // the store holds slots back
		c.h.Lease(Lease{Issuing: true, Until: time.Now().Add(time.Hour)})
		require.Zero(t, th.Status().Issued.Reserved)
		time.Sleep(50 * time.Minute)
		require.True(t, waiting[1].waits(), "used a slot from before the lease ended")
		sound(t, th)
		c.issue()
		time.Sleep(20 * time.Minute)
		require.NoError(t, waiting[1].end(t).err)
	})
}

// Shares and slots take turns: neither leaves the other anything to use.
func TestIssuedAndShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 3, Per: 3 * time.Second, Burst: 1, MaxReserved: 5})
		waiting := []*call{begin(th, 1, 0), begin(th, 1, 0), begin(th, 1, 0)}
		synctest.Wait()
		waiting[0].end(t)
		require.Equal(t, 2, th.Status().Issued.Reserved)
		c.give(1)
		require.InDelta(t, 0, th.Status().Tokens, 0)
		require.False(t, th.Status().Issued.Issuing)
		time.Sleep(time.Second + time.Nanosecond)
		waiting[1].end(t)
		time.Sleep(900 * time.Millisecond)
		c.issue()
		require.InDelta(t, 0, th.Status().Tokens, 0, "what was earned is not issued")
		require.True(t, waiting[2].waits())
		time.Sleep(2 * time.Second)
		waiting[2].end(t)
		sound(t, th)

		time.Sleep(2 * time.Second)
		_, _ = th.TryAcquire(1)
		synctest.Wait()
		require.InDelta(t, 1, th.Status().Tokens, 0)
		c.give(1)
		require.InDelta(t, 0, th.Status().Tokens, 0, "what was issued is not earned")
		c.issue()
		time.Sleep(2 * time.Second)
		_, _ = th.TryAcquire(1)
		synctest.Wait()
		last := begin(th, 2, 0) // which needs one that is still to come
		require.Equal(t, 1, th.Status().Issued.Reserved)
		c.up = time.Millisecond // or its next order is answered before this looks
		c.give(1)
		c.issue()
		require.Zero(t, th.Status().Issued.Reserved)
		last.cancel()
		synctest.Wait()
		c.give(0)
		deny(t, th, 1)
		time.Sleep(c.up) // until the order is answered
	})
}

// An All holds no slot while it waits for another limit, and fetches one in time.
func TestIssuedInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict, c := issued(t, Limit{Max: 1, Per: 10 * time.Second, Strict: true})
		other := whole(t, Limit{Max: 1, Per: time.Minute, Burst: 1})
		l := All(strict, other)
		began := time.Now()
		for i := range 3 {
			acquire(t, l, 1)
			require.InDelta(t, float64(i+1)*60, time.Since(began).Seconds(), 0.1)
		}
		require.LessOrEqual(t, len(c.mint.issued()), 3, "no slot was reserved in vain")
		deny(t, l, 1)
		sound(t, strict)
	})
}

// Callers of all kinds draw, give up and settle, from processors near and far: every
// call has a slot of its own, within its validity.
func TestIssuedCallsHaveSlots(t *testing.T) {
	for seed := range uint64(race.Fewer(30)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			l := Limit{Max: 1 + r.IntN(200), Strict: true, MaxReserved: []int{0, 1, 5, 40}[r.IntN(4)]}
			spacing := l.withDefaults().spacing()
			m := &mint{live: 4}
			var mu sync.Mutex
			var at []time.Time
			var wg sync.WaitGroup
			ctx, stop := context.WithCancel(context.Background())
			for i := range 4 {
				th, c := issued(t, l)
				c.mint, c.up, c.back = m, time.Duration(r.IntN(40))*time.Millisecond, time.Duration(r.IntN(40))*time.Millisecond
				for j := range 4 {
					r := rand.New(rand.NewPCG(seed, uint64(10*i+j)))
					wg.Go(func() {
						for ctx.Err() == nil {
							wait, cancel := context.WithTimeout(ctx, time.Duration(r.ExpFloat64()*4*float64(spacing)))
							var p Permit
							var err error
							if ok := r.IntN(3) > 0; ok {
								p, err = th.Acquire(wait, 1)
							} else if p, ok = th.TryAcquire(1); !ok {
								err = ErrThrottled
							}
							cancel()
							if err == nil {
								mu.Lock()
								at = append(at, time.Now())
								mu.Unlock()
								p.Settle(1)
							}
							time.Sleep(time.Duration(r.ExpFloat64() * float64(spacing)))
						}
						sound(t, th)
					})
				}
			}
			time.Sleep(200 * spacing)
			stop()
			wg.Wait()
			time.Sleep(time.Second) // for the answers under way
			require.Greater(t, len(at), 20, "seed %d", seed)
			slots := m.issued()
			for i, when := range at { // each takes the oldest slot that it may
				for len(slots) > 0 && when.Sub(slots[0]) >= bucket.Validity(spacing) {
					slots = slots[1:]
				}
				require.NotEmpty(t, slots, "seed %d: call %d at %s", seed, i, when)
				require.False(t, when.Before(slots[0]), "seed %d: call %d at %s is before slot %s", seed, i, when, slots[0])
				slots = slots[1:]
			}
		})
	}
}

// Draws without a lock race with slots that come and run out; at no time is more granted
// than was issued.
func TestIssuedRace(t *testing.T) {
	th, c := issued(t, Limit{Max: 100_000, Strict: true, MaxReserved: 100})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if i%2 == 0 {
					_, _ = th.Acquire(ctx, 1)
				} else {
					_, _ = th.TryAcquire(1)
					runtime.Gosched()
				}
			}
		})
	}
	require.Eventually(t, func() bool { return th.Status().Granted > 1000 }, 20*time.Second, time.Millisecond)
	cancel()
	wg.Wait()
	require.LessOrEqual(t, th.Status().Granted, int64(len(c.mint.issued())))
}

// Several are given back at once, when all wait for them no more.
func TestIssuedGivesSeveralBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Strict: true, MaxReserved: 10})
		c.up = time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		for range 8 {
			go func() { _, _ = th.Acquire(ctx, 1) }()
		}
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 7, th.Status().Issued.Reserved)
		cancel()
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 7, c.mint.returned())
		require.Zero(t, th.Status().Issued.Reserved)
	})
}

// With slots in flight and a limiter of another package: every call draws from all, and few
// slots are reserved in vain.
func TestIssuedInAllWithOthers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		others func(t *testing.T) Limiter
		vain   int
	}{
		{"slots in flight", func(t *testing.T) Limiter { return PerCall(flight(t, 2)) }, 3},
		{"another strict limit", func(t *testing.T) Limiter {
			th, _ := issued(t, Limit{Max: 2, Strict: true})
			return th
		}, 40},
		{"a foreign limiter", func(t *testing.T) Limiter { return newForeign(5) }, 40},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				strict, c := issued(t, perSecond)
				other := tc.others(t)
				if f, ok := other.(*foreign); ok {
					go func() {
						for range 200 {
							time.Sleep(500 * time.Millisecond)
							f.add(1)
						}
					}()
				}
				l := All(other, strict)
				ctx := timeout(t, 60*time.Second)
				var wg sync.WaitGroup
				var mu sync.Mutex
				calls := 0
				for range 4 {
					wg.Go(func() {
						for {
							p, err := l.Acquire(ctx, 1)
							if err != nil {
								return
							}
							time.Sleep(300 * time.Millisecond)
							p.Settle(1)
							mu.Lock()
							calls++
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				time.Sleep(time.Minute)
				t.Log(calls, "calls", len(c.mint.issued()), "slots")
				require.GreaterOrEqual(t, calls, 20)
				require.LessOrEqual(t, calls, len(c.mint.issued()))
				require.LessOrEqual(t, len(c.mint.issued())-calls, tc.vain)
				sound(t, strict)
			})
		})
	}
}
