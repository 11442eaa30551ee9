package throttle

import (
	"context"
	"sync"
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
			deny(t, both, 11)
			untouched(t, a, 10)
			untouched(t, b, 20)
			require.Zero(t, a.Status().Refused, "more than it will ever grant: no demand")
			require.Zero(t, b.Status().Refused)

			p := take(t, both, 7)
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
		p := take(t, All(a, b), 10)
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
	p = take(t, All(first, f), 8)
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
			p := take(t, l, 1<<40)
			require.Equal(t, 1<<40, p.N())
			p = acquire(t, l, 3)
			require.Equal(t, 3, p.N())
			p, err := l.AcquireUpTo(t.Context(), 0)
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
		p := take(t, nested, 4)
		require.Len(t, as[*multi](t, nested).children, 3)
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
		p := take(t, l, 10)
		require.Equal(t, 10, p.N())
		require.Equal(t, int64(20), a.Status().Granted)
		require.Equal(t, int64(21), b.Status().Granted)
		p.Settle(5)
		require.Equal(t, int64(10), a.Status().Returned)
		require.Equal(t, int64(10), b.Status().Returned)

		twice := acquire(t, All(b, Weigh(b, double)), 3)
		require.Equal(t, 3, twice.N())
		require.Equal(t, int64(21+9), b.Status().Granted, "named twice, drawn from twice")

		drain(b)
		began := time.Now()
		acquire(t, All(a, b, Weigh(b, double), b), 10)
		require.InDelta(t, 0.4, time.Since(began).Seconds(), 0.02, "it waits for all of them, once")
		require.Equal(t, int64(20+10), a.Status().Granted)

		_, err := Weigh(a, func(n int) int { return 1 << 62 * n }).Acquire(t.Context(), 1)
		require.Equal(t, ReasonTooLarge, throttled(t, err).Reason)
		huge := func(int) int { return 1 << 62 }
		deny(t, All(Weigh(a, huge), Weigh(a, huge)), 1, "the sum does not wrap around")

		none := Weigh(a, func(n int) int { return -n })
		p = take(t, none, 1000)
		p.Settle(2000)
		require.Equal(t, int64(30), a.Status().Granted)
		p = acquire(t, none, 1000)
		require.Equal(t, 1000, p.N())
	})
}

// Locks are taken in one order, whatever the order of arguments.
func TestAllLocksInOneOrder(t *testing.T) {
	a, b, c := whole(t, Limit{Max: 1}), flight(t, 1), whole(t, Limit{Max: 1})
	f := newForeign(1)
	for _, l := range []Limiter{All(a, b, c, f), All(f, c, b, a), All(b, f, a, c), All(All(c, b), f, PerCall(All(b, a)))} {
		var order []Limiter
		for _, p := range as[*multi](t, l).children {
			order = append(order, p.limiter)
		}
		require.Equal(t, []Limiter{a, b, c, f}, order)
	}
}

func TestAllRefusesWhatCanNeverBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := full(t, 10), full(t, 20, WithName("b"))
		slots := flight(t, 3, WithName("slots"))
		_, err := All(a, Weigh(b, func(n int) int { return 10 * n })).Acquire(t.Context(), 3)
		e := throttled(t, err)
		require.Equal(t, Error{Reason: ReasonTooLarge, Limit: "b", Cost: 30, Largest: 20, by: b}, *e)
		_, err = All(a, slots).Acquire(t.Context(), 4)
		require.Equal(t, Error{Reason: ReasonTooLarge, Limit: "slots", Cost: 4, Largest: 3, by: slots}, *throttled(t, err))
		deny(t, All(a, slots), 4)
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
		deny(t, l, 0)
		deny(t, l, 1)
		th, held := as[*multi](t, l).Throttled()
		require.True(t, held)
		require.Equal(t, ReasonClosed, th.Reason)
		time.Sleep(time.Second)
		untouched(t, a, 10)

		free := All(a, Weigh(slots, func(n int) int { return n / 100 }))
		p := acquire(t, free, 0)
		require.Zero(t, p.N())
		require.NoError(t, slots.Close())
		_, err = free.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed, "also of one from which nothing would be drawn")
		deny(t, free, 1)
	})
}

func TestAllThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := full(t, 10, WithName("a")), full(t, 10, WithName("b"))
		slots := flight(t, 1, WithName("slots"))
		all := as[*multi](t, All(a, b, slots, newForeign(0)))
		_, held := all.Throttled()
		require.False(t, held)
		drain(a)
		drain(b)
		b.correct(b.bucket.Granted(), 0, 5)
		th, held := all.Throttled()
		require.True(t, held)
		require.Equal(t, "b", th.Limit, "the one that takes longest")
		take(t, slots, 1)
		th, _ = all.Throttled()
		require.Equal(t, Throttling{Reason: ReasonInFlight, Limit: "slots"}, th, "nobody knows how long")
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
		p := take(t, as[Tagger](t, l).ForTag("blue"), 4)
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
