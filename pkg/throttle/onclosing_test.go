package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
)

// A shown limiter is around another one, which it shows.
type shown struct{ Limiter }

func (s shown) Unwrap() Limiter { return s.Limiter }

// A hidden limiter is around another one, and tells nothing of it.
type hidden struct{ l Limiter }

func (h hidden) Acquire(ctx context.Context, n int) (Permit, error) { return h.l.Acquire(ctx, n) }
func (h hidden) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return h.l.AcquireUpTo(ctx, n)
}
func (h hidden) TryAcquire(n int) (Permit, bool) { return h.l.TryAcquire(n) }

// embedded is a type that embeds a *Throttle.
type embedded struct{ *Throttle }

// endless shows itself.
type endless struct{ hidden }

func (e endless) Unwrap() Limiter { return e }

// Whichever limiter a caller waits for, it learns at once that another one was closed.
func TestAWaiterInAllLearnsThatOneOfThemWasClosed(t *testing.T) {
	slow := func(t *testing.T) *Throttle { return whole(t, Limit{Max: 1, Per: time.Hour}) }
	busy := func(t *testing.T) *InFlight {
		f := flight(t, 1)
		_, _ = f.TryAcquire(1)
		return f
	}
	for name, begun := range map[string]func(t *testing.T) (limiters []Limiter, shut func() error, at time.Duration){
		"the one that is waited for": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			s := slow(t)
			return []Limiter{full(t, 10), s}, s.Close, 0
		},
		"another one": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{a, slow(t)}, a.Close, 0
		},
		"another slow one": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := whole(t, Limit{Max: 1, Per: time.Minute})
			return []Limiter{slow(t), a}, a.Close, 0
		},
		"slots, free": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			f := flight(t, 10)
			return []Limiter{f, slow(t)}, f.Close, 0
		},
		"slots, busy": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			f := busy(t)
			return []Limiter{f, slow(t)}, f.Close, 0
		},
		"tokens, while slots are waited for": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{a, busy(t)}, a.Close, 0
		},
		"one without a share": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a, _ := scripted(t, Limit{Max: 1}, 0)
			b, _ := scripted(t, Limit{Max: 1}, 0)
			return []Limiter{a, b}, b.Close, 0
		},
		"one beside one of elsewhere": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{a, hidden{slow(t)}}, a.Close, 0
		},
		"shown": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{shown{shown{a}}, slow(t)}, a.Close, 0
		},
		"shown slots beside one of elsewhere": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			f := flight(t, 10)
			return []Limiter{shown{f}, hidden{slow(t)}}, f.Close, 0
		},
		"embedded": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{embedded{a}, slow(t)}, a.Close, 0
		},
		"of elsewhere": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{hidden{a}, slow(t)}, a.Close, askEvery
		},
		"of elsewhere beside one of elsewhere": func(t *testing.T) ([]Limiter, func() error, time.Duration) {
			a := full(t, 10)
			return []Limiter{hidden{a}, hidden{slow(t)}}, a.Close, askEvery
		},
	} {
		for _, upTo := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limiters, shut, at := begun(t)
					all := All(limiters...)
					acquire := all.Acquire
					if upTo {
						acquire = all.AcquireUpTo
					}
					wait, cancelled := beginWith(acquire, 1, 0), beginWith(acquire, 1, 0)
					time.Sleep(10*time.Second + 1)
					cancelled.cancel()
					require.ErrorIs(t, cancelled.end(t).err, context.Canceled)
					require.True(t, wait.waits())
					began := time.Now()
					require.NoError(t, shut())
					time.Sleep(at)
					r := wait.end(t)
					require.ErrorIs(t, r.err, ErrClosed)
					require.NotErrorIs(t, r.err, ErrThrottled)
					require.LessOrEqual(t, r.at.Sub(began), at)
					for _, l := range limiters { // nobody is left behind
						if th, ok := l.(*Throttle); ok {
							require.Zero(t, th.Status().Waiting)
							require.Zero(t, th.gate.Listeners())
						}
					}
					_, err := all.Acquire(t.Context(), 1)
					require.ErrorIs(t, err, ErrClosed)
				})
			})
		}
	}
}

// A caller listens once at each limiter that it draws from: a limit and its tags close together.
func TestACallerListensOnceAtEachLimiter(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		th := quotaed(t, Limit{Max: 10}, tagsOf(map[string]Quota{"a": {Total: 1}, "b": {Total: 1}}))
		other := full(t, 10)
		all := All(ForTags(th, "a", "b"), other)
		h := gather(ctx, 5, &service{}, func(ctx context.Context, _ int) (Permit, error) { return all.Acquire(ctx, 1) })
		synctest.Wait()
		granted, _ := h.done()
		require.Less(t, granted, 5)
		require.Equal(t, 5-granted, th.gate.Listeners())
		require.Equal(t, 5-granted, other.gate.Listeners())
	})
}

// What is asked of a limiter beside draws is asked of the one that it shows.
func TestWhatALimiterShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		adaptive := whole(t, Limit{Max: 1, Adaptive: true}, WithName("adaptive"))
		plain := whole(t, Limit{Max: 1}, WithName("plain"))
		for name, c := range map[string]struct {
			l        Limiter
			adaptive bool
			held     *Throttle
		}{
			"itself":           {adaptive, true, adaptive},
			"shown":            {shown{adaptive}, true, adaptive},
			"shown twice":      {shown{shown{adaptive}}, true, adaptive},
			"embedded":         {embedded{adaptive}, true, adaptive},
			"shown, embedded":  {shown{embedded{adaptive}}, true, adaptive},
			"in All":           {All(flight(t, 1), adaptive), true, nil},
			"shown in All":     {All(plain, shown{adaptive}), true, plain},
			"All, shown":       {shown{All(plain, adaptive)}, true, adaptive},
			"weighed, shown":   {Weigh(shown{adaptive}, func(int) int { return 2 }), true, adaptive},
			"plain":            {plain, false, plain},
			"plain, shown":     {shown{plain}, false, plain},
			"hidden":           {hidden{adaptive}, false, nil},
			"slots":            {flight(t, 1), false, nil},
			"nothing":          {nil, false, nil},
			"nothing, shown":   {shown{}, false, nil},
			"one without end":  {endless{hidden{adaptive}}, false, nil},
			"that, in All":     {All(plain, endless{hidden{plain}}), false, plain},
			"no limit, shown":  {shown{whole(t, Limit{Adaptive: true})}, false, nil},
			"All of no limits": {All(), false, nil},
		} {
			require.Equal(t, c.adaptive, adapts(c.l), name)
			if c.held == nil {
				continue
			}
			over := externalWait(t.Context(), c.l, "", 1)
			require.Equal(t, 1, c.held.Status().Waiting, name)
			over(nil)
			require.Zero(t, c.held.Status().Waiting, name)
			require.Equal(t, c.held.name, refuse(c.l, Error{Reason: ReasonPause, Cost: 1}).Limit, name)
		}
		all := as[*multi](t, All(shown{plain}, hidden{plain}))
		th, held := all.Throttled()
		require.True(t, held)
		require.Equal(t, "plain", th.Limit)
		all.RetryAfter(time.Now().Add(time.Second), "enough")
		_, paused := plain.Paused("")
		require.True(t, paused)
	})
}

// calling is a type that embeds an *InFlight.
type calling struct{ *InFlight }

// To learn whether a limiter of elsewhere is closed, a waiting caller takes nothing from it for longer than the question.
func TestAWaiterInAllKeepsNothingOfAnotherLimiter(t *testing.T) {
	for name, busy := range map[string]time.Duration{"free": 0, "freed while it is asked": 1500 * time.Millisecond} {
		t.Run("slots, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, slots := whole(t, Limit{Max: 1, Per: 3 * time.Second, Burst: 1}), flight(t, 1)
				if busy > 0 {
					p := take(t, slots, 1)
					time.AfterFunc(busy, p.Cancel)
				}
				began := time.Now()
				wait := beginWith(All(th, calling{slots}).Acquire, 1, 0)
				time.Sleep(2500 * time.Millisecond)
				require.Equal(t, 1, freeSlots(slots))
				time.Sleep(time.Second)
				r := wait.end(t)
				require.NoError(t, r.err)
				require.InDelta(t, 3*time.Second, r.at.Sub(began), float64(join.LongestPause))
				r.permit.Settle(1)
				require.Equal(t, 1, freeSlots(slots))
			})
		})
	}
	for name, around := range map[string]func(Limiter) Limiter{
		"as it is": func(l Limiter) Limiter { return l },
		"shown":    func(l Limiter) Limiter { return shown{l} },
	} {
		t.Run("a rate, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &handRate{tokens: 10, burst: 10}
				l := All(whole(t, Limit{Max: 1, Per: time.Hour}), around(FromRate(r)))
				for range 3 {
					defer beginWith(l.Acquire, 1, 0).cancel()
				}
				time.Sleep(5 * time.Second)
				require.Equal(t, 10, r.tokens)
			})
		})
	}
}
