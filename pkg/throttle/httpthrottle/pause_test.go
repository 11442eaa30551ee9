package httpthrottle_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// fetch sends a request in the background and closes the response.
func fetch(wg *sync.WaitGroup, tr http.RoundTripper, req *http.Request) {
	wg.Go(func() {
		if res, err := tr.RoundTrip(req); err == nil {
			_ = res.Body.Close()
		}
	})
}

func TestOneRefusalHoldsAllBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "20"), ok)
		tr := httpthrottle.NewTransport(s, throttletest.New())
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		time.Sleep(5 * time.Second)
		for range 30 {
			fetch(&wg, tr, request(t, http.MethodGet, ""))
		}
		wg.Wait()
		times := s.times()
		require.Len(t, times, 32)
		apart := map[time.Duration]bool{}
		for _, at := range times[1:] {
			within(t, 20*time.Second, 22*time.Second, at)
			apart[at] = true
		}
		require.Greater(t, len(apart), 25, "all came back together")
	})
}

func TestLaterEndOfTwoPausesCounts(t *testing.T) {
	for _, reported := range [][2]string{{"20", "5"}, {"5", "20"}} {
		synctest.Test(t, func(t *testing.T) {
			first, second := refuse(429, "Retry-After", reported[0]), refuse(429, "Retry-After", reported[1])
			first.takes, second.takes = time.Second, time.Second // both are on their way when the first is refused
			s := serve(first, second, ok)
			tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithMaxAttempts(1))
			var wg sync.WaitGroup
			fetch(&wg, tr, request(t, http.MethodGet, ""))
			fetch(&wg, tr, request(t, http.MethodGet, ""))
			time.Sleep(2 * time.Second)
			fetch(&wg, tr, request(t, http.MethodGet, ""))
			wg.Wait()
			within(t, 20*time.Second, 23*time.Second, s.times()[2])
		})
	}
}

func TestPauseIsForOneTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "20"), ok)
		tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithMaxAttempts(1),
			httpthrottle.WithTag(func(r *http.Request) string { return r.Header.Get("Tag") }))
		var wg sync.WaitGroup
		for _, tag := range []string{"a", "b", "a", ""} {
			req := request(t, http.MethodGet, "")
			req.Header.Set("Tag", tag)
			fetch(&wg, tr, req)
			synctest.Wait()
		}
		wg.Wait()
		require.Len(t, s.seen, 4)
		require.Equal(t, "b", s.seen[1].header.Get("Tag"))
		require.Zero(t, s.seen[1].at)
		require.Zero(t, s.seen[2].at)
		require.Equal(t, "a", s.seen[3].header.Get("Tag"))
		within(t, 20*time.Second, 21*time.Second, s.seen[3].at)
	})
}

// A call that gets its tokens during a pause gives them back and waits on.
func TestPauseThatBeginsDuringTheWaitForTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "20"), ok)
		tokens := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(tokens))
		tr := httpthrottle.NewTransport(s, l, httpthrottle.WithMaxAttempts(1))
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		synctest.Wait()
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		synctest.Wait()
		tokens <- struct{}{}
		synctest.Wait()
		require.Len(t, s.seen, 1)
		tokens <- struct{}{}
		synctest.Wait()
		require.Len(t, s.seen, 1, "sent in the pause")
		require.Equal(t, 0, l.Draws()[1].Used)
		require.Equal(t, 0, l.Waiting(), "waits for tokens in the pause")
		close(tokens)
		wg.Wait()
		within(t, 20*time.Second, 21*time.Second, s.times()[1])
		require.Equal(t, 2, l.Used())
	})
}

func TestPauseThatLastsTooLongIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "50"), refuse(429, "Retry-After", "500"), ok)
		l, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithName("llm"))
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		time.Sleep(time.Second)
		s.started = time.Now()
		tr := httpthrottle.NewTransport(s, l, httpthrottle.WithMaxAttempts(1), httpthrottle.WithTag(httpthrottle.Host))
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		wg.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = tr.RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
		require.ErrorIs(t, err, throttle.ErrThrottled)
		te, _ := errors.AsType[*throttle.Error](err)
		want := throttle.Error{Reason: throttle.ReasonPause, Limit: "llm", Tag: "service.test", Cost: 1, RetryAfter: 50 * time.Second}
		require.EqualError(t, te, want.Error())
		require.Same(t, l, te.By())
		require.Zero(t, time.Since(s.started), "told late")

		fetch(&wg, tr, request(t, http.MethodGet, "")) // is told 500 s
		wg.Wait()
		time.Sleep(time.Second)
		_, err = tr.RoundTrip(request(t, http.MethodGet, ""))
		te, _ = errors.AsType[*throttle.Error](err)
		require.NotNil(t, te)
		require.Equal(t, 299*time.Second, te.RetryAfter, "no refusal holds others back for more than 5 minutes")
		require.Equal(t, int64(2), l.Status().Granted, "drew in the pause")
		require.Equal(t, int64(2), l.WaitStats()[0].Refusals)
	})
}

func TestContextEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "20"), ok)
		tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithMaxAttempts(1))
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		wg.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := tr.RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Second, time.Since(s.started))
	})
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p httpthrottle.Pause
		refused := func(class httpthrottle.Class, reported time.Duration, sent time.Time) time.Duration {
			p.Refused(t.Context(), httpthrottle.Refusal{Class: class, RetryAfter: reported, Sent: sent, At: time.Now()})
			return p.Paused("")
		}
		accepted := func(sent time.Time) {
			p.Accepted(t.Context(), httpthrottle.Acceptance{Status: 200, Sent: sent, At: time.Now()})
		}
		accepted(time.Now())
		require.Zero(t, p.Paused(""))
		require.Zero(t, refused(httpthrottle.Stop, time.Minute, time.Now()))
		require.Zero(t, refused(httpthrottle.Overload, 0, time.Now()))
		require.Equal(t, 2*time.Second, refused(httpthrottle.Overload, 2*time.Second, time.Now()))
		require.Equal(t, 2*time.Second, refused(httpthrottle.Wait, time.Second, time.Now()))
		require.Equal(t, 5*time.Minute, refused(httpthrottle.Wait, 100*time.Hour, time.Now()))
		require.Zero(t, p.Paused("other"))
		time.Sleep(5 * time.Minute)
		require.Zero(t, p.Paused(""))

		// Refusals that do not say how long count once for each round trip.
		before := time.Now()
		require.Equal(t, 500*time.Millisecond, refused(httpthrottle.Wait, 0, before))
		time.Sleep(time.Millisecond)
		for range 10 {
			require.Equal(t, 499*time.Millisecond, refused(httpthrottle.Wait, 0, before.Add(-time.Millisecond)))
		}
		accepted(before.Add(-time.Millisecond)) // sent before, so it says nothing about now
		for _, want := range []int{1000, 2000, 4000, 8000, 16_000, 30_000, 30_000} {
			time.Sleep(time.Minute)
			require.Equal(t, time.Duration(want)*time.Millisecond, refused(httpthrottle.Wait, 0, time.Now()))
		}
		time.Sleep(time.Minute)
		accepted(time.Now())
		require.Equal(t, 500*time.Millisecond, refused(httpthrottle.Wait, 0, time.Now()))
	})
}

// seenFeedback keeps what it is told, and holds back nobody.
type seenFeedback struct {
	mu       sync.Mutex
	refused  []httpthrottle.Refusal
	accepted []httpthrottle.Acceptance
}

func (f *seenFeedback) Refused(_ context.Context, r httpthrottle.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, r)
}

func (f *seenFeedback) Accepted(_ context.Context, a httpthrottle.Acceptance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = append(f.accepted, a)
}

func TestFeedback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := refuse(429, "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "4s")
		first.takes, first.body = time.Second, `{"error":{"code":"rate_limit_exceeded"}}`
		s := serve(first, refuse(500), answer{status: 404, takes: time.Second})
		f := &seenFeedback{}
		tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithFeedback(f), httpthrottle.RetryFailures(),
			httpthrottle.WithTag(httpthrottle.Host), httpthrottle.WithCost(func(*http.Request) int { return 12 }))
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		wg.Wait()

		start := s.started
		require.Equal(t, []httpthrottle.Refusal{{
			Class: httpthrottle.Wait, RetryAfter: 4 * time.Second, NotProcessed: true, Dimension: "tokens", Code: "rate_limit_exceeded",
			Status: 429, Sent: start, At: start.Add(time.Second), Tag: "service.test", Cost: 12, Attempt: 1,
		}}, f.refused)
		require.Equal(t, start.Add(5*time.Second), f.refused[0].Until())
		require.Zero(t, httpthrottle.Refusal{At: start}.Until())
		sent := start.Add(s.times()[2])
		require.Equal(t, []httpthrottle.Acceptance{{Status: 404, Sent: sent, At: sent.Add(time.Second), Tag: "service.test", Cost: 12}}, f.accepted)
	})
}

// A failure says nothing about the rate.
func TestFailureIsNeitherRefusedNorAccepted(t *testing.T) {
	f := &seenFeedback{}
	for _, a := range []answer{refuse(500), refuse(502), {err: errors.New("reset")}} {
		res, err := httpthrottle.NewTransport(serve(a), nil, httpthrottle.WithFeedback(f)).RoundTrip(request(t, http.MethodGet, ""))
		if err == nil {
			require.NoError(t, res.Body.Close())
		}
	}
	require.Empty(t, f.refused)
	require.Empty(t, f.accepted)
}

func TestFeedbackThatIsNoPauserHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "20"), ok)
		tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithFeedback(&seenFeedback{}))
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		synctest.Wait()
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		wg.Wait()
		require.Zero(t, s.times()[1])
		within(t, 20*time.Second, 21*time.Second, s.times()[2])
	})
}

// A Pause forgets tags whose pause is over.
func TestPauseForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p httpthrottle.Pause
		refused := func(tag int) {
			p.Refused(t.Context(), httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: time.Second, At: time.Now(), Tag: strconv.Itoa(tag)})
		}
		for i := range 1000 {
			refused(i)
		}
		require.Equal(t, 1000, httpthrottle.Tags(&p), "forgot what is paused")
		for i := range 1000 {
			time.Sleep(time.Minute)
			refused(1000 + i)
			require.Equal(t, time.Second, p.Paused(strconv.Itoa(1000+i)))
		}
		require.LessOrEqual(t, httpthrottle.Tags(&p), 16)
	})
}
