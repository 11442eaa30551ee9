package account_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// An account without limits learns from whole answers to requests that were read as a whole.
func TestLearningWithoutLimits(t *testing.T) {
	const whole = `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":5}}`
	post := func(t *testing.T, tr http.RoundTripper, body io.Reader) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/v1/chat/completions", body)
		require.NoError(t, err)
		res, err := tr.RoundTrip(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	short := chat(1000, 5)
	long := chat(1<<20, 5)
	for name, tc := range map[string]struct {
		answer string
		body   io.Reader
		direct bool // without a call
		learns bool
	}{
		"a whole answer":                  {whole, strings.NewReader(short), false, true},
		"an answer that broke off":        {strings.TrimSuffix(whole, "}"), strings.NewReader(short), false, false},
		"an answer without a usage":       {`{}`, strings.NewReader(short), false, false},
		"a request that was read in part": {whole, io.MultiReader(strings.NewReader(long)), false, false},
		"a request that no call is of":    {whole, strings.NewReader(short), true, false},
		"a request of unknown length":     {whole, io.MultiReader(strings.NewReader(short)), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, account.Config{Provider: profile.SelfHosted})
			tr := l.Transport(always(200, tc.answer))
			if tc.direct {
				tr = httpthrottle.NewTransport(always(200, tc.answer), l.Limiter(), l.Options()...)
			}
			text := strings.Repeat("x", 10_000)
			before := l.Text(text)
			post(t, tr, tc.body)
			require.Equal(t, tc.learns, l.Text(text) > before)
			require.GreaterOrEqual(t, l.Text(text), before)
		})
	}
}

// Where answers say in their head what they cost, limits on tokens count that.
func TestCostsThatAreReported(t *testing.T) {
	cost := func(res *http.Response) (int, bool) { return 77, res.StatusCode == http.StatusOK }
	for name, tc := range map[string]struct {
		config account.Config
		status int
		want   map[string]int
	}{
		"tokens":   {account.Config{TokensPerMinute: 60_000, RequestsPerMinute: 600}, 200, map[string]int{"/tokens": 77, "/requests": 1}},
		"no cost":  {account.Config{TokensPerMinute: 60_000, RequestsPerMinute: 600}, 202, map[string]int{"/tokens": 130, "/requests": 1}},
		"no limit": {account.Config{}, 200, map[string]int{}},
	} {
		virtually(t, name, func(t *testing.T) {
			tc.config.Provider = profile.SelfHosted
			l := open(t, tc.config)
			tr := l.Transport(always(tc.status, `{}`), httpthrottle.WithMeter(l.Reported(cost)))
			require.Equal(t, tc.status, call(t, tr, chat(120, 100)))
			require.Equal(t, tc.want, l.settled(t))
			direct := httpthrottle.NewTransport(always(tc.status, `{}`), l.Limiter(), append(l.Options(), httpthrottle.WithMeter(l.Reported(cost)))...)
			require.Equal(t, tc.status, call(t, direct, chat(120, 100)), "without a call")
		})
	}
}

func TestWhichAnswersReportAUsage(t *testing.T) {
	for kind, want := range map[string]bool{
		"application/json": true, "Application/JSON; charset=utf-8": true, "text/event-stream": true, "application/vnd.amazon.eventstream": true,
		"application/problem+json": true, "application/pdf": false, "application/xml": false, "image/x+json": false, "text/plain": false, "": false,
	} {
		require.Equal(t, want, account.ReportsUsage(kind), kind)
	}
}

// A call that its limiter knows nothing about can fail, and be refused, like any other.
func TestFailuresOfUnknownCalls(t *testing.T) {
	failed := &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
	for name, of := range map[string]service{
		"not sent": func(*http.Request, string) (*http.Response, error) { return nil, failed }, "refused": always(http.StatusBadRequest, "{}"),
	} {
		l := open(t, account.Config{Provider: profile.SelfHosted, RequestsPerMinute: 600})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/v1/chat/completions", strings.NewReader("{}"))
		require.NoError(t, err)
		res, err := l.Watch(of).RoundTrip(req)
		if name == "not sent" {
			require.ErrorIs(t, err, failed)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
	}
}
