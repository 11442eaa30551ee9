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
		require.Len(t, as[*multi](t, nested).Children, 3)
		require.Equal(t, 6, c.left())
		p.Cancel()
		require.Equal(t, 10, c.left())
	})
}

// Locks are taken in one order, whatever the order of arguments.
func TestAllLocksInOneOrder(t *testing.T) {
	a, b, c := whole(t, Limit{Max: 1}), flight(t, 1), whole(t, Limit{Max: 1})
	f := newForeign(1)
	for _, l := range []Limiter{All(a, b, c, f), All(f, c, b, a), All(b, f, a, c), All(All(c, b), f, PerCall(All(b, a)))} {
		var order []Limiter
		for _, p := range as[*multi](t, l).Children {
			order = append(order, p.Limiter)
		}
		require.Equal(t, []Limiter{a, b, c, f}, order)
	}
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
