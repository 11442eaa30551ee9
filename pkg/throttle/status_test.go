package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 0, WithName("llm"))
		require.Equal(t, Status{Name: "llm", Limit: Limit{Max: 100, Per: time.Second, Burst: 10}}, th.Status())

		until := time.Now().Add(time.Hour)
		s.h.Lease(Lease{Share: WholeShare / 2, Until: until, Degraded: true, Reason: ReasonStoreLost})
		time.Sleep(time.Second)
		p := take(t, th, 3)
		p.Settle(1)
		deny(t, th, 7)
		c := begin(th, 20, 0)
		st := th.Status()
		require.InDelta(t, 50, st.Rate, 1e-6)
		require.Equal(t, Status{
			Name:     "llm",
			Limit:    Limit{Max: 100, Per: time.Second, Burst: 10},
			Lease:    Lease{Share: WholeShare / 2, Until: until, Degraded: true, Reason: ReasonStoreLost},
			Rate:     st.Rate,
			Tokens:   st.Tokens,
			Waiting:  1,
			Granted:  3,
			Returned: 2,
			Refused:  7,
		}, st)
		require.InDelta(t, 0, st.Tokens, 5.0, "what the waiter collected is not at hand")
		c.cancel()
		require.Error(t, c.end(t).err)
		require.Equal(t, int64(7), th.Status().Refused, "a call that its caller cancelled was not refused")
	})
}

// The counters count tokens, whatever else happens: renewals by the million are
// no grants.
func TestStatusCountsOnlyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 1_000_000_000, Burst: 1000}, 1)
		for range 100_000 {
			s.lend(1, time.Hour)
		}
		require.Zero(t, th.Status().Granted)
		time.Sleep(time.Microsecond)
		take(t, th, 5)
		st := th.Status()
		require.Equal(t, int64(5), st.Granted)
		require.Zero(t, st.Returned)
		require.Zero(t, st.Refused)
	})
}

func TestStatusCountsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 1)
		deny(t, th, 2)
		require.Equal(t, int64(2), th.Status().Refused)
		_, err := th.Acquire(timeout(t, time.Millisecond), 3)
		require.Error(t, err)
		require.Equal(t, int64(5), th.Status().Refused)
		s.give(0)
		c := begin(th, 4, time.Second)
		time.Sleep(time.Second)
		require.Error(t, c.end(t).err)
		require.Equal(t, int64(9), th.Status().Refused)
		s.give(1)
		time.Sleep(30*time.Millisecond + time.Microsecond)
		p, err := th.AcquireUpTo(t.Context(), 8)
		require.NoError(t, err)
		require.Equal(t, 3, p.N())
		require.Equal(t, int64(14), th.Status().Refused, "the missing part of AcquireUpTo")
	})
}

func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 1, WithName("llm"))
		held, ok := th.Throttled()
		require.True(t, ok, "empty")
		require.Equal(t, Throttling{Reason: ReasonLimit, Limit: "llm", RetryAfter: held.RetryAfter}, held)
		require.InDelta(t, 0.01, held.RetryAfter.Seconds(), 1e-6)
		time.Sleep(held.RetryAfter)
		held, ok = th.Throttled()
		require.False(t, ok, "one token is there")
		require.Zero(t, held)
		take(t, th, 1)

		c := begin(th, 10, 0)
		time.Sleep(50 * time.Millisecond)
		held, ok = th.Throttled()
		require.True(t, ok, "others wait")
		require.Equal(t, 1, held.Waiting)
		require.InDelta(t, 0.06, held.RetryAfter.Seconds(), 1e-6)
		time.Sleep(held.RetryAfter)
		require.NoError(t, c.end(t).err)
		take(t, th, 1, "RetryAfter is right")

		for _, tc := range []struct {
			lease Lease
			want  Reason
		}{
			{Lease{}, ReasonNoShare},
			{Lease{Reason: ReasonReplaced}, ReasonReplaced},
			{Lease{Share: WholeShare, Until: time.Now().Add(-1)}, ReasonStoreLost},
			{Lease{Share: WholeShare, Until: time.Now().Add(-1), Reason: ReasonReplaced}, ReasonReplaced},
		} {
			s.h.Lease(tc.lease)
			held, ok = th.Throttled()
			require.True(t, ok)
			require.Equal(t, Throttling{Reason: tc.want, Limit: "llm"}, held)
		}
		require.NoError(t, th.Close())
		held, ok = th.Throttled()
		require.True(t, ok)
		require.Equal(t, Throttling{Reason: ReasonClosed, Limit: "llm"}, held)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		bad := errors.New("store unreachable")
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 1, WithName("llm"),
			OnClose(func(ctx context.Context) error {
				order = append(order, "leave")
				end, ok := ctx.Deadline()
				require.True(t, ok)
				require.Equal(t, 5*time.Second, time.Until(end))
				return bad
			}),
			OnClose(func(context.Context) error { order = append(order, "store"); return nil }))
		time.Sleep(time.Second)
		p := take(t, th, 10)
		calls := []*call{begin(th, 3, 0), begin(th, 50, time.Minute), beginUpTo(th, 3, 0)}
		require.ErrorIs(t, th.Close(), bad)
		for _, c := range calls {
			r := c.end(t)
			require.ErrorIs(t, r.err, ErrClosed)
			require.NotErrorIs(t, r.err, ErrThrottled)
			require.Equal(t, ReasonClosed, throttled(t, r.err).Reason)
			require.Equal(t, "llm", throttled(t, r.err).Limit)
			require.Zero(t, r.permit.N())
		}
		sound(t, th)
		require.NoError(t, th.Close(), "calling it again does nothing")
		require.Equal(t, []string{"leave", "store"}, order)

		s.give(1)
		time.Sleep(time.Hour)
		p.Cancel()
		st := th.Status()
		require.True(t, st.Closed)
		require.Zero(t, st.Waiting)
		require.Equal(t, int64(10), st.Granted)
		refuses(t, th)
	})
}

// refuses checks that a closed Throttle refuses every kind of call.
func refuses(t *testing.T, th *Throttle) {
	t.Helper()
	for _, n := range []int{0, 1, 10} {
		deny(t, th, n)
		_, err := th.Acquire(t.Context(), n)
		require.ErrorIs(t, err, ErrClosed)
		_, err = th.AcquireUpTo(t.Context(), n)
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestCloseWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		th := whole(t, Limit{}, OnClose(func(context.Context) error { closed++; return nil }))
		require.NoError(t, th.Close())
		require.NoError(t, th.Close())
		require.Equal(t, 1, closed)
		refuses(t, th)
		_, held := th.Throttled()
		require.True(t, held)
	})
}

func TestCloseByManyRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := 0
		th := whole(t, Limit{Max: 100}, OnClose(func(context.Context) error { closed++; return nil }))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _ = th.Close() })
		}
		wg.Wait()
		require.Equal(t, 1, closed)
	})
}

func TestUnlimited(t *testing.T) {
	require.True(t, Unlimited(nil))
	require.True(t, Unlimited(whole(t, Limit{})))
	require.False(t, Unlimited(whole(t, Limit{Max: 1})))
	require.False(t, Unlimited(refuser{}), "another Limiter that does not say")
	require.False(t, Unlimited(says{unlimited: false}))
	require.True(t, Unlimited(says{unlimited: true}))
}

type refuser struct{ Limiter }

type says struct {
	Limiter
	unlimited bool
}

func (s says) Unlimited() bool { return s.unlimited }

func TestError(t *testing.T) {
	for _, tc := range []struct {
		err  Error
		is   error
		want string
	}{
		{
			Error{Reason: ReasonLimit, Limit: "llm", Cost: 5, RetryAfter: time.Second},
			ErrThrottled,
			`numathrottle: limit "llm": 5 tokens cannot be had in time (limit), retry after 1s`,
		},
		{
			Error{Reason: ReasonNoShare, Tag: "a", Cost: 1, Cause: context.DeadlineExceeded},
			ErrThrottled,
			`numathrottle: tag "a": 1 tokens cannot be had in time (no_share): context deadline exceeded`,
		},
		{Error{Reason: ReasonTooLarge, Cost: 9}, ErrThrottled, `numathrottle: a cost of 9 can never be granted`},
		{Error{Reason: ReasonTooLarge, Cost: 9, Largest: 5}, ErrThrottled, `numathrottle: a cost of 9 can never be granted, allowed: at most 5`},
		{Error{Reason: ReasonClosed, Limit: "llm"}, ErrClosed, `numathrottle: limit "llm": closed`},
		{Error{Reason: ReasonStoreLost, Cost: 2}, ErrThrottled, `numathrottle: 2 tokens cannot be had in time (store_lost)`},
	} {
		t.Run(string(tc.err.Reason), func(t *testing.T) {
			err := fmt.Errorf("wrapped: %w", &tc.err)
			require.Equal(t, tc.want, tc.err.Error())
			require.ErrorIs(t, err, tc.is)
			for _, other := range []error{ErrThrottled, ErrClosed} {
				require.Equal(t, errors.Is(other, tc.is), errors.Is(err, other))
			}
			require.Equal(t, tc.err.Cause != nil, errors.Is(err, context.DeadlineExceeded))
		})
	}
}
