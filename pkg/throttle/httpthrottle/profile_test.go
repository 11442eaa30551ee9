package httpthrottle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

func TestProfiles(t *testing.T) {
	const (
		wait, overload, stop = httpthrottle.Wait, httpthrottle.Overload, httpthrottle.Stop

		rate = `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000.","type":"tokens",` +
			`"param":null,"code":"rate_limit_exceeded"}}`
		quota = `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.",` +
			`"type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
		quotaNoCode = `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":null}}`
		quotaByType = `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"tier_1"}}`
		azure       = `{"error":{"code":"429","message":"Requests have exceeded token rate limit. Please retry after 45 seconds."}}`

		twoWords   = `{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded"}}`
		tooLarge   = `{"error":{"message":"Request too large for x: Limit 30000, Requested 40000.","code":"rate_limit_exceeded"}}`
		spentLarge = `{"error":{"message":"Request too large for x: Limit 30000, Requested 40000.","code":"insufficient_quota"}}`
		throttling = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"x"}`

		anthropicReset    = "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-11-22T10:00:09Z"
		anthropicRate     = `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your rate limit."}}`
		anthropicSpent    = `{"type":"error","error":{"type":"rate_limit_error","message":"...","details":{"error_code":"enforced_spend_limit_reached"}}}`
		anthropicOverload = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`

		geminiMinute = `{"error":{"code":429,"message":"* Quota exceeded for metric: generate_content_free_tier_requests, limit: 15\nPlease retry in 10.6s.",` +
			`"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[` +
			`{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"10s"}]}}`
		geminiDay = `{"error":{"code":429,"message":"You exceeded your current quota, limit: 200","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[` +
			`{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"200"}]},` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}`
		geminiNever = `[{"error":{"code":429,"message":"* Quota exceeded for metric: free_tier_requests, limit: 0, model: gemini-2.0-flash",` +
			`"status":"RESOURCE_EXHAUSTED"}}]`
		geminiPart = `{"error":{"code":429,"message":"limit: 0.5 of what was bought, limit: 07","status":"RESOURCE_EXHAUSTED"}}`
		vertex     = `{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}`
	)
	for _, tc := range []struct {
		name         string
		classify     httpthrottle.Classifier
		status       int
		header, body string
		class        httpthrottle.Class // empty: no refusal
		after        time.Duration
		safe         bool
		code         string
	}{
		{"generic 429", httpthrottle.Generic, 429, "", "too many", wait, 0, true, ""},
		{"generic 429 with a time", httpthrottle.Generic, 429, "Retry-After: 3", "", wait, 3 * time.Second, true, ""},
		{"generic 503 of a proxy", httpthrottle.Generic, 503, "", "upstream connect error or disconnect/reset before headers", overload, 0, false, ""},
		{"generic 503 with a time", httpthrottle.Generic, 503, "Retry-After: 3", "", overload, 3 * time.Second, true, ""},
		{"generic 503 that may come at once", httpthrottle.Generic, 503, "Retry-After: 0", "", overload, 0, true, ""},
		{"generic 529", httpthrottle.Generic, 529, "", "", overload, 0, true, ""},
		{"generic 500", httpthrottle.Generic, 500, "Retry-After: 3", "", "", 0, false, ""},
		{"generic 500 of DynamoDB", httpthrottle.Generic, 500, "", throttling, wait, 0, false, "ThrottlingException"},
		{"generic 502, which may have acted", httpthrottle.Generic, 502, "Retry-After: 3", throttling, wait, 3 * time.Second, false, "ThrottlingException"},
		{"generic 504, which may have acted", httpthrottle.Generic, 504, "", throttling, wait, 0, false, "ThrottlingException"},
		{"generic 503 of DynamoDB", httpthrottle.Generic, 503, "", throttling, wait, 0, true, "ThrottlingException"},
		{"generic 400 with two words", httpthrottle.Generic, 400, "", twoWords, wait, 0, true, "rate_limit_exceeded"},
		{"generic 500, overloaded", httpthrottle.Generic, 500, "", anthropicOverload, overload, 0, false, "overloaded_error"},
		{"generic 403 with a time", httpthrottle.Generic, 403, "Retry-After: 3", "", wait, 3 * time.Second, true, ""},
		{"generic 403", httpthrottle.Generic, 403, "", "{}", "", 0, false, ""},
		{"generic 200", httpthrottle.Generic, 200, "Retry-After: 3", "", "", 0, false, ""},
		{"generic 429 of OpenAI", httpthrottle.Generic, 429, "", quota, wait, 0, true, "insufficient_quota"},

		{"OpenAI rate", httpthrottle.OpenAI, 429, "Retry-After: 1", rate, wait, time.Second, true, "rate_limit_exceeded"},
		{"OpenAI quota", httpthrottle.OpenAI, 429, "", quota, stop, 0, true, "insufficient_quota"},
		{"OpenAI quota told by its type", httpthrottle.OpenAI, 429, "", quotaNoCode, stop, 0, true, "insufficient_quota"},
		{"OpenAI quota with another code", httpthrottle.OpenAI, 429, "", quotaByType, stop, 0, true, "tier_1"},
		{"OpenAI overloaded", httpthrottle.OpenAI, 503, "", `{"error":{"message":"The engine is currently overloaded"}}`, overload, 0, true, ""},
		{"OpenAI quota told by 503", httpthrottle.OpenAI, 503, "", quota, stop, 0, true, "insufficient_quota"},
		{"OpenAI 400", httpthrottle.OpenAI, 400, "", quota, stop, 0, true, "insufficient_quota"},
		{"generic 400 of OpenAI", httpthrottle.Generic, 400, "", quota, "", 0, false, ""},
		{"vLLM text", httpthrottle.OpenAI, 429, "", "busy", wait, 0, true, ""},
		{"an error that is text", httpthrottle.OpenAI, 429, "", `{"error":"busy"}`, wait, 0, true, ""},
		{"a code that is not fit for a label", httpthrottle.OpenAI, 429, "", `{"error":{"code":"key sk-12 34"}}`, wait, 0, true, ""},

		{"OpenAI, too large", httpthrottle.OpenAI, 429, "", `{"error":{"message":"Request too large: Limit 30000, Requested 40000."}}`, "", 0, false, ""},
		{"OpenAI, too large, with a time", httpthrottle.OpenAI, 429, "Retry-After: 3", `{"error":{"message":"Request too large for x."}}`, "", 0, false, ""},
		{"OpenAI, too large told by 400", httpthrottle.OpenAI, 400, "", tooLarge, "", 0, false, ""},
		{"OpenAI, not too large", httpthrottle.OpenAI, 429, "", `{"error":{"message":"x: Limit 30000, Requested 30000."}}`, wait, 0, true, ""},
		{"OpenAI, above what is used", httpthrottle.OpenAI, 429, "", `{"error":{"message":"Limit 9, Used 8, Requested 10."}}`, "", 0, false, ""},
		{
			"OpenAI, told when to come", httpthrottle.OpenAI, 429, "",
			`{"error":{"message":"Limit 9, Requested 10. Please try again in 4s."}}`, wait, 4 * time.Second, true, "",
		},
		{"OpenAI, spent and too large", httpthrottle.OpenAI, 429, "", spentLarge, stop, 0, true, "insufficient_quota"},
		{"generic 429, too large", httpthrottle.Generic, 429, "", tooLarge, wait, 0, true, "rate_limit_exceeded"},

		{"Azure rate", httpthrottle.Azure, 429, "retry-after-ms: 45100\nRetry-After: 45", azure, wait, 45100 * time.Millisecond, true, "429"},
		{"Azure, a day", httpthrottle.Azure, 429, "Retry-After: 86400", azure, stop, 24 * time.Hour, true, "429"},
		{"Azure quota", httpthrottle.Azure, 429, "", quota, stop, 0, true, "insufficient_quota"},

		{"Anthropic rate", httpthrottle.Anthropic, 429, "retry-after: 12", anthropicRate, wait, 12 * time.Second, true, "rate_limit_error"},
		{"Anthropic rate told by its reset", httpthrottle.Anthropic, 429, anthropicReset, anthropicRate, wait, 9 * time.Second, true, "rate_limit_error"},
		{"Anthropic without a time", httpthrottle.Anthropic, 429, "", anthropicRate, wait, 0, true, "rate_limit_error"},
		{"Anthropic spend limit", httpthrottle.Anthropic, 429, "retry-after: 12", anthropicSpent, stop, 12 * time.Second, true, "enforced_spend_limit_reached"},
		{"Anthropic overloaded", httpthrottle.Anthropic, 529, "", anthropicOverload, overload, 0, true, "overloaded_error"},

		{"Gemini minute", httpthrottle.Gemini, 429, "", geminiMinute, wait, 10 * time.Second, true, ""},
		{"Gemini day", httpthrottle.Gemini, 429, "", geminiDay, stop, 22 * time.Hour, true, ""},
		{"Gemini never", httpthrottle.Gemini, 429, "", geminiNever, stop, 0, true, ""},
		{"Gemini part", httpthrottle.Gemini, 429, "", geminiPart, wait, 0, true, ""},
		{"Vertex", httpthrottle.Gemini, 429, "", vertex, wait, 0, true, ""},
		{"Gemini overloaded", httpthrottle.Gemini, 503, "", `{"error":{"code":503,"status":"UNAVAILABLE"}}`, overload, 0, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := httpthrottle.Answer{Status: tc.status, Header: header(tc.header), Body: []byte(tc.body), At: came}
			r, refused := tc.classify(a)
			require.Equal(t, tc.class != "", refused)
			want := httpthrottle.Refusal{}
			if refused {
				want = httpthrottle.Refusal{Class: tc.class, RetryAfter: tc.after, NotProcessed: tc.safe, Code: tc.code, Dimension: r.Dimension}
			}
			require.Equal(t, want, r)
		})
	}
}

func TestClassifierOfOnesOwn(t *testing.T) {
	// A secondary limit of GitHub is a 403.
	classify := func(a httpthrottle.Answer) (httpthrottle.Refusal, bool) {
		d, _, reported := a.RetryAfter()
		if a.Status == http.StatusForbidden && reported {
			return httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: d, NotProcessed: true}, true
		}
		return httpthrottle.Generic(a)
	}
	r, refused := classify(httpthrottle.Answer{Status: http.StatusForbidden, Header: header("Retry-After: 60"), At: came})
	require.True(t, refused)
	require.Equal(t, time.Minute, r.RetryAfter)
}
