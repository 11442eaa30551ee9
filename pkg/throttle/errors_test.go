package throttle

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What the table of TestEveryRefusalSaysWhyAndIsCounted cannot make by a lease alone says as much.
func TestRefusalsOfEveryKindAreNamed(t *testing.T) {
	named := []Option{WithName("llm"), WithTag("gold")}
	leased := func(t *testing.T, l Lease) Limiter {
		t.Helper()
		th, s := scripted(t, ten, 0, named...)
		s.h.Lease(l)
		return th
	}
	for _, tc := range []struct {
		name  string
		make  func(t *testing.T) Limiter
		want  Reason
		least time.Duration // of the time to retry; 0: it is not known
	}{
		{"pause", func(t *testing.T) Limiter {
			th := whole(t, ten, named...)
			pauseFor(t, th, time.Minute)
			return th
		}, ReasonPause, time.Minute},
		{"pause of slots", func(t *testing.T) Limiter {
			f := flight(t, 5, named...)
			pauseFor(t, f, time.Minute)
			return f
		}, ReasonPause, time.Minute},
		{"in flight", func(t *testing.T) Limiter {
			f := flight(t, 5, named...)
			take(t, f, 5)
			return f
		}, ReasonInFlight, 0},
		{"reserved", func(t *testing.T) Limiter {
			th, c := issued(t, perSecond, named...)
			acquire(t, th, 1)
			c.mint.set(func(m *mint) { m.next = m.next.Add(20 * time.Second) }) // others have reserved
			begin(th, 1, 0)                                                     // learns of it
			time.Sleep(1100 * time.Millisecond)
			return th
		}, ReasonSlotsTaken, 8 * time.Second},
		{"adaptive", func(t *testing.T) Limiter { return leased(t, Lease{Share: WholeShare / 100, Adapted: true}) }, ReasonAdaptive, 10 * time.Second},
		{"unreadable", func(t *testing.T) Limiter { return leased(t, Lease{Reason: ReasonUnreadable}) }, ReasonUnreadable, 0},
		{"closed", func(t *testing.T) Limiter {
			th := whole(t, ten, named...)
			require.NoError(t, th.Close())
			return th
		}, ReasonClosed, 0},
		{"closed slots", func(t *testing.T) Limiter {
			f := flight(t, 5, named...)
			require.NoError(t, f.Close())
			return f
		}, ReasonClosed, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tc.make(t)
				blamed := l
				for _, l := range []Limiter{l, All(l, whole(t, Limit{Max: 1000}))} {
					e := throttled(t, refusedBy(l, time.Second))
					require.Equal(t, Error{Reason: tc.want, Limit: "llm", Tag: "gold", Cost: 1, RetryAfter: e.RetryAfter, Cause: e.Cause, by: blamed}, *e)
					require.Equal(t, tc.want == ReasonClosed, errors.Is(e, ErrClosed))
					require.NotEqual(t, tc.want == ReasonClosed, errors.Is(e, ErrThrottled))
					require.GreaterOrEqual(t, e.RetryAfter, tc.least)
					require.Equal(t, tc.least > 0, e.RetryAfter > 0)
				}
			})
		})
	}
}
