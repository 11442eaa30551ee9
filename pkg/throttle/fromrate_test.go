package throttle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// A handRate is a RateLimiter by hand: what is there is there.
type handRate struct {
	tokens, burst int
	waitErr       error
	allowed       int // calls of AllowN
}

func (r *handRate) Burst() int { return r.burst }

func (r *handRate) AllowN(_ time.Time, n int) bool {
	r.allowed++
	if n > r.tokens {
		return false
	}
	r.tokens -= n
	return true
}

func (r *handRate) WaitN(ctx context.Context, n int) error {
	if r.waitErr != nil {
		return r.waitErr
	}
	if r.AllowN(time.Now(), n) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestFromRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &handRate{tokens: 10, burst: 10}
		l := FromRate(r)
		p := take(t, l, 4)
		require.Equal(t, 4, p.N())
		p.Cancel()
		p.Settle(1)
		require.Equal(t, 6, r.tokens, "nothing is given back")
		deny(t, l, 7)
		p = acquire(t, l, 1)
		require.Equal(t, 1, p.N())
		p = acquire(t, l, 0)
		require.Zero(t, p.N())
		p, err := l.AcquireUpTo(t.Context(), 0)
		require.NoError(t, err)
		require.Zero(t, p.N())
		p = take(t, l, 0)
		require.Zero(t, p.N())
		require.True(t, Unlimited(FromRate(nil)))
	})
}

func TestFromRateAcquireUpToTakesWhatIsThere(t *testing.T) {
	for have := 1; have <= 40; have++ {
		for _, n := range []int{1, 2, 7, 40, 1 << 40} {
			r := &handRate{tokens: have, burst: 40}
			p, err := FromRate(r).AcquireUpTo(t.Context(), n)
			require.NoError(t, err)
			require.Equal(t, min(n, have), p.N())
			require.Equal(t, have-p.N(), r.tokens)
			require.Less(t, r.allowed, 60)
		}
	}
}

func TestFromRateErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("mine")
		l := FromRate(&handRate{burst: 5, waitErr: mine})
		_, err := l.Acquire(t.Context(), 6)
		require.Equal(t, Error{Reason: ReasonTooLarge, Cost: 6, Cause: mine}, *throttled(t, err))
		_, err = l.AcquireUpTo(t.Context(), 5)
		require.Equal(t, Error{Reason: ReasonLimit, Cost: 1, Cause: mine}, *throttled(t, err))

		l = FromRate(&handRate{burst: 5})
		_, err = l.Acquire(timeout(t, time.Second), 1)
		require.ErrorIs(t, err, ErrThrottled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(mine)
		_, err = l.Acquire(ctx, 1)
		require.Equal(t, mine, err)
	})
}

func TestFromRateInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := rate.NewLimiter(10, 5) // starts full
		ours := full(t, 100)
		l := All(FromRate(theirs), ours)
		p := take(t, l, 5)
		require.Equal(t, int64(5), ours.Status().Granted)
		p.Cancel()
		require.Equal(t, int64(5), ours.Status().Returned)
		require.InDelta(t, 0, theirs.Tokens(), 1e-6, "nothing is given back")

		began := time.Now()
		deny(t, l, 1)
		p = acquire(t, l, 3)
		require.Equal(t, 3, p.N())
		require.InDelta(t, 0.3, time.Since(began).Seconds(), 1e-6)
		require.Equal(t, int64(8), ours.Status().Granted)

		_, err := l.Acquire(timeout(t, 100*time.Millisecond), 5)
		require.Equal(t, ReasonLimit, throttled(t, err).Reason)
		require.InDelta(t, 0.3, time.Since(began).Seconds(), 1e-6, "told at once")
		_, err = l.Acquire(t.Context(), 6)
		require.Equal(t, ReasonTooLarge, throttled(t, err).Reason)
		require.Equal(t, int64(8), ours.Status().Granted)

		time.Sleep(time.Second)
		p, err = l.AcquireUpTo(t.Context(), 100)
		require.NoError(t, err)
		require.Equal(t, 3, p.N(), "a hundred, halved until it had them")
		acquire(t, FromRate(rate.NewLimiter(rate.Inf, 0)), 1000)
	})
}
