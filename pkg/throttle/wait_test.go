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

func TestAcquireWaitsForItsTokens(t *testing.T) {
	// From a draw of one token up to one far above the capacity of 10.
	for _, n := range []int{1, 4, 5, 6, 9, 10, 11, 15, 16, 20, 21, 99, 100} {
		synctest.Test(t, func(t *testing.T) {
			th := whole(t, Limit{Max: 100, Burst: 10})
			began := time.Now()
			p := acquire(t, th, n)
			require.Equal(t, n, p.N())
			require.InDelta(t, float64(n)/100, time.Since(began).Seconds(), 1e-6, "%d tokens", n)
			require.Zero(t, drain(th))
			require.Equal(t, int64(n), th.Status().Granted)
			sound(t, th)
		})
	}
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

func TestQueueIsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		var calls []*call
		for i := range 40 {
			calls = append(calls, begin(th, 1+i%13, 0))
		}
		require.Equal(t, 40, th.Status().Waiting)
		sound(t, th)
		time.Sleep(time.Minute)
		var last time.Time
		began, sum := time.Now().Add(-time.Minute), 0
		for i, c := range calls {
			r := c.end(t)
			require.NoError(t, r.err)
			sum += 1 + i%13
			require.InDelta(t, float64(sum)/100, r.at.Sub(began).Seconds(), 1e-6)
			require.True(t, r.at.After(last))
			last = r.at
		}
		sound(t, th)
	})
}

func TestNothingOvertakesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 100})
		big := begin(th, 50, 0)
		time.Sleep(490 * time.Millisecond) // 49 tokens are there
		deny(t, th, 1, "TryAcquire")
		one := begin(th, 1, 0)
		upTo := beginUpTo(th, 5, 0)
		require.True(t, one.waits(), "Acquire")
		require.True(t, upTo.waits(), "AcquireUpTo")
		time.Sleep(10*time.Millisecond + time.Microsecond)
		require.NoError(t, big.end(t).err)
		require.True(t, one.waits())
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, one.end(t).err)
		require.True(t, upTo.waits())
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, 1, upTo.end(t).permit.N())
		sound(t, th)
	})
}

func TestDeadlineKnownInAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10}, WithName("llm"))
		began := time.Now()
		_, err := th.Acquire(timeout(t, 50*time.Millisecond), 10)
		require.Zero(t, time.Since(began), "told at once")
		require.ErrorIs(t, err, ErrThrottled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrClosed)
		e := throttled(t, err)
		require.Equal(t, Error{Reason: ReasonLimit, Limit: "llm", Cost: 10, RetryAfter: e.RetryAfter, by: e.by}, *e)
		require.InDelta(t, 0.1, e.RetryAfter.Seconds(), 1e-6)
		sound(t, th)

		time.Sleep(e.RetryAfter - 2*time.Nanosecond)
		deny(t, th, 10, "before RetryAfter")
		time.Sleep(2 * time.Nanosecond)
		take(t, th, 10, "at RetryAfter")
	})
}

func TestDeadlineThatIsJustMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		_, err := th.Acquire(timeout(t, time.Nanosecond), 1)
		wait := throttled(t, err).RetryAfter
		_, err = th.Acquire(timeout(t, wait-1), 1)
		require.ErrorIs(t, err, ErrThrottled, "one nanosecond too near")
		_, err = th.Acquire(timeout(t, wait+1), 1)
		require.NoError(t, err, "one nanosecond to spare")
	})
}

// RetryAfter counts everyone who waits already.
func TestRetryAfterBehindAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		first, second := begin(th, 10, 0), begin(th, 5, 0)
		_, err := th.Acquire(timeout(t, 190*time.Millisecond), 5)
		e := throttled(t, err)
		require.InDelta(t, 0.2, e.RetryAfter.Seconds(), 1e-6)
		time.Sleep(e.RetryAfter)
		require.NoError(t, first.end(t).err)
		require.NoError(t, second.end(t).err)
		take(t, th, 5)
	})
}

// Who is told while others go on waiting would queue behind all of them again.
func TestRetryAfterOfAWaiterThatFitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 100}, 0)
		late := begin(th, 1, time.Second)
		others := []*call{begin(th, 3, 0), begin(th, 4, 0)}
		time.Sleep(900 * time.Millisecond)
		s.give(0.05) // five tokens per second: late fits no more, and is told so
		e := throttled(t, late.end(t).err)
		require.Equal(t, ReasonLimit, e.Reason)
		time.Sleep(e.RetryAfter)
		for _, c := range others {
			require.NoError(t, c.end(t).err)
		}
		require.NoError(t, begin(th, 1, time.Millisecond).end(t).err, "the same call succeeds after RetryAfter")
	})
}

func TestDeadlineInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100}, 0, WithName("llm"))
		c := begin(th, 3, time.Second)
		other := begin(th, 1, 0)
		time.Sleep(time.Second)
		r := c.end(t)
		require.ErrorIs(t, r.err, ErrThrottled)
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		e := throttled(t, r.err)
		require.Equal(t, ReasonNoShare, e.Reason)
		require.Equal(t, "llm", e.Limit)
		require.Equal(t, 3, e.Cost)
		require.Zero(t, e.RetryAfter, "nobody knows when a share comes")
		require.Zero(t, r.permit.N())
		require.Equal(t, 1, th.Status().Waiting)
		sound(t, th)

		s.give(1)
		time.Sleep(10*time.Millisecond + time.Microsecond)
		require.NoError(t, other.end(t).err, "nothing of the first call is left behind")
	})
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
		_, err := th.Acquire(ctx, 1)
		require.ErrorIs(t, err, stop)
		_, err = th.AcquireUpTo(ctx, 1)
		require.ErrorIs(t, err, stop)
		require.Zero(t, th.Status().Granted)
	})
}

func TestCancelledWaiterLeavesNothingBehind(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first int // tokens that the cancelled caller asks for; the bucket holds 10
	}{{"small", 5}, {"as large as the bucket", 10}, {"larger than the bucket", 60}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := whole(t, Limit{Max: 100, Burst: 10})
				gone, next := begin(th, tc.first, 0), begin(th, 4, 0)
				time.Sleep(40*time.Millisecond + time.Microsecond)
				require.True(t, gone.waits())
				require.True(t, next.waits())
				gone.cancel()
				require.ErrorIs(t, gone.end(t).err, context.Canceled)
				require.NoError(t, next.end(t).err, "the tokens go to the next at once")
				require.Zero(t, drain(th))
				st := th.Status()
				require.Equal(t, int64(4), st.Granted)
				require.Zero(t, st.Returned, "nobody gave anything back")
				sound(t, th)
			})
		})
	}
}

// What a caller had collected beyond the capacity is lost when it goes: the
// bucket never hands out more than a burst at once.
func TestCancelledCollectorKeepsToTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		c := begin(th, 90, 0)
		time.Sleep(800 * time.Millisecond)
		c.cancel()
		require.ErrorIs(t, c.end(t).err, context.Canceled)
		require.Equal(t, 10, drain(th))
		require.Equal(t, int64(10), th.Status().Granted)
		require.Zero(t, th.Status().Returned)
		sound(t, th)
	})
}

func TestCancelInTheMiddleOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		a, b, c := begin(th, 5, 0), begin(th, 5, 0), begin(th, 5, 0)
		b.cancel()
		require.ErrorIs(t, b.end(t).err, context.Canceled)
		sound(t, th)
		began := time.Now()
		time.Sleep(time.Second)
		require.InDelta(t, 0.05, a.end(t).at.Sub(began).Seconds(), 1e-6)
		require.InDelta(t, 0.10, c.end(t).at.Sub(began).Seconds(), 1e-6)
		sound(t, th)
	})
}

// After the last waiter has gone by itself, callers draw without queueing again.
func TestGateOpensAfterTheLastWaiterGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		c := begin(th, 5, 0)
		c.cancel()
		require.Error(t, c.end(t).err)
		sound(t, th)
		time.Sleep(time.Second)
		require.Equal(t, 10, drain(th))
	})
}

func TestNoShareWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 0)
		c := begin(th, 5, time.Hour)
		time.Sleep(time.Minute)
		require.True(t, c.waits())
		held, _ := th.Throttled()
		require.Equal(t, Throttling{Reason: ReasonNoShare, Waiting: 1}, held)
		s.give(1)
		given := time.Now()
		time.Sleep(time.Second)
		r := c.end(t)
		require.NoError(t, r.err)
		require.InDelta(t, 0.05, r.at.Sub(given).Seconds(), 1e-6)
	})
}

func TestWaitersOutliveALeaseAndGoOnWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, s := scripted(t, Limit{Max: 100, Burst: 10}, 0)
		s.lend(1, 50*time.Millisecond)
		c := begin(th, 8, 0)
		large := begin(th, 30, 0)
		time.Sleep(time.Second)
		require.True(t, c.waits())
		s.lend(1, time.Hour)
		renewed := time.Now()
		time.Sleep(time.Second)
		require.InDelta(t, 0.08, c.end(t).at.Sub(renewed).Seconds(), 1e-6, "nothing is kept from the lease before")
		require.InDelta(t, 0.38, large.end(t).at.Sub(renewed).Seconds(), 1e-6)
		sound(t, th)
	})
}
