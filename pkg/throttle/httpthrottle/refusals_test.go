package httpthrottle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// llmClassifiers judge alike: the class follows the answer.
var llmClassifiers = map[string]httpthrottle.Classifier{
	"OpenAI": httpthrottle.OpenAI, "Azure": httpthrottle.Azure, "Anthropic": httpthrottle.Anthropic, "Gemini": httpthrottle.Gemini,
}

// A refusalRow is an answer of a provider, and what every classifier for LLMs makes of it.
type refusalRow struct {
	name         string
	status       int
	header, body string
	class        httpthrottle.Class // empty: no refusal
	after        time.Duration
	code         string // empty: any
	backoff      time.Duration
}

const (
	inFlightBudget = `{"error":{"message":"Insufficient credits for requests in flight","code":402,` +
		`"metadata":{"limit_source":"openrouter_in_flight_budget"}}}`
	weightAboveBudget = `{"error":{"message":"x","code":402,"metadata":{"reason":"weight_exceeds_budget"}}}`

	geminiOfADay = `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"quota_exceeded"},{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[` +
		`{"quotaId":"GenerateRequestsPerMinutePerProject"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"200"}]},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}`
	geminiOfAMinute = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for metric: requests, limit: 15",` +
		`"details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}`
	vertexOfADay = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",` +
		`"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"RequestsPerDayPerProject"}}]}}`
	geminiOfZero = `{"error":{"code":429,"message":"* Quota exceeded for metric: free_tier_requests, limit: 0, model: x\nPlease retry in 20s.",` +
		`"status":"RESOURCE_EXHAUSTED"}}`
	geminiSpend = `{"error":{"code":429,"message":"You exceeded the spend-based rate limit of your tier.","status":"RESOURCE_EXHAUSTED"}}`

	anthropicRate  = `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your rate limit."}}`
	anthropicSpent = `{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`
	anthropicRamp  = `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's maximum usage ` +
		`increase rate for input tokens per minute. Please scale up your input tokens usage more gradually."}}`

	bedrockTokens = `{"message":"Too many tokens, please wait before trying again."}`
	azureDay      = `{"error":{"code":"429","message":"You have exceeded the token rate limit. Please retry after 86400 seconds."}}`
)

// refusalRows are the refusals of LLM providers that need more than a look at the status.
var refusalRows = []refusalRow{
	{"OpenRouter, money in flight", 402, "Retry-After: 3", inFlightBudget, httpthrottle.Wait, 3 * time.Second, "", 0},
	{"OpenRouter, money in flight, without a time", 402, "", inFlightBudget, httpthrottle.Wait, 0, "", 0},
	{"OpenRouter, this call", 402, "", weightAboveBudget, "", 0, "", 0},
	{"OpenRouter, credits", 402, "", `{"error":{"code":402,"metadata":{"limit_source":"openrouter_credits"}}}`, httpthrottle.Stop, 0, "", 0},
	{"OpenRouter, the key's limit", 402, "", `{"error":{"code":402,"metadata":{"limit_source":"openrouter_key_limit"}}}`, httpthrottle.Stop, 0, "", 0},
	{"Groq flex", 498, "", `{"error":{"type":"capacity_exceeded"}}`, httpthrottle.Overload, 0, "", 0},
	{"OpenAI, growth", 429, "Retry-After: 20", `{"error":{"code":"slow_down","type":"requests"}}`, httpthrottle.Wait, 20 * time.Second, "slow_down", 0},
	{"OpenAI, growth by its type", 429, "", `{"error":{"code":"rate_limit_exceeded","type":"slow_down"}}`, httpthrottle.Wait, 0, "slow_down", 0},
	{"a spent budget, and growth", 429, "", `{"error":{"code":"insufficient_quota","type":"slow_down"}}`, httpthrottle.Stop, 0, "insufficient_quota", 0},
	{"OpenAI, growth by 503", 503, "", `{"error":{"code":"slow_down"}}`, httpthrottle.Wait, 0, "slow_down", 0},
	{"Volcengine, growth", 429, "", `{"error":{"code":"LimitBurstRate"}}`, httpthrottle.Wait, 0, "limit_burst_rate", 0},
	{"Volcengine, growth, spelt otherwise", 429, "", `{"error":{"code":"limit_burst_rate"}}`, httpthrottle.Wait, 0, "limit_burst_rate", 0},
	{"Alibaba, growth", 429, "", `{"code":"Throttling.BurstRate","message":"x"}`, httpthrottle.Wait, 0, "limit_burst_rate", 0},
	{"Volcengine Ark, growth", 429, "", `{"error":{"code":"RequestBurstTooFast"}}`, httpthrottle.Wait, 0, "limit_burst_rate", 0},
	{"Anthropic, growth", 429, "", anthropicRamp, httpthrottle.Wait, 0, "acceleration_limit", 0},
	{
		"Anthropic, growth by its name", 429, "", `{"error":{"type":"rate_limit_error","message":"You hit an acceleration limit."}}`,
		httpthrottle.Wait, 0, "acceleration_limit", 0,
	},
	{
		"OpenAI, credits", 429, "", `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted"}}`,
		httpthrottle.Stop, 0, "credit_balance_exhausted", 0,
	},
	{"OpenAI, overloaded", 503, "", `{"error":{"code":"server_is_overloaded"}}`, httpthrottle.Overload, 0, "", 0},
	{"Anthropic, spend", 429, "", anthropicSpent, httpthrottle.Stop, 0, "enforced_spend_limit_reached", 0},
	{"Anthropic, without a time", 429, "", anthropicRate, httpthrottle.Wait, 0, "", 0},
	{"Anthropic, overloaded", 529, "", `{"type":"error","error":{"type":"overloaded_error"}}`, httpthrottle.Overload, 0, "", 0},
	{"Gemini, spend in 10 minutes", 429, "", geminiSpend, httpthrottle.Wait, 0, "", 10 * time.Minute},
	{"Gemini, a day", 429, "", geminiOfADay, httpthrottle.Stop, 22 * time.Hour, "", 0},
	{"Gemini's OpenAI API, a day", 429, "", "[" + geminiOfADay + "]", httpthrottle.Stop, 22 * time.Hour, "", 0},
	{"Vertex AI, a day", 429, "", vertexOfADay, httpthrottle.Stop, 22 * time.Hour, "", 0},
	{"Gemini, a minute", 429, "", geminiOfAMinute, httpthrottle.Wait, 22 * time.Second, "", 0},
	{"Gemini, a limit of 0", 429, "", geminiOfZero, httpthrottle.Stop, 0, "", 0},
	{"Gemini, 402", 402, "", `{"error":{"code":402,"message":"x"}}`, httpthrottle.Stop, 0, "", 0},
	{"Bedrock, tokens", 429, "X-Amzn-Errortype: ThrottlingException", bedrockTokens, httpthrottle.Wait, 0, "", 0},
	{"Bedrock, tokens by 400", 400, "X-Amzn-Errortype: ThrottlingException", bedrockTokens, httpthrottle.Wait, 0, "", 0},
	{
		"Bedrock, tokens of a day", 429, "X-Amzn-Errortype: ThrottlingException",
		`{"message":"Too many tokens per day, please wait before trying again."}`, httpthrottle.Stop, 0, "tokens_per_day", 0,
	},
	{"Bedrock, unavailable", 503, "X-Amzn-Errortype: ServiceUnavailableException", `{"message":"x"}`, httpthrottle.Overload, 0, "", 0},
	{"Bedrock, 529", 529, "", `{"message":"x"}`, httpthrottle.Overload, 0, "", 0},
	{"Azure, a day", 429, "Retry-After: 86400", `{"error":{"code":"429","message":"x"}}`, httpthrottle.Stop, 24 * time.Hour, "", 0},
	{"Azure, a day in the text", 429, "", azureDay, httpthrottle.Stop, 24 * time.Hour, "", 0},
	{"a wait of an hour", 429, "Retry-After: 3600", `{"error":{"code":"rate_limit_exceeded"}}`, httpthrottle.Wait, time.Hour, "", 0},
	{"a wait of a bit more", 429, "Retry-After: 3601", `{"error":{"code":"rate_limit_exceeded"}}`, httpthrottle.Stop, time.Hour + time.Second, "", 0},
}

// nearMisses are answers with the words of refusalRows, in a place or with a status where they mean something else.
var nearMisses = []refusalRow{
	{"a prompt that is quoted", 400, "", `{"error":{"message":"Invalid prompt: 'slow_down, limit: 0, spend-based rate limit'"}}`, "", 0, "", 0},
	{"a refusal in a prompt that is quoted", 400, "", passedOnBy("Invalid prompt: ", geminiOfADay), "", 0, "", 0},
	{"money in flight, at 400", 400, "", inFlightBudget, "", 0, "", 0},
	{"money in flight, at 401", 401, "", inFlightBudget, "", 0, "", 0},
	{"money in flight, quoted in a 402", 402, "", `{"error":{"message":"No credits for 'openrouter_in_flight_budget'"}}`, httpthrottle.Stop, 0, "", 0},
	{"a call above the budget, quoted in a 402", 402, "", `{"error":{"message":"No credits for 'weight_exceeds_budget'"}}`, httpthrottle.Stop, 0, "", 0},
	{"a call above the budget, at 429", 429, "", weightAboveBudget, httpthrottle.Wait, 0, "", 0},
	{"a quota of a day, at 400", 400, "", otherFault(geminiOfADay, 400, "INVALID_ARGUMENT"), "", 0, "", 0},
	{"a quota of a day, in words", 429, "", `{"error":{"message":"Summarize 'GenerateRequestsPerDay'","code":"x"}}`, httpthrottle.Wait, 0, "x", 0},
	{"a quota of a day, overloaded", 503, "", otherFault(geminiOfADay, 503, "UNAVAILABLE"), httpthrottle.Overload, 22 * time.Second, "", 0},
	{"a growth limit, in words", 429, "", `{"error":{"message":"Summarize 'slow_down'","code":"x"}}`, httpthrottle.Wait, 0, "x", 0},
	{"a sentence", 429, "", `{"error":{"code":"x"},"detail":"slow down"}`, httpthrottle.Wait, 0, "x", 0},
	{"a spend limit, in words of a 400", 400, "", `{"error":{"message":"Define enforced_spend_limit_reached","code":"x"}}`, "", 0, "", 0},
	{"a limit that isn't 0", 429, "", `{"error":{"message":"limit: 0.5, limit: 07, limit: 10","code":"x"}}`, httpthrottle.Wait, 0, "x", 0},
	{"another rate limit of Gemini", 429, "", `{"error":{"message":"a request-based rate limit","code":"x"}}`, httpthrottle.Wait, 0, "x", 0},
	{"tokens, at 400", 400, "", bedrockTokens, "", 0, "", 0},
	{"an overload that lasts", 503, "Retry-After: 86400", `{"error":{"code":"server_is_overloaded"}}`, httpthrottle.Overload, 24 * time.Hour, "", 0},
	{"a limit of 0, at 404", 404, "", geminiOfZero, "", 0, "", 0},
	{"496", 496, "", `{}`, "", 0, "", 0},
}

// otherFault returns a body of Google with another status.
func otherFault(body string, code int, status string) string {
	return strings.NewReplacer("429", strconv.Itoa(code), "RESOURCE_EXHAUSTED", status).Replace(body)
}

// passedOnBy returns the body of a gateway whose text holds an answer.
func passedOnBy(text, body string) string {
	return fmt.Sprintf(`{"error":{"message":%s,"type":"None","param":null,"code":"400"}}`, quoted(text+body))
}

// gateways put the body of the service behind them into theirs.
var gateways = map[string]func(status int, body string) string{
	"": func(_ int, body string) string { return body },
	"LiteLLM": func(status int, body string) string {
		text := "litellm.RateLimitError: RateLimitError: XException - " + body + ". Received Model Group=x\nAvailable Model Group Fallbacks=None"
		return strings.ReplaceAll(passedOnBy(text, ""), `"code":"400"`, fmt.Sprintf(`"code":"%d"`, status))
	},
	"OpenRouter": func(status int, body string) string {
		return fmt.Sprintf(`{"error":{"message":"Provider returned error","code":%d,"metadata":{"raw":%s,"provider_name":"x"}}}`, status, quoted(body))
	},
	"LiteLLM before OpenRouter": func(status int, body string) string {
		raw := fmt.Sprintf(`{"error":{"message":"Provider returned error","code":%d,"metadata":{"raw":%s}}}`, status, quoted(body))
		return passedOnBy("litellm.APIError: APIError: OpenrouterException - ", raw)
	},
	"two of LiteLLM": func(_ int, body string) string {
		return passedOnBy("litellm.APIError: ", passedOnBy("litellm.APIError: APIError: XException - ", body))
	},
	"a client in Python": func(_ int, body string) string {
		return fmt.Sprintf(`{"detail":%s}`, quoted("Error code: 4xx - "+strings.ReplaceAll(body, `"`, `'`)))
	},
}

func (row refusalRow) check(t *testing.T, body string, codes bool) {
	t.Helper()
	for name, classify := range llmClassifiers {
		r, refused := classify(httpthrottle.Answer{Status: row.status, Header: header(row.header), Body: []byte(body), At: came})
		require.Equal(t, row.class != "", refused, name)
		require.Equal(t, row.class, r.Class, name)
		require.Equal(t, row.after, r.RetryAfter, name)
		require.Equal(t, row.backoff, r.MaxBackoff, name)
		require.Equal(t, refused, r.NotProcessed, name)
		if codes && row.code != "" {
			require.Equal(t, row.code, r.Code, name)
		}
	}
}

// Every classifier for LLMs knows every provider's refusals, also those that a gateway passes on.
func TestRefusalsOfLLMs(t *testing.T) {
	for _, row := range refusalRows {
		for gateway, wrap := range gateways {
			t.Run(row.name+" "+gateway, func(t *testing.T) {
				if gateway == "a client in Python" && row.after == 22*time.Second {
					t.Skip("such a text has no fields with times")
				}
				row.check(t, wrap(row.status, row.body), gateway != "a client in Python" || row.class == httpthrottle.Wait)
			})
		}
	}
	for _, row := range nearMisses {
		t.Run("not "+row.name, func(t *testing.T) {
			row.check(t, row.body, true)
		})
	}
}

// A gateway that answers with a status of its own passes on refusals as well, if they stand where the answers behind it do.
func TestRefusalsBehindOtherStatuses(t *testing.T) {
	overloaded, rate := `{"type":"error","error":{"type":"overloaded_error"}}`, `{"error":{"code":"rate_limit_exceeded"}}`
	spent := `{"error":{"code":"insufficient_quota"}}`
	for _, tc := range []struct {
		name, gateway, body string
		status              int
		class               httpthrottle.Class
	}{
		{"an overload by 500", "LiteLLM", overloaded, 500, httpthrottle.Overload},
		{"an overload by 502", "OpenRouter", overloaded, 502, httpthrottle.Overload},
		{"a rate by 503", "OpenRouter", rate, 503, httpthrottle.Wait},
		{"a rate by 400", "OpenRouter", rate, 400, httpthrottle.Wait},
		{"a rate by 502", "LiteLLM before OpenRouter", rate, 502, httpthrottle.Wait},
		{"a rate by 502, behind two", "two of LiteLLM", rate, 502, httpthrottle.Wait},
		{"a budget by 502", "OpenRouter", spent, 502, httpthrottle.Stop},
		{"a text of a 400, which may be the prompt", "LiteLLM", rate, 400, ""},
		{"a rate by 404", "OpenRouter", rate, 404, ""},
		{"another fault by 502", "OpenRouter", `{"error":{"message":"rate_limit_exceeded","code":"x"}}`, 502, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := gateways[tc.gateway](tc.status, tc.body)
			refusalRow{status: tc.status, class: tc.class}.check(t, body, false)
			g, refused := httpthrottle.Generic(httpthrottle.Answer{Status: tc.status, Header: header(""), Body: []byte(body), At: came})
			require.Equal(t, tc.status == 503, refused, "Generic looks at no gateways")
			require.NotEqual(t, httpthrottle.Wait, g.Class)
		})
	}
}

// The other calls are held back for as long.
func TestPauseWithALongBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for longest, want := range map[time.Duration]time.Duration{0: 5 * time.Minute, time.Hour: 10 * time.Minute} {
			p := &httpthrottle.Pause{Max: longest}
			for range 20 {
				p.Refused(t.Context(), httpthrottle.Refusal{Class: httpthrottle.Wait, MaxBackoff: 10 * time.Minute, Sent: time.Now(), At: time.Now()})
			}
			require.Equal(t, want, p.Paused(""))
		}
	})
}
