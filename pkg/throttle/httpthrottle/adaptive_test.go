package httpthrottle_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// What becomes of each attempt is reported to an adaptive limit, through an All as well.
func TestAttemptsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		script []answer
		opts   []httpthrottle.Option
		want   throttle.Backoff
	}{
		"accepted":     {[]answer{ok}, nil, throttle.Backoff{Accepted: 1}},
		"not found":    {[]answer{refuse(404)}, nil, throttle.Backoff{Accepted: 1}},
		"refused once": {[]answer{refuse(429), ok}, nil, throttle.Backoff{Accepted: 1, Refused: 1}},
		"told to wait": {[]answer{refuse(429, "Retry-After", "2"), ok}, nil, throttle.Backoff{Accepted: 1, Refused: 1}},
		"overloaded":   {[]answer{refuse(529), refuse(503, "Retry-After", "1"), ok}, nil, throttle.Backoff{Accepted: 1, Overloaded: 2}},
		"stopped": {
			[]answer{{status: 429, body: `{"error":{"code":"insufficient_quota"}}`}},
			[]httpthrottle.Option{httpthrottle.WithClassifier(httpthrottle.OpenAI)},
			throttle.Backoff{},
		},
		"failed":         {[]answer{refuse(500)}, nil, throttle.Backoff{}},
		"not reachable":  {[]answer{{err: http.ErrServerClosed}}, nil, throttle.Backoff{}},
		"refused thrice": {[]answer{refuse(429)}, []httpthrottle.Option{httpthrottle.WithMaxAttempts(3)}, throttle.Backoff{Refused: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, err := throttle.New(throttle.Limit{Max: 100, Adaptive: true})
				require.NoError(t, err)
				defer func() { require.NoError(t, th.Close()) }()
				slots, err := throttle.NewInFlight(5)
				require.NoError(t, err)
				time.Sleep(time.Second)
				tr := httpthrottle.NewTransport(serve(tc.script...), throttle.All(th, throttle.PerCall(slots)), tc.opts...)
				if res, err := tr.RoundTrip(request(t, http.MethodGet, "")); err == nil {
					require.NoError(t, res.Body.Close())
				}
				got := th.Status().Backoff
				got.Part, got.Cuts = 0, 0
				require.Equal(t, tc.want, got)
			})
		})
	}
}

// With an adaptive limit a refusal that does not say for how long slows the calls down
// instead of stopping all of them.
func TestAdaptiveLimitTakesThePlaceOfTheGuess(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			th, err := throttle.New(throttle.Limit{Max: 100, Adaptive: adaptive})
			require.NoError(t, err)
			defer func() { require.NoError(t, th.Close()) }()
			time.Sleep(time.Second)
			s := serve(refuse(429), ok, refuse(429, "Retry-After", "5"), ok)
			tr := httpthrottle.NewTransport(s, th, httpthrottle.WithMaxAttempts(1))
			var wg sync.WaitGroup
			for range 4 {
				fetch(&wg, tr, request(t, http.MethodGet, ""))
				synctest.Wait()
				if adaptive {
					time.Sleep(50 * time.Millisecond)
				}
			}
			wg.Wait()
			times := s.times()
			if adaptive {
				require.Less(t, times[1]-times[0], 100*time.Millisecond)
			} else {
				within(t, 500*time.Millisecond, 600*time.Millisecond, times[1]-times[0])
			}
			if adaptive {
				within(t, 5*time.Second, 6*time.Second, times[3]-times[2])
			}
		})
	}
}

// A wait that is over before the calls could have been slowed down stops nobody but its own call with an adaptive limit, also one
// that a wrapper says it has; a longer one stops all, and without an adaptive limit so does any.
func TestABriefWaitIsTheCallsOwnWithAnAdaptiveLimit(t *testing.T) {
	for _, c := range []struct {
		adaptive bool
		after    string
		reported int
		wait     time.Duration // of the others
	}{
		{true, "1", 0, 0}, {true, "2", 0, 0}, {true, "3", 1, 3 * time.Second}, {false, "1", 1, time.Second}, {false, "2", 1, 2 * time.Second},
	} {
		for _, status := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) {
				l := &listening{Limiter: throttle.All(), adapts: c.adaptive}
				s := serve(refuse(status, "Retry-After", c.after), ok, ok)
				tr := httpthrottle.NewTransport(s, l)
				var wg sync.WaitGroup
				for range 2 {
					fetch(&wg, tr, request(t, http.MethodGet, ""))
					synctest.Wait()
				}
				wg.Wait()
				times := s.times()
				require.Len(t, times, 3)
				within(t, c.wait, c.wait+c.wait/10, times[1]-times[0])
				own, err := time.ParseDuration(c.after + "s")
				require.NoError(t, err)
				within(t, own, own+own/4, times[2]-times[0])
				reported := c.reported
				if status == 503 {
					reported = 0
				}
				require.Len(t, l.reported, reported, "%+v", c)
			})
		}
	}
}

// A listening limiter notes what it is told.
type listening struct {
	throttle.Limiter

	reported []string
	adapts   bool
}

func (l *listening) Adapts() bool { return l.adapts }

func (l *listening) RetryAfter(until time.Time, reason string) {
	l.reported = append(l.reported, time.Until(until).String()+": "+reason)
}

// A feedback that does nothing.
type deaf struct{}

func (deaf) Refused(context.Context, httpthrottle.Refusal)     {}
func (deaf) Accepted(context.Context, httpthrottle.Acceptance) {}

// The limiter is told when the service says when to come back: for all calls, and if
// nobody else decides what becomes of refusals.
func TestLimiterIsTold(t *testing.T) {
	tag := httpthrottle.WithTag(func(*http.Request) string { return "a" })
	for name, tc := range map[string]struct {
		answer answer
		opts   []httpthrottle.Option
		want   []string
	}{
		"told": {refuse(429, "Retry-After", "20"), nil, []string{"20s: the service answered with status 429"}},
		"with a code": {
			answer{status: 429, header: http.Header{"Retry-After": {"20"}}, body: `{"error":{"code":"rate_limit_exceeded"}}`},
			[]httpthrottle.Option{httpthrottle.WithClassifier(httpthrottle.OpenAI)},
			[]string{"20s: the service answered with status 429, code rate_limit_exceeded"},
		},
		"not told":       {refuse(429), nil, nil},
		"overloaded":     {refuse(503, "Retry-After", "20"), nil, nil},
		"with a tag":     {refuse(429, "Retry-After", "20"), []httpthrottle.Option{tag}, nil},
		"other feedback": {refuse(429, "Retry-After", "20"), []httpthrottle.Option{httpthrottle.WithFeedback(deaf{})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listening{Limiter: throttle.All()}
				tr := httpthrottle.NewTransport(serve(tc.answer), l, append(tc.opts, httpthrottle.WithMaxAttempts(1))...)
				res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				require.Equal(t, tc.want, l.reported)
			})
		})
	}
}
