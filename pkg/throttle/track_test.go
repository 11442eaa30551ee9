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

// A call of ten seconds that begins to wait for tokens after some of them, and for
// which none come.
func TestDeadlineThatWasMissedMostlyByWaiting(t *testing.T) {
	for _, tc := range []struct {
		name      string
		elsewhere time.Duration // before the wait
		tracked   bool
		throttled bool
	}{
		{"all of the time", 0, true, true},
		{"a little more than 80 %", 1999 * time.Millisecond, true, true},
		{"80 %", 2 * time.Second, true, false},
		{"half of the time", 5 * time.Second, true, false},
		{"not tracked: the wait is the whole call", 5 * time.Second, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, _ := scripted(t, Limit{Max: 100}, 0, WithName("llm"), WithTag("gold"))
				slots := flight(t, 1, WithName("calls"))
				take(t, slots, 1)
				foreign := struct{ Limiter }{one}
				rest := whole(t, Limit{Max: 100})
				for name, l := range map[string]Limiter{
					"one": one, "slots": slots, "all": All(rest, one), "foreign": All(rest, foreign), "upTo": upTo{one},
				} {
					ctx := timeout(t, 10*time.Second)
					if tc.tracked {
						ctx = trackIn(ctx)
					}
					time.Sleep(tc.elsewhere)
					_, err := l.Acquire(ctx, 1)
					require.ErrorIs(t, err, context.DeadlineExceeded, name)
					require.Equal(t, tc.throttled, errors.Is(err, ErrThrottled), "%s: %v", name, err)
				}
			})
		})
	}
}

type upTo struct{ *Throttle }

func (u upTo) Acquire(ctx context.Context, n int) (Permit, error) { return u.AcquireUpTo(ctx, n) }

func TestBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1, Burst: 1}, WithName("llm"), WithTag("gold"))
		use := func(limit, after time.Duration) (context.Context, error) {
			drain(th)
			ctx := trackIn(timeout(t, limit))
			_, err := th.Acquire(ctx, 1) // one second
			require.NoError(t, err)
			time.Sleep(after)
			return ctx, ctx.Err()
		}

		ctx, err := use(1200*time.Millisecond, 200*time.Millisecond)
		blamed := blame(ctx, err)
		require.ErrorIs(t, blamed, ErrThrottled)
		require.ErrorIs(t, blamed, context.DeadlineExceeded)
		e := throttled(t, blamed)
		require.Equal(t, Error{Reason: ReasonLimit, Limit: "llm", Tag: "gold", Cost: 1, Cause: err}, *e)
		require.Same(t, blamed, blame(ctx, blamed), "an *Error is not wrapped again")
		mine := errors.New("mine")
		require.Same(t, mine, blame(ctx, mine), "another error")
		require.NoError(t, blame(ctx, nil))

		ctx, err = use(2*time.Second, time.Second)
		require.Equal(t, err, blame(ctx, err), "half of the time went into the call")

		ctx, err = use(2*time.Second, 100*time.Millisecond)
		require.NoError(t, err)
		inner := blame(ctx, context.DeadlineExceeded)
		require.Equal(t, context.DeadlineExceeded, inner, "the deadline of something else")
		require.Equal(t, context.DeadlineExceeded, blame(timeout(t, 0), context.DeadlineExceeded), "no Track")
	})
}

// A patient limiter grants after a second, and knows nothing of Track.
type patient struct{ Limiter }

func (patient) TryAcquire(n int) (Permit, bool) { return Permit{}, n <= 0 }

func (patient) Acquire(_ context.Context, n int) (Permit, error) {
	time.Sleep(time.Second)
	return NewPermit(n, nil), nil
}

// An All also knows of its waits for limiters of other packages.
func TestBlameForLimitersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rest := whole(t, Limit{Max: 100})
		slow := FromRate(rate.NewLimiter(rate.Every(time.Second), 1))
		for name, l := range map[string]Limiter{"All": All(rest, patient{}), "FromRate": slow} {
			slow.TryAcquire(1) // so that the next one waits for a second
			ctx := trackIn(timeout(t, 1100*time.Millisecond))
			_, err := l.Acquire(ctx, 1)
			require.NoError(t, err, name)
			<-ctx.Done()
			require.ErrorIs(t, blame(ctx, ctx.Err()), ErrThrottled, name)
		}
	})
}

// Waits at the same time are no longer than the time that has passed.
func TestTrackCountsConcurrentWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 100}, 0)
		ctx := trackIn(timeout(t, 10*time.Second))
		require.Equal(t, ctx, trackIn(ctx))
		for range 3 {
			brief, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			go func() { _, _ = th.Acquire(brief, 1) }()
		}
		time.Sleep(7 * time.Second)
		_, err := th.Acquire(ctx, 1) // six of ten seconds in all
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrThrottled)
	})
}

func TestFuncBlamesTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := func(limit time.Duration) error {
			th := whole(t, Limit{Max: 1, Burst: 1}, WithName("llm"))
			_, err := Func(th, func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})(timeout(t, limit), 0)
			return err
		}
		err := call(1100 * time.Millisecond)
		require.ErrorIs(t, err, ErrThrottled)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "llm", throttled(t, err).Limit)
		require.Equal(t, context.DeadlineExceeded, call(3*time.Second), "the service was slow")
	})
}
