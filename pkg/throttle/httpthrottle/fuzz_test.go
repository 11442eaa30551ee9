package httpthrottle_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// name is what a service's names may look like.
var name = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,64}$`)

// Whatever the headers say, and whatever they are called, a delay is a time to wait, and malformed
// fields change nothing.
func FuzzRetryAfterHeaders(f *testing.F) {
	f.Add("20", "", "", "Sun, 22 Nov 2026 10:00:00 GMT", `"a";r=0;t=3`, "0", "6m0s", "Tokens", "X-Ratelimit-Remaining")
	f.Add("1.5", "1250", "", dateHeader, `limit=100, remaining=0, reset=50`, "0", "2026-11-22T10:05:00Z", "Input-Tokens", "Ratelimit-Remaining-Requests")
	f.Add("Sunday, 22-Nov-26 10:01:30 GMT", "-1", "0.5", "", "a;r=0;t=99999999999999", "-1", "1795341700", "", "Anthropic-Ratelimit-Remaining")
	f.Add("Sun Nov 22 10:01:45 2026", "1e9", "", "?", "(a b);r=0;t=1", "0", "99999999999999999999999", "Ω \"", "x-ratelimit-remaining-tokens")
	f.Add("", "", "", dateHeader, "", "0", "2026-11-22T10:00:03.5+01:00", "tokens-remaining", "Ratelimit-Remaining")
	f.Add("", "", "", "", "", "0", "9999-12-31T23:59:59Z", "Requests", "Ratelimit-Remainings")
	f.Add("", "", "", dateHeader, "", "0", "1795341700123", strings.Repeat("a", 65), "X-Ratelimit-Remaining-")
	f.Fuzz(func(t *testing.T, after, millis, azure, date, items, remaining, reset, dimension, field string) {
		h := http.Header{}
		for _, v := range [][2]string{
			{"Retry-After", after},
			{"Retry-After-Ms", millis},
			{"X-Ms-Retry-After-Ms", azure},
			{"Date", date},
			{"Ratelimit", items},
			{"X-Ratelimit-Remaining-" + dimension, remaining},
			{"X-Ratelimit-Reset-" + dimension, reset},
			{"Anthropic-Ratelimit-" + dimension + "-Remaining", remaining},
			{"Anthropic-Ratelimit-" + dimension + "-Reset", reset},
			{"Ratelimit-Reset", reset},
			{field, remaining},
		} {
			if key := http.CanonicalHeaderKey(v[0]); v[1] != "" && h[key] == nil {
				h[key] = []string{v[1]}
			}
		}
		a := httpthrottle.Answer{Status: 429, Header: h, At: came}
		d, limit, ok := a.RetryAfter()
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, farthest)
		require.Regexp(t, name, limit)
		if !ok {
			require.Zero(t, d)
			require.Empty(t, limit)
		}
		for _, key := range []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
			h.Add(key, "?")
		}
		again, limitAgain, _ := a.RetryAfter()
		require.Equal(t, d, again, "a malformed field counts")
		require.Equal(t, limit, limitAgain)
		h.Del("Retry-After-Ms")
		for _, v := range []struct {
			key, value string
			want       time.Duration
		}{{"X-Ms-Retry-After-Ms", "1250", 1250 * time.Millisecond}, {"Retry-After-Ms", "0750.5", 750500 * time.Microsecond}} {
			h.Set(v.key, v.value)
			d, limit, ok = a.RetryAfter()
			require.True(t, ok)
			require.Empty(t, limit)
			require.Equal(t, v.want, d, "%s comes before all that is said elsewhere", v.key)
		}
	})
}

// Whatever the body of a refusal is, it stays a refusal of a known class, and only names
// are taken over.
func FuzzRefusalBody(f *testing.F) {
	f.Add(`{"error":{"code":"insufficient_quota","type":"x","message":"m"}}`, 429)
	f.Add(`[{"error":{"code":429,"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"3.5s"},{"violations":[{"quotaId":"PerDay"}]}]}}]`, 429)
	f.Add(`{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`, 529)
	f.Add(`{"error":{"message":"limit: 0, limit: 0."}}`, 503)
	f.Add(`{"error":"busy"}`, 500)
	classifiers := []httpthrottle.Classifier{
		httpthrottle.Generic, httpthrottle.OpenAI, httpthrottle.Azure, httpthrottle.Anthropic, httpthrottle.Gemini,
	}
	f.Fuzz(func(t *testing.T, body string, status int) {
		for _, classify := range classifiers {
			r, refused := classify(httpthrottle.Answer{Status: status, Header: http.Header{}, Body: []byte(body), At: came})
			require.Equal(t, status == 429 || status == 503 || status == 529, refused)
			if !refused {
				require.Zero(t, r)
				continue
			}
			require.Contains(t, []httpthrottle.Class{httpthrottle.Wait, httpthrottle.Overload, httpthrottle.Stop}, r.Class)
			require.Equal(t, status != 429, r.Class == httpthrottle.Overload)
			require.GreaterOrEqual(t, r.RetryAfter, time.Duration(0))
			require.LessOrEqual(t, r.RetryAfter, farthest)
			require.Regexp(t, name, r.Code)
			require.Regexp(t, name, r.Dimension)
		}
	})
}

// However an answer is cut into pieces, its usage is the same, and no more than can be
// believed.
func FuzzUsage(f *testing.F) {
	for _, tc := range answersOfLLMs {
		f.Add(tc.body, uint16(3))
	}
	f.Fuzz(func(t *testing.T, body string, at uint16) {
		whole := httpthrottle.UsageMeter(nil)(&http.Response{})
		_, _ = io.WriteString(whole, body)
		used, known := whole.Used()
		require.GreaterOrEqual(t, used, 0)
		require.LessOrEqual(t, used, 3_000_000_000)
		if !strings.Contains(body, `"usage`) {
			require.False(t, known)
		}
		cut := min(int(at), len(body))
		pieces := httpthrottle.UsageMeter(nil)(&http.Response{})
		_, _ = io.WriteString(pieces, body[:cut])
		_, _ = io.WriteString(pieces, body[cut:])
		again, knownAgain := pieces.Used()
		require.Equal(t, used, again)
		require.Equal(t, known, knownAgain)
	})
}
