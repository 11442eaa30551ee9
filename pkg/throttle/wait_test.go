package throttle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func timeout(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAcquireDrawsNothingItMayNot(t *testing.T) {
	ended := errors.New("mine")
	for name, c := range map[string]struct {
		cause error // of the context's end; nil: it goes on
		n     int
		want  error
	}{
		"a context that has ended": {ended, 1, ended},
		"a cost that wraps around": {nil, 1 << 62, ErrThrottled},
		"a cost of nothing":        {nil, 0, nil},
		"a cost below nothing":     {nil, -1, ErrNegative},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, Limit{Max: 100, Burst: 10})
				time.Sleep(time.Minute)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cause != nil {
					cancel(c.cause)
				}
				p, err := th.Acquire(ctx, c.n)
				require.ErrorIs(t, err, c.want)
				require.Zero(t, p.N())
				require.Zero(t, th.Status().Granted)
				require.Equal(t, 10, drain(th))
			})
		})
	}
}

// A bucket of one token loses a nanosecond's worth at each timer, so that a
// deadline met exactly is missed in the end.
func TestDeadlineInTheQueueTellsWhenToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 3, Burst: 1})
		head := begin(th, 3, 0)
		_, err := th.Acquire(timeout(t, time.Nanosecond), 1)
		exactly := throttled(t, err).RetryAfter
		late := begin(th, 1, exactly)
		other := begin(th, 1, 0)
		time.Sleep(exactly)
		r := late.end(t)
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		e := throttled(t, r.err)
		require.Equal(t, ReasonLimit, e.Reason)
		require.NoError(t, head.end(t).err)
		require.InDelta(t, 1.0/3, e.RetryAfter.Seconds(), 1e-6, "behind the one that still waits")
		time.Sleep(e.RetryAfter + time.Microsecond)
		require.NoError(t, other.end(t).err)
		take(t, th, 1)
	})
}

// A deadline is a deadline whatever cause its context gives.
func TestDeadlineWithACauseOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 100}, 0)
		slow := errors.New("the caller's patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, slow)
		defer cancel()
		_, err := th.Acquire(ctx, 1)
		require.ErrorIs(t, err, ErrThrottled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, slow)
	})
}

func TestContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100})
		time.Sleep(time.Second)
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		slots := flight(t, 1)
		for _, l := range []Limiter{th, slots, All(th, slots)} {
			_, err := l.Acquire(ctx, 1)
			require.Equal(t, stop, err)
			_, err = l.AcquireUpTo(ctx, 1)
			require.Equal(t, stop, err)
		}
		require.Zero(t, th.Status().Granted)
		require.Zero(t, slots.Status().Granted)
	})
}
