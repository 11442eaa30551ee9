package httpthrottle_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A watcher is an observer that writes down what it is told.
type watcher struct {
	mu    sync.Mutex
	waits []throttle.Wait
	ends  []throttle.Waited
}

func (w *watcher) Waits(_ context.Context, wait throttle.Wait) func(throttle.Waited) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, wait)
	return func(end throttle.Waited) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends = append(w.ends, end)
	}
}

// named returns a throttle with the name llm, whose bucket is full.
func named(t *testing.T, l throttle.Limit, opts ...throttle.Option) *throttle.Throttle {
	t.Helper()
	th, err := throttle.New(l, append(opts, throttle.WithName("llm"))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	time.Sleep(time.Minute)
	return th
}

// take takes one token that is at hand.
func take(t *testing.T, l throttle.Limiter) {
	t.Helper()
	_, ok := l.TryAcquire(1)
	require.True(t, ok)
}

// Calls that a refusal holds back show at the limiter, each once, also when a later refusal
// makes the pause longer.
func TestPauseShowsAtTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		th := named(t, throttle.Limit{Max: 100}, throttle.WithObserver(w))
		early, late := refuse(429, "Retry-After", "10"), refuse(429, "Retry-After", "20")
		early.takes, late.takes = time.Second, 5*time.Second
		tr := httpthrottle.NewTransport(serve(early, late, ok), th,
			httpthrottle.WithMaxAttempts(1), httpthrottle.WithTag(httpthrottle.Host), httpthrottle.WithFeedback(&httpthrottle.Pause{}))
		var wg sync.WaitGroup
		for range 2 {
			fetch(&wg, tr, request(t, http.MethodGet, ""))
		}
		time.Sleep(2 * time.Second)
		for range 3 {
			fetch(&wg, tr, request(t, http.MethodGet, ""))
		}
		synctest.Wait()
		require.Equal(t, 3, th.Status().Waiting)
		wg.Wait()
		require.Len(t, th.WaitStats(), 1)
		held := th.WaitStats()[0]
		require.Equal(t, throttle.WaitStats{Reason: throttle.ReasonPause, Waits: 3, Time: held.Time}, held)
		within(t, 23*time.Second, 25*time.Second, held.Time)
		wait := throttle.Wait{Limit: "llm", Tag: "service.test", Reason: throttle.ReasonPause, Cost: 1}
		require.Equal(t, []throttle.Wait{wait, wait, wait}, w.waits)
		require.Len(t, w.ends, 3)
		for _, end := range w.ends {
			within(t, 23*time.Second, 25*time.Second, end.For)
		}
	})
}

// So does the wait of the call that was refused; a wait after a failure does not.
func TestWaitForTheNextAttemptShows(t *testing.T) {
	for name, tc := range map[string]struct {
		first answer
		shows bool
	}{
		"refused": {refuse(429, "Retry-After", "10"), true}, "overloaded": {refuse(529), true}, "failed": {refuse(500), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := named(t, throttle.Limit{Max: 100})
				s := serve(tc.first, ok)
				tr := httpthrottle.NewTransport(s, th, httpthrottle.RetryFailures(), httpthrottle.WithFeedback(&httpthrottle.Pause{}))
				res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
				require.NoError(t, err)
				require.Equal(t, "fine", read(t, res))
				if !tc.shows {
					require.Empty(t, th.WaitStats())
					return
				}
				require.Equal(t, []throttle.WaitStats{{Reason: throttle.ReasonPause, Waits: 1, Time: s.times()[1]}}, th.WaitStats())
			})
		})
	}
}

// A refusal that is returned as an error names the limit; it is not one that held the call back.
func TestRefusalNamesItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := named(t, throttle.Limit{Max: 100})
		tr := httpthrottle.NewTransport(serve(refuse(429, "Retry-After", "600")), throttle.All(th, throttle.PerCall(named(t, throttle.Limit{Max: 5}))),
			httpthrottle.RefusalsAsErrors(), httpthrottle.WithCost(func(*http.Request) int { return 5 }))
		_, err := tr.RoundTrip(request(t, http.MethodGet, ""))
		e, _ := errors.AsType[*throttle.Error](err)
		require.NotNil(t, e)
		want := throttle.Error{Reason: httpthrottle.ReasonRefused, Limit: "llm", Cost: 5, RetryAfter: 10 * time.Minute, Cause: e.Cause}
		require.EqualError(t, e, want.Error())
		require.Same(t, th, e.By())
		require.Empty(t, th.WaitStats())
	})
}

// A call whose base never answers, after a wait: its error is that of the limit only when the wait
// took more than 80 % of its time.
func TestDeadlineThatWasMissedMostlyByWaiting(t *testing.T) {
	wide, never := throttle.Limit{Max: 100}, answer{takes: time.Hour}
	every := func(per time.Duration) throttle.Limit { return throttle.Limit{Max: 1, Per: per} }
	for name, tc := range map[string]struct {
		limit  throttle.Limit // of which one token is used already
		before []answer       // to a call that came before
		script []answer
		time   time.Duration
		blamed throttle.Reason // empty: nothing
	}{
		"tokens, mostly":  {every(8100 * time.Millisecond), nil, []answer{never}, 10 * time.Second, throttle.ReasonLimit},
		"tokens, less":    {every(7900 * time.Millisecond), nil, []answer{never}, 10 * time.Second, ""},
		"pause, mostly":   {wide, []answer{refuse(429, "Retry-After", "8.1")}, []answer{never}, 10 * time.Second, throttle.ReasonPause},
		"pause, less":     {wide, []answer{refuse(429, "Retry-After", "7.1")}, []answer{never}, 10 * time.Second, ""},
		"refused, mostly": {wide, nil, []answer{refuse(429, "Retry-After", "8.1"), never}, 10 * time.Second, throttle.ReasonPause},
		"refused, less":   {wide, nil, []answer{refuse(429, "Retry-After", "7.1"), never}, 10 * time.Second, ""},
		"a failure":       {wide, nil, []answer{refuse(500), never}, 600 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, p := named(t, tc.limit), &httpthrottle.Pause{}
				take(t, th)
				s := serve(append(tc.before, tc.script...)...)
				if tc.before != nil {
					var wg sync.WaitGroup
					fetch(&wg, httpthrottle.NewTransport(s, nil, httpthrottle.WithFeedback(p), httpthrottle.WithMaxAttempts(1)), request(t, http.MethodGet, ""))
					wg.Wait()
				}
				ctx, cancel := context.WithTimeout(t.Context(), tc.time)
				defer cancel()
				tr := httpthrottle.NewTransport(s, th, httpthrottle.WithFeedback(p), httpthrottle.RetryFailures())
				_, err := tr.RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
				if tc.blamed == "" {
					require.Equal(t, context.DeadlineExceeded, err)
					return
				}
				require.Equal(t, &throttle.Error{Reason: tc.blamed, Limit: "llm", Cost: 1, Cause: context.DeadlineExceeded}, err)
			})
		})
	}
}

// A slow limiter grants after its time, whatever becomes of the context.
type slow struct {
	throttle.Limiter

	by time.Duration
}

func (s slow) Acquire(context.Context, int) (throttle.Permit, error) {
	time.Sleep(s.by)
	return throttle.Permit{}, nil
}

// The same holds when the deadline passes before the next attempt is sent.
func TestDeadlineThatPassesBetweenAttempts(t *testing.T) {
	for reported, tc := range map[string]struct {
		by     time.Duration
		blamed bool
	}{"8.1": {2 * time.Second, true}, "7.1": {3 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			s, p := serve(refuse(429, "Retry-After", reported), ok), &httpthrottle.Pause{}
			tr := func(l throttle.Limiter) http.RoundTripper {
				return httpthrottle.NewTransport(s, l, httpthrottle.WithFeedback(p), httpthrottle.WithMaxAttempts(1))
			}
			var wg sync.WaitGroup
			fetch(&wg, tr(nil), request(t, http.MethodGet, ""))
			wg.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := tr(slow{by: tc.by}).RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, tc.blamed, errors.Is(err, throttle.ErrThrottled), reported)
			require.Len(t, s.seen, 1)
		})
	}
}

// Time that is over for the transport alone says so, where it was not spent on waiting.
func TestElapsedTimeIsNotBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, err := throttle.NewInFlight(1)
		require.NoError(t, err)
		first := refuse(429)
		first.takes = 8 * time.Second
		s := serve(first, ok)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(8*time.Second+time.Millisecond, func() { take(t, slots) })
		tr := httpthrottle.NewTransport(s, slots, httpthrottle.WithMaxElapsed(10*time.Second))
		_, err = tr.RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, throttle.ErrThrottled)
		require.ErrorContains(t, err, "WithMaxElapsed")
		require.NoError(t, ctx.Err())
	})
}
