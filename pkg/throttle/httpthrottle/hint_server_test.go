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
