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
