package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// post sends a body without a network. used is the usage of the call, if not zero.
func post(s *Server, path, body string, used Usage) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if text, err := json.Marshal(used); err == nil && used != (Usage{}) {
		r.Header.Set(UsageHeader, string(text))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// chatOf is a chat with a prompt of so many bytes.
func chatOf(bytes, longest int) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, longest, strings.Repeat("a", bytes))
}

// What each provider charges at arrival and in the end, of calls whose usage is given.
func TestProfiles(t *testing.T) {
	claude := Usage{Input: 50, CacheWrite: 1000, CacheRead: 200_000, Output: 300}
	burning := Usage{Input: 3000, Output: 1000, CacheRead: 4000, CacheWrite: 1000}
	cached := Usage{Input: 80, CacheRead: 1920, Output: 300}
	gemini := Usage{Input: 240, CacheRead: 800, ToolUse: 40, Output: 160, Reasoning: 60}
	for _, c := range []struct {
		name            string
		config          Config
		bytes, longest  int
		used            Usage
		arrived, charge Amounts
	}{
		{
			"anthropic",
			Config{Provider: Anthropic},
			8000, 64_000, claude,
			Amounts{1, 1050, 0, 265_050},
			Amounts{1, 1050, 300, 201_350},
		},
		{
			"anthropic, counted",
			Config{Provider: Anthropic, CachedInput: Counted},
			8000, 64_000, claude,
			Amounts{1, 201_050, 0, 265_050},
			Amounts{1, 201_050, 300, 201_350},
		},
		{
			"anthropic, cache missed at arrival",
			Config{Provider: Anthropic, CacheMissedAtArrival: true},
			8000, 64_000, claude,
			Amounts{1, 201_050, 0, 265_050},
			Amounts{1, 1050, 300, 201_350},
		},
		{"openai", Config{}, 8000, 500, cached, Amounts{1, 0, 0, 2000}, Amounts{1, 0, 0, 2000}},
		{"openai, long", Config{}, 8000, 4000, cached, Amounts{1, 0, 0, 4000}, Amounts{1, 0, 0, 4000}},
		{"azure", Config{Provider: Azure}, 8000, 500, cached, Amounts{1, 0, 0, 2500}, Amounts{1, 0, 0, 2500}},
		{"azure, long", Config{Provider: Azure}, 8000, 4000, cached, Amounts{1, 0, 0, 6000}, Amounts{1, 0, 0, 6000}},
		{"bedrock, 1", Config{Provider: Bedrock}, 80, 32_000, burning, Amounts{1, 0, 0, 36_000}, Amounts{1, 0, 0, 5000}},
		{"bedrock, 5", Config{Provider: Bedrock, OutputWeight: 5}, 80, 32_000, burning, Amounts{1, 0, 0, 36_000}, Amounts{1, 0, 0, 9000}},
		{"bedrock, 10", Config{Provider: Bedrock, OutputWeight: 10}, 80, 32_000, burning, Amounts{1, 0, 0, 36_000}, Amounts{1, 0, 0, 14_000}},
		{"bedrock, 15", Config{Provider: Bedrock, OutputWeight: 15}, 80, 32_000, burning, Amounts{1, 0, 0, 36_000}, Amounts{1, 0, 0, 19_000}},
		{
			"bedrock-mantle",
			Config{Provider: BedrockMantle},
			80, 2000,
			Usage{Input: 3000, CacheRead: 1000, Output: 400},
			Amounts{1, 5000, 0, 0},
			Amounts{1, 3400, 400, 0},
		},
		{"gemini", Config{Provider: Gemini}, 80, 500, gemini, Amounts{1, 1040, 0, 1040}, Amounts{1, 1040, 160, 1040}},
		{"gemini, free", Config{Provider: Gemini, CachedInput: Free}, 80, 500, gemini, Amounts{1, 240, 0, 240}, Amounts{1, 240, 160, 240}},
		{"groq", Config{Provider: Groq}, 80, 100, Usage{Input: 104, CacheRead: 896, Output: 10}, Amounts{1, 104, 0, 204}, Amounts{1, 104, 10, 114}},
		{"self-hosted", Config{Provider: SelfHosted}, 80, 500, burning, Amounts{1, 8000, 0, 8500}, Amounts{1, 8000, 1000, 9000}},
		{"self-hosted, free", Config{Provider: SelfHosted, CachedInput: Free}, 80, 500, burning, Amounts{1, 4000, 0, 4500}, Amounts{1, 4000, 1000, 5000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustNew(t, c.config)
			require.Equal(t, http.StatusOK, post(s, "/v1/chat/completions", chatOf(c.bytes, c.longest), c.used).Code)
			first := s.Charges()[0]
			arrived := Charge{first.At, c.arrived.Requests, c.arrived.Tokens, c.arrived.Input, c.arrived.Output}
			require.Equal(t, arrived, first)
			require.Equal(t, c.charge, s.Stats().Charged)
			require.Equal(t, c.used, s.Stats().Usage)
			for _, l := range allLimits {
				require.Equal(t, c.charge.Of(l), SumOf(l, s.Charges(), first.At, time.Now().Add(time.Hour)))
			}
		})
	}
}

// Each limit refuses the first call that is above it, with the provider's refusal, and serves it as soon as it was told to come back.
func TestEachLimitRefusesWhenItShould(t *testing.T) {
	used := Usage{Input: 100, Output: 50} // of a call with 400 bytes and a maximum of 80
	for _, c := range []struct {
		config Config
		served int           // at once
		after  time.Duration // until the next is
		why    Limit
		header string
		body   string
	}{
		{Config{Provider: OpenAI, TokensPerMinute: 6000, Slice: 10 * time.Second}, 10, time.Second, Tokens, "Retry-After-Ms", `"type":"tokens"`},
		{Config{Provider: OpenAI, RequestsPerDay: 8640, DaySlice: time.Minute}, 6, 20 * time.Second, RequestsDay, "Retry-After", `on requests per day`},
		{Config{Provider: Azure, TokensPerMinute: 10_800, Slice: 10 * time.Second}, 10, time.Second, Tokens, "Retry-After", `"code":"429"`},
		{Config{Provider: Azure, TokensPerDay: 1800}, 10, 144 * time.Minute, TokensDay, "Retry-After", `tokens rate limit`},
		{
			Config{Provider: Anthropic, InputTokensPerMinute: 6000, Slice: 10 * time.Second},
			10, time.Second, InputTokens, "Retry-After",
			"6000 input tokens per minute",
		},
		{
			Config{Provider: Anthropic, OutputTokensPerMinute: 3000, Slice: 10 * time.Second},
			10, 20 * time.Millisecond, OutputTokens, "Retry-After",
			"3000 output tokens",
		},
		{Config{Provider: Gemini, InputTokensPerMinute: 6000, Slice: 10 * time.Second}, 10, time.Second, InputTokens, "", `"retryDelay":"1s"`},
		{Config{Provider: Gemini, RequestsPerDay: 7}, 7, 8 * time.Hour, RequestsDay, "", `"quotaId":"GenerateRequestsPerDayPerProjectPerModel"`},
		{
			Config{Provider: Bedrock, TokensPerMinute: 12_000, OutputWeight: 2, Slice: 10 * time.Second},
			10, 900 * time.Millisecond, Tokens, "",
			"Too many tokens, please wait",
		},
		{Config{Provider: Bedrock, TokensPerDay: 1500}, 9, 1728 * time.Second, TokensDay, "", "Too many tokens per day"},
		{
			Config{Provider: BedrockMantle, InputTokensPerMinute: 9000, Slice: 10 * time.Second},
			9, 200 * time.Millisecond, InputTokens, "",
			"input tokens per min",
		},
		{Config{Provider: Groq, TokensPerMinute: 9000, Slice: 10 * time.Second}, 9, 200 * time.Millisecond, Tokens, "Retry-After", "on tokens per min"},
		{Config{Provider: Groq, RequestsPerDay: 10}, 10, 144 * time.Minute, RequestsDay, "Retry-After", `on requests per day`},
		{Config{Provider: SelfHosted, OutputTokensPerMinute: 3000, Slice: 10 * time.Second}, 10, 20 * time.Millisecond, OutputTokens, "", "too many requests"},
	} {
		t.Run(fmt.Sprint(c.config.Provider, " ", c.why), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock begins at midnight UTC, which is 16:00 in Los Angeles
				s := mustNew(t, c.config)
				send := func() *httptest.ResponseRecorder { return post(s, "/v1/chat/completions", chatOf(400, 80), used) }
				for range c.served {
					require.Equal(t, http.StatusOK, send().Code)
				}
				w := send()
				require.Equal(t, http.StatusTooManyRequests, w.Code)
				require.Contains(t, w.Body.String(), c.body)
				if c.header != "" {
					require.NotEmpty(t, w.Header().Get(c.header))
				} else {
					require.Empty(t, w.Header().Get("Retry-After"))
				}
				st := s.Stats()
				require.Equal(t, 1, *refusals(&st, c.why))
				require.Equal(t, 1, st.Refused())
				if c.config.Provider != OpenAI { // which counts what it refuses
					time.Sleep(c.after - c.after/1000)
					require.Equal(t, http.StatusTooManyRequests, send().Code)
					time.Sleep(c.after / 1000)
				} else {
					time.Sleep(c.after)
				}
				require.Equal(t, http.StatusOK, send().Code)
			})
		})
	}
}

// Calls that OpenAI refuses count as requests of the day, too, and never of tokens.
func TestRefusedCallsOfADay(t *testing.T) {
	s := mustNew(t, Config{RequestsPerDay: 8640, DaySlice: time.Minute, TokensPerMinute: 1_000_000})
	for range 6 + 3 {
		post(s, "/v1/chat/completions", chatOf(400, 80), Usage{})
	}
	require.Less(t, s.guards[1].bucket.level, -2.9)
	require.Equal(t, Amounts{Requests: 6, Tokens: 600}, s.Stats().Charged)
}

// The headers of each provider, of the first call of 400 bytes with a maximum of 80.
func TestHeadersOfEachProvider(t *testing.T) {
	const limit, remaining, reset = "X-Ratelimit-Limit-", "X-Ratelimit-Remaining-", "X-Ratelimit-Reset-"
	const claude = "Anthropic-Ratelimit-"
	for _, c := range []struct {
		name   string
		config Config
		want   map[string]string
		absent []string
	}{
		{"openai, a day", Config{RequestsPerDay: 10_000}, map[string]string{
			limit + "Requests": "10000", remaining + "Requests": "9999", reset + "Requests": "8.64s",
		}, []string{limit + "Tokens"}},
		{"openai, a minute", Config{RequestsPerDay: 10_000, RequestsPerMinute: 60, TokensPerMinute: 200_000}, map[string]string{
			limit + "Requests": "60", remaining + "Requests": "59", reset + "Requests": "1s",
			limit + "Tokens": "200000", remaining + "Tokens": "199900", reset + "Tokens": "30ms",
		}, nil},
		{"azure, a slice", Config{Provider: Azure, RequestsPerMinute: 120, TokensPerMinute: 60_000, Slice: 10 * time.Second}, map[string]string{
			limit + "Requests": "20", remaining + "Requests": "19", reset + "Requests": "1",
			limit + "Tokens": "60000", remaining + "Tokens": "9820", reset + "Tokens": "1",
		}, nil},
		{"groq", Config{Provider: Groq, RequestsPerDay: 14_400, RequestsPerMinute: 30, TokensPerMinute: 18_000}, map[string]string{
			limit + "Requests": "14400", remaining + "Requests": "14399", reset + "Requests": "6s",
			limit + "Tokens": "18000", remaining + "Tokens": "17820", reset + "Tokens": "600ms",
		}, nil},
		{"anthropic", Config{Provider: Anthropic, RequestsPerMinute: 60, InputTokensPerMinute: 400_000, OutputTokensPerMinute: 80_000}, map[string]string{
			claude + "Input-Tokens-Limit": "400000", claude + "Input-Tokens-Remaining": "400000", claude + "Output-Tokens-Limit": "80000",
			claude + "Tokens-Limit": "480000", claude + "Tokens-Remaining": "480000", claude + "Requests-Remaining": "59",
			claude + "Requests-Reset": "2000-01-01T00:00:01Z",
		}, []string{limit + "Requests"}},
		{"anthropic, one of both", Config{Provider: Anthropic, InputTokensPerMinute: 60_000, Slice: time.Second}, map[string]string{
			claude + "Input-Tokens-Limit": "60000", claude + "Input-Tokens-Remaining": "1000",
		}, []string{claude + "Tokens-Limit", claude + "Output-Tokens-Limit"}},
		{"gemini", Config{Provider: Gemini, RequestsPerMinute: 60, InputTokensPerMinute: 400_000}, nil, []string{limit + "Requests", limit + "Tokens"}},
		{"bedrock", Config{Provider: Bedrock, RequestsPerMinute: 60, TokensPerMinute: 400_000}, nil, []string{limit + "Requests", limit + "Tokens"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := post(mustNew(t, c.config), "/v1/chat/completions", chatOf(400, 80), Usage{}).Header()
				for name, value := range c.want {
					require.Equal(t, value, h.Get(name), name)
				}
				for _, name := range c.absent {
					require.Empty(t, h.Get(name), name)
				}
			})
		})
	}
}

// A limit that a provider does not have is a fault of the Config, and so is each number out of bounds.
func TestFaultsOfTheProfiles(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{OutputTokensPerMinute: 1}, "limit on output is 1, allowed: 0; openai has limits on [requests tokens requests-day tokens-day]"},
		{Config{Provider: BedrockMantle, RequestsPerMinute: 1}, "limit on requests is 1, allowed: 0; bedrock-mantle has limits on [input output]"},
		{Config{Provider: Anthropic, TokensPerDay: 1}, "limit on tokens-day is 1"},
		{Config{CachedInput: "half"}, "cached input is half, allowed: free or counted"},
		{Config{CachedShare: 1.5}, "cached share is 1.5, allowed: 0 to 1"},
		{Config{DayZone: "Moon"}, "day zone is Moon"},
		{Config{DaySlice: time.Millisecond}, "day slice is 1ms"},
		{Config{AnswerLeast: 2, AnswerMost: 1}, "answer tokens is 2 to 1"},
		{Config{Prices: Prices{CachedInput: "-1"}}, "price cachedInput is -1"},
		{Config{OutputWeight: -1}, "output weight is -1"},
	} {
		_, err := New(c.config)
		require.ErrorContains(t, err, c.want)
	}
}
