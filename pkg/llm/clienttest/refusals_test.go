package clienttest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/numaproj-contrib/numathrottle/pkg/llm"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The refusals of a provider: one that asks for a wait of some seconds, and one after which waiting is of no use.
type refusals struct {
	wait, stop string
	stopStatus int
}

var refusalsOf = map[string]refusals{
	"openai": {
		`{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
		`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
		http.StatusTooManyRequests,
	},
	"anthropic": {
		`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`,
		`{"type":"error","error":{"type":"rate_limit_error","message":"Spent","details":{"error_code":"enforced_spend_limit_reached"}}}`,
		http.StatusTooManyRequests,
	},
	"gemini": {
		`{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`,
		`{"error":{"code":402,"message":"Your prepayment credits are depleted.","status":"FAILED_PRECONDITION"}}`,
		http.StatusPaymentRequired,
	},
}

// refusing returns a function that refuses; after is the time to wait, in seconds.
func refusing(status int, after, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// providerOf returns the provider that a call is made for.
func providerOf(name string) string {
	switch {
	case strings.HasPrefix(name, "anthropic"):
		return "anthropic"
	case strings.HasPrefix(name, "genai"):
		return "gemini"
	default:
		return "openai"
	}
}

// eachCall runs a test in virtual time for each call, under some limits. A call has ten seconds.
func eachCall(t *testing.T, c llm.Config, test func(t *testing.T, p *provider, r refusals, ask func() (string, error))) {
	for name, ask := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProvider(t)
				c.Provider = providerOf(name)
				a := open(t, c)
				defer func() { require.NoError(t, a.Close()) }()
				client := &http.Client{Transport: a.Transport(p)}
				test(t, p, refusalsOf[c.Provider], func() (string, error) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					return ask(ctx, t, "http://provider.test", client)
				})
			})
		})
	}
}

// A refusal with a time is waited out by the limits, and the whole call made again.
func TestRetryAfterIsWaitedOut(t *testing.T) {
	eachCall(t, llm.Config{}, func(t *testing.T, p *provider, r refusals, ask func() (string, error)) {
		p.refuse, p.refusal = 1, refusing(http.StatusTooManyRequests, "7", r.wait)
		began := time.Now()
		_, err := ask()
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 7*time.Second)
		sent := p.calls()
		require.Len(t, sent, 2)
		require.Equal(t, sent[0], sent[1])
		require.NotEmpty(t, sent[0])
	})
}

// A spent quota is asked for once, and ends as the library's own error.
func TestSpentQuotaIsTheLibrarysError(t *testing.T) {
	eachCall(t, llm.Config{}, func(t *testing.T, p *provider, r refusals, ask func() (string, error)) {
		p.refuse, p.refusal = 9, refusing(r.stopStatus, "", r.stop)
		_, err := ask()
		requireStatus(t, err, r.stopStatus)
		require.Len(t, p.calls(), 1)
	})
}

// A wait that is too long ends as the library's own error too.
func TestLongWaitIsTheLibrarysError(t *testing.T) {
	eachCall(t, llm.Config{}, func(t *testing.T, p *provider, r refusals, ask func() (string, error)) {
		p.refuse, p.refusal = 9, refusing(http.StatusTooManyRequests, "600", r.wait)
		_, err := ask()
		requireStatus(t, err, http.StatusTooManyRequests)
		require.Len(t, p.calls(), 1)
	})
}

// What the limits refuse, with the time of the next try, is found behind the errors of the libraries; but langchaingo hides every error of a
// transport.
func TestErrorsOfTheLimitsComeThrough(t *testing.T) {
	eachCall(t, llm.Config{RequestsPerMinute: 3}, func(t *testing.T, _ *provider, _ refusals, ask func() (string, error)) {
		var err error
		for err == nil {
			_, err = ask()
		}
		if strings.Contains(t.Name(), "langchaingo") {
			require.ErrorContains(t, err, "failed to reach API server")
			return
		}
		require.ErrorIs(t, err, throttle.ErrThrottled)
		refused, ok := errors.AsType[*throttle.Error](err)
		require.True(t, ok)
		require.Equal(t, "acct/requests", refused.Limit)
		require.Greater(t, refused.RetryAfter, 10*time.Second)
	})
}

// requireStatus requires the error of a library that has the status of the answer.
func requireStatus(t *testing.T, err error, status int) {
	t.Helper()
	require.Error(t, err)
	ofOpenAI, isOpenAI := errors.AsType[*openai.Error](err)
	ofAnthropic, isAnthropic := errors.AsType[*anthropic.Error](err)
	ofGemini, isGemini := errors.AsType[genai.APIError](err)
	switch {
	case isOpenAI:
		require.Equal(t, status, ofOpenAI.StatusCode)
	case isAnthropic:
		require.Equal(t, status, ofAnthropic.StatusCode)
	case isGemini:
		require.Equal(t, status, ofGemini.Code)
	default: // langchaingo has no type for it
		require.ErrorContains(t, err, "status code: "+strconv.Itoa(status))
	}
}
