package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
