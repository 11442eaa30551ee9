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

// flight returns an InFlight that has all its slots.
func flight(t testing.TB, slots int, opts ...Option) *InFlight {
	t.Helper()
	f, err := NewInFlight(slots, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// A foreign is a Limiter of somebody else's: a counter that is refilled by hand.
type foreign struct {
	mu       sync.Mutex
	tokens   int
	changed  chan struct{}
	tries    int
	deafTry  bool // TryAcquire refuses always
	granted  int
	returned int
}

func newForeign(tokens int) *foreign { return &foreign{tokens: tokens, changed: make(chan struct{})} }

func (f *foreign) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens += n
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *foreign) take(n int, upTo bool) (Permit, bool, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if upTo {
		n = min(n, max(f.tokens, 1))
	}
	if f.tokens < n {
		return Permit{}, false, f.changed
	}
	f.tokens -= n
	f.granted += n
	return NewPermit(n, func(used int) {
		f.mu.Lock()
		f.returned += n - used
		f.mu.Unlock()
		f.add(n - used)
	}), true, nil
}

func (f *foreign) TryAcquire(n int) (Permit, bool) {
	f.mu.Lock()
	f.tries++
	deaf := f.deafTry
	f.mu.Unlock()
	if n <= 0 || deaf {
		return Permit{}, !deaf
	}
	p, ok, _ := f.take(n, false)
	return p, ok
}

func (f *foreign) Acquire(ctx context.Context, n int) (Permit, error) { return f.wait(ctx, n, false) }

func (f *foreign) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return f.wait(ctx, n, true)
}

func (f *foreign) wait(ctx context.Context, n int, upTo bool) (Permit, error) {
	if n <= 0 {
		return Permit{}, nil
	}
	for {
		p, ok, changed := f.take(n, upTo)
		if ok {
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Permit{}, context.Cause(ctx)
		}
	}
}

func (f *foreign) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tokens
}

// as returns v as a T, which it must be.
func as[T any](t testing.TB, v any) T {
	t.Helper()
	as, ok := v.(T)
	require.True(t, ok, "%T", v)
	return as
}

// full returns a Throttle whose bucket of n tokens is full, and which earns n a second.
func full(t testing.TB, n int, opts ...Option) *Throttle {
	t.Helper()
	th := whole(t, Limit{Max: n, Burst: n}, opts...)
	time.Sleep(time.Second + time.Microsecond)
	require.InDelta(t, n, th.Status().Tokens, 1e-6)
	return th
}

// untouched checks that a Throttle is as if nothing had ever been drawn.
func untouched(t testing.TB, th *Throttle, tokens int) {
	t.Helper()
	st := th.Status()
	require.InDelta(t, float64(tokens), st.Tokens, 1e-6, "tokens of %q", st.Name)
	require.Zero(t, st.Granted, "granted by %q", st.Name)
	require.Zero(t, st.Returned, "returned to %q", st.Name)
	require.Zero(t, st.Waiting, "waiting at %q", st.Name)
	sound(t, th)
}

func TestAllTakesFromEveryOneOrFromNone(t *testing.T) {
	for _, swap := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b := full(t, 10), full(t, 20)
			time.Sleep(time.Second)
			both := All(a, b)
			if swap {
				both = All(b, a)
			}
			_, ok := both.TryAcquire(11)
			require.False(t, ok)
			untouched(t, a, 10)
			untouched(t, b, 20)
			require.Equal(t, int64(10), a.Status().Refused, "noted at the one that lacked them, up to its largest")
			require.Zero(t, b.Status().Refused)

			p, ok := both.TryAcquire(7)
			require.True(t, ok)
			require.Equal(t, 7, p.N())
			require.InDelta(t, 3, a.Status().Tokens, 1e-6)
			require.InDelta(t, 13, b.Status().Tokens, 1e-6)
			p.Cancel()
			require.InDelta(t, 10, a.Status().Tokens, 1e-6)
			require.InDelta(t, 20, b.Status().Tokens, 1e-6)
		})
	}
}

func TestAllSettlesOnceForAll(t *testing.T) {
	for _, tc := range []struct {
		name             string
		settle           func(p Permit)
		tokens, requests float64 // left of 100 and 5, after a draw of 40
		slots            int     // in use
	}{
		{"never", func(Permit) {}, 60, 4, 1},
		{"as drawn", func(p Permit) { p.Settle(40) }, 60, 4, 0},
		{"less", func(p Permit) { p.Settle(10) }, 90, 4, 0},
		{"more", func(p Permit) { p.Settle(70) }, 30, 4, 0},
		{"cancelled", Permit.Cancel, 100, 5, 0},
		{"twice", func(p Permit) { p.Settle(10); p.Cancel(); p.Settle(90) }, 90, 4, 0},
		{"copies", func(p Permit) { q := p; q.Cancel(); p.Settle(90) }, 100, 5, 0},
	} {
		for _, how := range []string{"TryAcquire", "Acquire"} {
			t.Run(tc.name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tokens := full(t, 100)
					requests, slots := full(t, 5), flight(t, 2)
					l := All(tokens, PerCall(requests), PerCall(slots))
					var p Permit
					if how == "TryAcquire" {
						p, _ = l.TryAcquire(40)
					} else {
						p, _ = l.Acquire(t.Context(), 40)
					}
					require.Equal(t, 40, p.N())
					tc.settle(p)
					require.InDelta(t, tc.tokens, tokens.Status().Tokens, 1e-6)
					require.InDelta(t, tc.requests, requests.Status().Tokens, 1e-6)
					require.Equal(t, tc.slots, slots.Status().InUse)
				})
			})
		}
	}
}

func TestAllIsSettledOnceFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := full(t, 10), flight(t, 10)
		p, ok := All(a, b).TryAcquire(10)
		require.True(t, ok)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(p.Cancel)
		}
		wg.Wait()
		require.Equal(t, int64(10), a.Status().Returned)
		require.Zero(t, b.Status().InUse)
	})
}

// One settlement counts for every limiter, also one that comes while another is booked.
func TestAllIsNotSettledInParts(t *testing.T) {
	f := newForeign(10)
	var p Permit
	first := settling{newForeign(10), func() { p.Cancel() }}
	p, ok := All(first, f).TryAcquire(8)
	require.True(t, ok)
	p.Settle(3)
	require.Equal(t, 7, f.left())
}

// A settling limiter calls f when a permit is settled.
type settling struct {
	*foreign
	f func()
}

func (s settling) TryAcquire(n int) (Permit, bool) {
	return NewPermit(n, func(int) { s.f() }), true
}

func TestAllOfNothingOneAndNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		off := whole(t, Limit{})
		for _, l := range []Limiter{All(), All(nil), All(nil, off), All(All(), All(off)), Weigh(nil, nil), PerCall(off)} {
			require.True(t, Unlimited(l))
			p, ok := l.TryAcquire(1 << 40)
			require.True(t, ok)
			require.Equal(t, 1<<40, p.N())
			p, err := l.Acquire(t.Context(), 3)
			require.NoError(t, err)
			require.Equal(t, 3, p.N())
			p, err = l.AcquireUpTo(t.Context(), -3)
			require.NoError(t, err)
			require.Zero(t, p.N())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := All().Acquire(ctx, 1)
		require.ErrorIs(t, err, context.Canceled)

		a, b, c := full(t, 10), full(t, 10), newForeign(10)
		require.Same(t, a, All(a))
		require.Same(t, a, All(nil, All(All(a), off)))
		require.Same(t, c, All(c))
		require.False(t, Unlimited(All(a, b)))

		nested := All(All(a, nil), All(c, All(b)))
		p, ok := nested.TryAcquire(4)
		require.True(t, ok)
		require.Len(t, as[*joint](t, nested).parts, 3)
		require.Equal(t, 6, c.left())
		p.Cancel()
		require.Equal(t, 10, c.left())
	})
}

func TestAllWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := full(t, 100), full(t, 100)
		double := func(n int) int { return 2 * n }
		l := Weigh(All(a, Weigh(b, func(n int) int { return n + 1 })), double)
		p, ok := l.TryAcquire(10)
		require.True(t, ok)
		require.Equal(t, 10, p.N())
		require.Equal(t, int64(20), a.Status().Granted)
		require.Equal(t, int64(21), b.Status().Granted)
		p.Settle(5)
		require.Equal(t, int64(10), a.Status().Returned)
		require.Equal(t, int64(10), b.Status().Returned)

		twice, err := All(b, Weigh(b, double)).Acquire(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, 3, twice.N())
		require.Equal(t, int64(21+9), b.Status().Granted, "named twice, drawn from twice")

		drain(b)
		began := time.Now()
		_, err = All(a, b, Weigh(b, double), b).Acquire(t.Context(), 10)
		require.NoError(t, err)
		require.InDelta(t, 0.4, time.Since(began).Seconds(), 0.02, "it waits for all of them, once")
		require.Equal(t, int64(20+10), a.Status().Granted)

		_, err = Weigh(a, func(n int) int { return 1 << 62 * n }).Acquire(t.Context(), 1)
		require.Equal(t, ReasonTooLarge, throttled(t, err).Reason)
		huge := func(int) int { return 1 << 62 }
		_, ok = All(Weigh(a, huge), Weigh(a, huge)).TryAcquire(1)
		require.False(t, ok, "the sum does not wrap around")

		none := Weigh(a, func(n int) int { return -n })
		p, ok = none.TryAcquire(1000)
		require.True(t, ok)
		p.Settle(2000)
		require.Equal(t, int64(30), a.Status().Granted)
		p, err = none.Acquire(t.Context(), 1000)
		require.NoError(t, err)
		require.Equal(t, 1000, p.N())
	})
}

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
			require.Equal(t, Error{Reason: ReasonLimit, Limit: "scarce", Cost: 5, RetryAfter: e.RetryAfter}, *e)
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

// A member that has lost its share holds up nobody at the others, also when a caller
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
					time.Sleep(10 * tc.most * 100 / time.Duration(min(rates[0], rates[1])))
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

// Locks are taken in one order, whatever the order of arguments.
func TestAllLocksInOneOrder(t *testing.T) {
	a, b, c := whole(t, Limit{Max: 1}), flight(t, 1), whole(t, Limit{Max: 1})
	f := newForeign(1)
	for _, l := range []Limiter{All(a, b, c, f), All(f, c, b, a), All(b, f, a, c), All(All(c, b), f, PerCall(All(b, a)))} {
		var order []Limiter
		for _, p := range as[*joint](t, l).parts {
			order = append(order, p.limiter)
		}
		require.Equal(t, []Limiter{a, b, c, f}, order)
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

func TestAllCancelledWaitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 10, Burst: 5}), whole(t, Limit{Max: 10, Burst: 5})
		slots := flight(t, 1)
		held, ok := slots.TryAcquire(1)
		require.True(t, ok)
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
		_, ok := l.TryAcquire(1)
		require.True(t, ok)
		require.Zero(t, b.Status().Granted)
	})
}

func TestAllRefusesWhatCanNeverBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := full(t, 10), full(t, 20, WithName("b"))
		slots := flight(t, 3, WithName("slots"))
		_, err := All(a, Weigh(b, func(n int) int { return 10 * n })).Acquire(t.Context(), 3)
		e := throttled(t, err)
		require.Equal(t, Error{Reason: ReasonTooLarge, Limit: "b", Cost: 30}, *e)
		_, err = All(a, slots).Acquire(t.Context(), 4)
		require.Equal(t, Error{Reason: ReasonTooLarge, Limit: "slots", Cost: 4}, *throttled(t, err))
		_, ok := All(a, slots).TryAcquire(4)
		require.False(t, ok)
		time.Sleep(time.Second)
		untouched(t, a, 10)
		untouched(t, b, 20)
	})
}

func TestAllWithAClosedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := whole(t, Limit{Max: 10, Burst: 10}), whole(t, Limit{Max: 1})
		slots := flight(t, 1)
		l := All(a, b, Weigh(slots, func(n int) int { return n / 100 }))
		var calls []*call
		for range 3 {
			calls = append(calls, beginWith(l.Acquire, 1, 0))
		}
		require.NoError(t, b.Close())
		for _, c := range calls {
			require.ErrorIs(t, c.end(t).err, ErrClosed)
		}
		_, err := l.Acquire(t.Context(), 0)
		require.ErrorIs(t, err, ErrClosed)
		_, ok := l.TryAcquire(0)
		require.False(t, ok)
		_, ok = l.TryAcquire(1)
		require.False(t, ok)
		th, held := as[*joint](t, l).Throttled()
		require.True(t, held)
		require.Equal(t, ReasonClosed, th.Reason)
		time.Sleep(time.Second)
		untouched(t, a, 10)

		free := All(a, Weigh(slots, func(n int) int { return n / 100 }))
		p, err := free.Acquire(t.Context(), 0)
		require.NoError(t, err)
		require.Zero(t, p.N())
		require.NoError(t, slots.Close())
		_, err = free.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed, "also of one from which nothing would be drawn")
		_, ok = free.TryAcquire(1)
		require.False(t, ok)
	})
}

func TestAllThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := full(t, 10, WithName("a")), full(t, 10, WithName("b"))
		slots := flight(t, 1, WithName("slots"))
		all := as[*joint](t, All(a, b, slots, newForeign(0)))
		_, held := all.Throttled()
		require.False(t, held)
		drain(a)
		drain(b)
		b.correct(b.granted.Load(), 0, 5)
		th, held := all.Throttled()
		require.True(t, held)
		require.Equal(t, "b", th.Limit, "the one that takes longest")
		_, ok := slots.TryAcquire(1)
		require.True(t, ok)
		th, _ = all.Throttled()
		require.Equal(t, Throttling{Reason: ReasonInFlight, Limit: "slots"}, th, "nobody knows how long")
	})
}

// Everything at hand: no lock is taken, so it does not matter who holds them.
func TestAllTryAcquireTakesNoLock(t *testing.T) {
	a := whole(t, slow(100))
	b := whole(t, slow(100))
	stock(a, 50)
	stock(b, 50)
	l := All(a, PerCall(b))
	a.mu.Lock()
	b.mu.Lock()
	got := make(chan bool, 2)
	go func() {
		_, ok := l.TryAcquire(3)
		got <- ok
		_, ok = l.TryAcquire(60) // nor to be refused
		got <- ok
	}()
	for _, want := range []bool{true, false} {
		select {
		case ok := <-got:
			require.Equal(t, want, ok)
		case <-time.After(10 * time.Second):
			t.Error("TryAcquire waits for a lock")
		}
	}
	b.mu.Unlock()
	a.mu.Unlock()
	require.Equal(t, int64(3), a.Status().Granted)
	require.Equal(t, int64(1), b.Status().Granted)
	require.LessOrEqual(t, testing.AllocsPerRun(30, func() { l.TryAcquire(1) }), 1.0)
}

// What TryAcquire took from one limiter before another refused goes back exactly, also
// while others draw, wait and settle.
func TestAllGivesBackExactly(t *testing.T) {
	a, b := whole(t, slow(100_000)), whole(t, slow(100_000))
	stock(a, 50_000)
	stock(b, 50_000)
	var wg sync.WaitGroup
	var granted [2]atomic.Int64
	refuses := newForeign(0)
	for i := range 4 {
		wg.Go(func() {
			th := []*Throttle{a, b}[i%2]
			for range 3000 {
				if _, ok := All(a, b, refuses).TryAcquire(3); ok {
					t.Error("granted")
				}
				if p, ok := All(b, a).TryAcquire(2); ok {
					granted[0].Add(2)
					granted[1].Add(2)
					if i == 0 {
						p.Settle(2)
					}
				}
				if _, ok := th.TryAcquire(1); ok {
					granted[i%2].Add(1)
				}
				if i == 3 {
					p, err := All(a, b).Acquire(t.Context(), 1)
					if err == nil {
						granted[0].Add(1)
						granted[1].Add(1)
						p.Settle(1)
					}
				}
			}
		})
	}
	wg.Wait()
	for i, th := range []*Throttle{a, b} {
		st := th.Status()
		require.Equal(t, granted[i].Load(), st.Granted)
		require.InDelta(t, float64(50_000-granted[i].Load()), st.Tokens, 1)
		sound(t, th)
	}
}

// A draw without a lock that comes between the draws of a bid leaves nothing drawn.
func TestAllUndoesAPartOfABid(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, f, b := full(t, 10), flight(t, 10), full(t, 10)
			time.Sleep(time.Second)
			bid := newBid(t.Context(), as[*joint](t, All(a, f, b)).parts)
			bid.seat(4, false)
			bid.lock()
			require.Equal(t, 4, bid.affordable())
			require.Equal(t, 10, drain(b), "in between")
			require.False(t, bid.drawAll(4))
			bid.unlock()
			untouched(t, a, 10)
			require.Zero(t, f.Status().InUse)
			require.Zero(t, f.Status().Granted)

			bid.lock()
			p, ok := a.drawFor(&bid.places[0], 4)
			require.True(t, ok)
			if fenced {
				a.fence()
			}
			a.undrawFor(&bid.places[0], p)
			bid.unlock()
			untouched(t, a, 10)
			require.Equal(t, 10, drain(a))
		})
	}
}

// What was taken before the share went does not come back when it is undone.
func TestAllUndoesNothingIntoANewShare(t *testing.T) {
	for _, undo := range []func(th *Throttle, p Permit){(*Throttle).untake, (*Throttle).undo} {
		synctest.Test(t, func(t *testing.T) {
			th, s := scripted(t, Limit{Max: 10, Burst: 10}, 1)
			time.Sleep(time.Second + time.Microsecond)
			p, ok := th.take(5)
			require.True(t, ok)
			s.give(0)
			s.give(1)
			undo(th, p)
			untouched(t, th, 0)
		})
	}
}

// An undone draw leaves the right of other permits to be given back as it was.
func TestAllUndoneDrawsDoNotAgePermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := full(t, 100)
		p := take(t, a, 10)
		l := All(a, newForeign(0))
		for range 1000 {
			_, ok := l.TryAcquire(50)
			require.False(t, ok)
		}
		p.Cancel()
		require.Equal(t, int64(10), a.Status().Returned)
		require.Equal(t, 100, drain(a))
	})
}

func TestAllTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := full(t, 10)
		tags := &tagLimiter{foreign: newForeign(100)}
		l := All(a, PerCall(tags))
		_, ok := All(a, newForeign(1)).(Tagger)
		require.False(t, ok)
		require.Implements(t, (*Tagger)(nil), l)
		p, ok := as[Tagger](t, l).ForTag("blue").TryAcquire(4)
		require.True(t, ok)
		require.Equal(t, 4, p.N())
		require.Equal(t, []string{"blue"}, tags.asked)
		require.Equal(t, 99, tags.left())
		require.Equal(t, int64(4), a.Status().Granted)
		p.Cancel()
		require.Equal(t, 100, tags.left())
		_, ok = Weigh(tags, nil).(Tagger)
		require.True(t, ok)
	})
}

type tagLimiter struct {
	*foreign
	asked []string
}

func (l *tagLimiter) ForTag(tag string) Limiter {
	l.asked = append(l.asked, tag)
	return l.foreign
}
