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

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
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

// Callers of all kinds draw, give up and settle, from processors near and far: every
// call has a slot of its own, within its validity.
func TestIssuedCallsHaveSlots(t *testing.T) {
	for seed := range uint64(testkit.Fewer(30)) {
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
