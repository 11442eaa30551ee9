package httpthrottle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Split(strings.TrimSuffix(j.text.String(), "\n"), "\n")
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// What a real server says pauses the limiter for as long as it says, and no longer than is allowed; then
// a line in the log shows what it said.
func TestWhatServersSay(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for _, tc := range []struct {
		name     string
		say      func(h http.Header) (body string)
		reported time.Duration // 0: nothing
		raw      string        // what the log shows; empty: nothing
	}{
		{"seconds", func(h http.Header) string {
			h.Set("Retry-After", "20")
			return ""
		}, 20 * time.Second, ""},
		{"an epoch", func(h http.Header) string {
			h.Set("Retry-After", fmt.Sprint(in(21*time.Second).Unix()))
			return ""
		}, 20 * time.Second, ""},
		{"an epoch in milliseconds", func(h http.Header) string {
			h.Set("Retry-After-Ms", fmt.Sprint(in(21*time.Second).UnixMilli()))
			return ""
		}, 20 * time.Second, ""},
		{"Reddit", func(h http.Header) string {
			h.Set("X-Ratelimit-Remaining", "0.0")
			h.Set("X-Ratelimit-Reset", "57.0")
			return ""
		}, 57 * time.Second, ""},
		{"Okta", func(h http.Header) string {
			h.Set("X-Rate-Limit-Remaining", "0")
			h.Set("X-Rate-Limit-Reset", fmt.Sprint(in(21*time.Second).Unix()))
			return ""
		}, 20 * time.Second, ""},
		{"draft 7", func(h http.Header) string {
			h.Set("Ratelimit", "limit=100, remaining=0, reset=50")
			return ""
		}, 50 * time.Second, ""},
		{"Gemini", func(http.Header) string {
			return `[{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22.5s"}]}}]`
		}, 22500 * time.Millisecond, ""},
		{"OpenAI's text", func(http.Header) string {
			return `{"error":{"message":"Rate limit reached. Please try again in 20s."}}`
		}, 20 * time.Second, ""},
		{"a Date of 1970", func(h http.Header) string {
			h.Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT")
			h.Set("Retry-After", in(21*time.Second).UTC().Format(http.TimeFormat))
			return ""
		}, 20 * time.Second, ""},
		{"from a cache", func(h http.Header) string {
			h.Set("Age", "40")
			h.Set("Retry-After", "60")
			return ""
		}, 20 * time.Second, ""},
		{"nothing", func(http.Header) string { return "slow down" }, 0, ""},
		{"a day", func(h http.Header) string {
			h.Set("Retry-After", "86400")
			return ""
		}, 24 * time.Hour, "Retry-After: 86400"},
		{"a day for people", func(http.Header) string {
			return `{"message":"Quota of key sesame: try again in 23 hours and 5 minutes, or buy"}`
		}, 23*time.Hour + 5*time.Minute, "try again in 23 hours and 5 minutes"},
		{"a thousand digits", func(h http.Header) string {
			h.Set("Retry-After", strings.Repeat("9", 1000))
			return ""
		}, 10 * 365 * 24 * time.Hour, "Retry-After: " + strings.Repeat("9", 115) + "..."},
		{"a reset in the year 9999", func(h http.Header) string {
			h.Set("X-Ratelimit-Remaining", "0")
			h.Set("X-Ratelimit-Reset", "9999-12-31T23:59:59Z")
			return ""
		}, 10 * 365 * 24 * time.Hour, "X-Ratelimit-Reset: 9999-12-31T23:59:59Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server, _ := serveHTTP(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				body := tc.say(w.Header())
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, body)
			})
			th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000})
			require.NoError(t, err)
			defer func() { require.NoError(t, th.Close()) }()
			var log journal
			client := &http.Client{Transport: httpthrottle.NewTransport(nil, th, httpthrottle.WithMaxAttempts(1), httpthrottle.WithMaxWait(10*time.Second),
				httpthrottle.RefusalsAsErrors(), httpthrottle.WithLogger(log.logger()))}
			_, err = client.Get(server.URL)
			refused, is := errors.AsType[*throttle.Error](err)
			require.True(t, is, "%v", err)
			const slow, late = 5 * time.Second, 3 * time.Second // the machine; whole seconds, and pauses that end not all at once
			within(t, tc.reported-slow, tc.reported+late, refused.RetryAfter)
			paused := th.Status().Paused
			require.Equal(t, tc.reported > 0, paused != nil)
			if paused != nil {
				most := min(tc.reported, 5*time.Minute)
				within(t, most-slow, most+late, time.Until(paused.Until))
			}
			if tc.reported > 0 { // the others of the process
				_, err = client.Get(server.URL + "/other")
				held, is := errors.AsType[*throttle.Error](err)
				require.True(t, is)
				require.Equal(t, throttle.ReasonPause, held.Reason)
				require.LessOrEqual(t, held.RetryAfter, 5*time.Minute)
			}
			if lines := log.lines(); tc.raw == "" {
				require.Equal(t, []string{""}, lines)
			} else {
				require.Len(t, lines, 1)
				require.Contains(t, lines[0], "level=WARN")
				require.Contains(t, lines[0], `said="`+tc.raw+`"`)
				require.NotContains(t, lines[0], "sesame")
			}
		})
	}
}

// However long a service asks for, and whatever it is told by, nothing but the call itself waits for longer than is
// allowed.
func TestNoRefusalStopsAPoolForLongerThanIsAllowed(t *testing.T) {
	for _, said := range []answer{
		refuse(429, "Retry-After", "3600"),
		refuse(429, "Retry-After", "1e9, \x1b[31mred"), // malformed
		refuse(429, "Retry-After-Ms", "99999999"),
		refuse(429, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
		refuse(429, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "99999;\x1b[31mred"),
		refuse(429, "RateLimit", `"a";r=0;t=999999`),
		refuse(503, "Retry-After", "3600"),
		{status: 429, body: `{"error":{"details":[{"retryDelay":"99999s"}]}}`},
		{status: 429, body: `try again in 9999 hours`},
	} {
		for _, most := range []time.Duration{0, 7 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				th, err := throttle.New(throttle.Limit{Max: 1000})
				require.NoError(t, err)
				defer func() { require.NoError(t, th.Close()) }()
				opts := []httpthrottle.Option{httpthrottle.WithMaxAttempts(1), httpthrottle.WithMaxWait(24 * time.Hour)}
				longest := httpthrottle.DefaultMaxPause
				if most > 0 {
					opts, longest = append(opts, httpthrottle.WithMaxPause(most)), most
				}
				var log journal
				time.Sleep(time.Second)
				s := serve(said, ok)
				tr := httpthrottle.NewTransport(s, th, append(opts, httpthrottle.WithLogger(log.logger()))...)
				var wg sync.WaitGroup
				fetch(&wg, tr, request(t, http.MethodGet, ""))
				wg.Wait()
				fetch(&wg, tr, request(t, http.MethodGet, ""))
				wg.Wait()
				within(t, 0, longest+2*time.Second, s.times()[1])
				if s.times()[1] > time.Second {
					require.GreaterOrEqual(t, s.times()[1], longest)
					require.Contains(t, log.lines()[0], "said=")
					require.NotContains(t, log.text.String(), "\x1b")
					if strings.Contains(said.header.Get("X-Ratelimit-Reset"), "\x1b") {
						require.Contains(t, log.lines()[0], `99999;\\x1b[31mred`, "the logger escaped it, whose text has one backslash")
					}
				}
			})
		}
	}
}

// A longer bound is for those who ask for it, at the transport and at the limiter.
func TestLongerPausesAreForThoseWhoAllowThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithMaxRetryAfter(2*time.Hour))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		var log journal
		tr := httpthrottle.NewTransport(serve(refuse(429, "Retry-After", "3600")), th, httpthrottle.WithMaxAttempts(1),
			httpthrottle.WithMaxPause(2*time.Hour), httpthrottle.WithLogger(log.logger()))
		time.Sleep(time.Second)
		var wg sync.WaitGroup
		fetch(&wg, tr, request(t, http.MethodGet, ""))
		wg.Wait()
		within(t, time.Hour, time.Hour+2*time.Second, time.Until(th.Status().Paused.Until))
		require.Equal(t, []string{""}, log.lines())
	})
	require.ErrorContains(t, httpthrottle.Check(httpthrottle.WithMaxPause(0)), "WithMaxPause is 0s, allowed: more than 0")
}
