package httpthrottle_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestEachAttemptDraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "2"), refuse(529), ok)
		l := throttletest.New()
		cost := func(*http.Request) int { return 7 }
		tr := httpthrottle.NewTransport(s, l, httpthrottle.WithCost(cost))
		res, err := tr.RoundTrip(request(t, http.MethodPost, "hello"))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, "fine", read(t, res))

		require.Len(t, l.Draws(), 3)
		for _, d := range l.Draws() {
			require.Equal(t, throttletest.Draw{Method: throttletest.Acquire, Cost: 7, Granted: 7, Settled: true, Used: 7}, d)
		}
		for _, a := range s.seen {
			require.Equal(t, "hello", a.body)
			require.True(t, a.answer.closed)
			require.Zero(t, a.answer.Len(), "not drained")
		}
	})
}

// A classifier may find refusals among answers whose body nobody has looked at; it is
// read to its end all the same.
func TestRefusalOfAnyStatusIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(202, "Busy", "1"), ok)
		busy := func(a httpthrottle.Answer) (httpthrottle.Refusal, bool) {
			require.Nil(t, a.Body)
			return httpthrottle.Refusal{Class: httpthrottle.Wait, NotProcessed: true}, a.Header.Get("Busy") != ""
		}
		res, err := httpthrottle.NewTransport(s, nil, httpthrottle.WithClassifier(busy)).RoundTrip(request(t, http.MethodPost, "hello"))
		require.NoError(t, err)
		require.Equal(t, "fine", read(t, res))
		require.True(t, s.seen[0].answer.closed)
		require.Zero(t, s.seen[0].answer.Len())
	})
}

func TestWaitsAsToldAndALittleLonger(t *testing.T) {
	for _, tc := range []struct {
		name        string
		answer      answer
		least, most time.Duration
	}{
		{"told", refuse(429, "Retry-After", "2"), 2 * time.Second, 2200 * time.Millisecond},
		{"told much", refuse(503, "Retry-After", "50"), 50 * time.Second, 51 * time.Second},
		{"told milliseconds", refuse(429, "Retry-After-Ms", "100"), 100 * time.Millisecond, 110 * time.Millisecond},
		{"told nothing", refuse(429), 500 * time.Millisecond, 750 * time.Millisecond},
		{"told to come at once", refuse(429, "Retry-After", "0"), 500 * time.Millisecond, 750 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waits := map[time.Duration]bool{}
				for range 50 {
					s := serve(tc.answer, ok)
					res, err := httpthrottle.NewTransport(s, nil).RoundTrip(request(t, http.MethodGet, ""))
					require.NoError(t, err)
					require.Equal(t, "fine", read(t, res))
					within(t, tc.least, tc.most, s.times()[1])
					waits[s.times()[1]] = true
				}
				require.Greater(t, len(waits), 40, "all came back together")
			})
		})
	}
}

// Little time is no reason to come back all at once, nor not at all.
func TestJitterStaysWithinTheDeadline(t *testing.T) {
	for name, attempts := range map[string]int{"of a refusal": 2, "of a pause": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waits := map[time.Duration]bool{}
				for range 50 {
					s := serve(refuse(429, "Retry-After", "50"), ok)
					tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithMaxAttempts(attempts))
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second+10*time.Millisecond)
					for range 3 - attempts {
						res, err := tr.RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
						require.NoError(t, err)
						require.NoError(t, res.Body.Close())
					}
					cancel()
					within(t, 50*time.Second, 50*time.Second+5*time.Millisecond, s.times()[1])
					waits[s.times()[1]] = true
				}
				require.Greater(t, len(waits), 40, "all came back together")
			})
		})
	}
}

func TestBackoffDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429))
		tr := httpthrottle.NewTransport(s, nil, httpthrottle.WithMaxAttempts(9), httpthrottle.WithMaxElapsed(time.Hour))
		res, err := tr.RoundTrip(request(t, http.MethodGet, ""))
		require.NoError(t, err)
		require.Equal(t, 429, res.StatusCode)
		require.Contains(t, read(t, res), "slow down")
		times := s.times()
		require.Len(t, times, 9)
		for i, least := range []float64{0.5, 1, 2, 4, 8, 16, 30, 30} {
			d := time.Duration(least * float64(time.Second))
			within(t, d, d+d/2, times[i+1]-times[i])
		}
	})
}

// Above the caps the answer is handed over as it came, at once.
func TestGivesUp(t *testing.T) {
	soon := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	for _, tc := range []struct {
		name   string
		answer answer
		opts   []httpthrottle.Option
		ctx    func(*testing.T) context.Context
		after  time.Duration
	}{
		{name: "the default for the longest wait", answer: refuse(429, "Retry-After", "61")},
		{name: "the longest wait", answer: refuse(429, "Retry-After", "6"), opts: opts(httpthrottle.WithMaxWait(5 * time.Second))},
		{name: "the whole time", answer: refuse(429, "Retry-After", "6"), opts: opts(httpthrottle.WithMaxElapsed(6 * time.Second))},
		{name: "the attempts", answer: refuse(429, "Retry-After", "6"), opts: opts(httpthrottle.WithMaxAttempts(1))},
		{name: "the deadline", answer: refuse(429, "Retry-After", "6"), ctx: soon},
		{name: "the deadline, untold", answer: answer{status: 429, takes: 900 * time.Millisecond}, ctx: soon, after: 900 * time.Millisecond},
		{
			name: "stop", answer: answer{status: 429, body: `{"error":{"code":"insufficient_quota"}}`},
			opts: opts(httpthrottle.WithClassifier(httpthrottle.OpenAI)),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(tc.answer, ok)
				l := throttletest.New()
				req := request(t, http.MethodGet, "")
				if tc.ctx != nil {
					req = req.WithContext(tc.ctx(t))
				}
				res, err := httpthrottle.NewTransport(s, l, tc.opts...).RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, tc.answer.status, res.StatusCode)
				require.Equal(t, tc.answer.header.Get("Retry-After"), res.Header.Get("Retry-After"))
				require.Equal(t, tc.answer.body, read(t, res))
				require.Same(t, req, res.Request)
				require.Len(t, s.seen, 1)
				require.Equal(t, tc.after, time.Since(s.started))
				require.Equal(t, 1, l.Used())
			})
		})
	}
}

func TestMaxElapsedBoundsTheWaitForTokensOfALaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429), ok)
		l := throttletest.New(throttletest.Grant(), throttletest.Block())
		tr := httpthrottle.NewTransport(s, l, httpthrottle.WithMaxElapsed(10*time.Second))
		_, err := tr.RoundTrip(request(t, http.MethodGet, ""))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(s.started))
	})
}

func TestContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(refuse(429, "Retry-After", "10"), ok)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(3*time.Second, func() { cancel(enough) })
		l := throttletest.New()
		_, err := httpthrottle.NewTransport(s, l).RoundTrip(request(t, http.MethodGet, "").WithContext(ctx))
		require.ErrorIs(t, err, enough)
		require.Equal(t, 3*time.Second, time.Since(s.started))
		require.Len(t, l.Draws(), 1)
		require.True(t, s.seen[0].answer.closed)
	})
}

// What may be sent again: what the service has not acted on, and what is idempotent.
func TestWhatIsRepeated(t *testing.T) {
	broken := answer{err: errors.New("connection reset")}
	failures := httpthrottle.RetryFailures()
	key := httpthrottle.WithIdempotencyKey(nil)
	for _, tc := range []struct {
		name, method string
		answer       answer
		opts         []httpthrottle.Option
		again        bool
	}{
		{"a refused GET", http.MethodGet, refuse(503), nil, true},
		{"a refused POST", http.MethodPost, refuse(429), nil, true},
		{"a POST that may have had an effect", http.MethodPost, refuse(503), nil, false},
		{"that, with a key", http.MethodPost, refuse(503), opts(key), true},
		{"that, told when to come back", http.MethodPost, refuse(503, "Retry-After", "1"), nil, true},
		{"that, to an LLM", http.MethodPost, refuse(503), opts(httpthrottle.WithClassifier(httpthrottle.OpenAI)), true},
		{"a PUT", http.MethodPut, refuse(503), nil, true},
		{"a PATCH", http.MethodPatch, refuse(503), nil, false},

		{"an error", http.MethodGet, broken, nil, false},
		{"an error, asked for", http.MethodGet, broken, opts(failures), true},
		{"an error of a POST", http.MethodPost, broken, opts(failures), false},
		{"an error of a POST with a key", http.MethodPost, broken, opts(failures, key), true},
		{"a 502", http.MethodGet, refuse(502), nil, false},
		{"a 502, asked for", http.MethodGet, refuse(502), opts(failures), true},
		{"a 500 of a POST", http.MethodPost, refuse(500), opts(failures), false},
		{"a 404", http.MethodGet, refuse(404, "Retry-After", "1"), opts(failures), false},
		{"a 200", http.MethodGet, ok, opts(failures), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(tc.answer, ok)
				l := throttletest.New()
				res, err := httpthrottle.NewTransport(s, l, tc.opts...).RoundTrip(request(t, tc.method, "hello"))
				attempts := 1
				switch {
				case tc.again:
					attempts = 2
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, res.StatusCode)
				case tc.answer.err != nil:
					require.Equal(t, tc.answer.err, err)
				default:
					require.Equal(t, tc.answer.status, res.StatusCode)
				}
				if res != nil {
					require.NoError(t, res.Body.Close())
				}
				require.Len(t, s.seen, attempts)
				require.Equal(t, attempts, l.Used())
			})
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "Idempotency-Key"
		send := func(req *http.Request, opt httpthrottle.Option) []string {
			s := serve(refuse(429), refuse(503), ok)
			res, err := httpthrottle.NewTransport(s, nil, opt).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			var keys []string
			for _, a := range s.seen {
				keys = append(keys, a.header.Get(name))
			}
			return keys
		}
		calls := 0
		byMessage := httpthrottle.WithIdempotencyKey(func(*http.Request) string { calls++; return "message-17" })

		req := request(t, http.MethodPost, "hello")
		before := req.Header.Clone()
		require.Equal(t, []string{"message-17", "message-17", "message-17"}, send(req, byMessage))
		require.Equal(t, before, req.Header, "the caller's request was changed")
		require.Equal(t, 1, calls)

		keys := send(request(t, http.MethodPost, "hello"), httpthrottle.WithIdempotencyKey(nil))
		require.Len(t, keys[0], 26)
		require.Equal(t, []string{keys[0], keys[0], keys[0]}, keys)
		require.NotEqual(t, keys, send(request(t, http.MethodPost, "hello"), httpthrottle.WithIdempotencyKey(nil)))

		require.Equal(t, []string{"", "", ""}, send(request(t, http.MethodGet, ""), byMessage))

		req = request(t, http.MethodPost, "hello")
		req.Header.Set(name, "own")
		require.Equal(t, []string{"own", "own", "own"}, send(req, byMessage))
	})
}

func TestRefusalsAsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(answer{status: 429, header: header("Retry-After: 90\nx-ratelimit-remaining-tokens: 3"), body: `{"error":{"code":"rate_limit_exceeded"}}`})
		l := throttletest.New()
		tag := func(*http.Request) string { return "gpt" }
		opts := []httpthrottle.Option{httpthrottle.RefusalsAsErrors(), httpthrottle.WithClassifier(httpthrottle.OpenAI), httpthrottle.WithTag(tag)}
		client := &http.Client{Transport: httpthrottle.NewTransport(s, l, opts...)}
		_, err := client.Do(request(t, http.MethodPost, "hello"))
		require.ErrorIs(t, err, throttle.ErrThrottled)
		te, is := errors.AsType[*throttle.Error](err)
		require.True(t, is)
		require.Equal(t, httpthrottle.ReasonRefused, te.Reason)
		require.Equal(t, 90*time.Second, te.RetryAfter)
		require.Equal(t, "gpt", te.Tag)
		refused, is := errors.AsType[*httpthrottle.RefusedError](err)
		require.True(t, is)
		require.Equal(t, httpthrottle.Wait, refused.Refusal.Class)
		require.Equal(t, `numathrottle: tag "gpt": 1 tokens cannot be had in time (refused), retry after 1m30s: `+
			`the service refused with status 429 (wait), code rate_limit_exceeded`, te.Error())
		require.True(t, s.seen[0].answer.closed)

		s = serve(answer{status: 429, body: `{"error":{"code":"insufficient_quota"}}`})
		_, err = httpthrottle.NewTransport(s, l, opts...).RoundTrip(request(t, http.MethodPost, "hello"))
		require.NotErrorIs(t, err, throttle.ErrThrottled)
		refused, is = errors.AsType[*httpthrottle.RefusedError](err)
		require.True(t, is)
		require.Equal(t, httpthrottle.Stop, refused.Refusal.Class)
	})
}
