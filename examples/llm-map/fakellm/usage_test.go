package fakellm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The cost of usages by prices, to the millionth.
func TestCost(t *testing.T) {
	claude := Prices{Input: "4", Output: "20", CachedInput: "0.2", CacheWrite: "5"}
	for _, c := range []struct {
		name   string
		prices Prices
		calls  int
		used   Usage
		want   string
	}{
		{"four kinds", claude, 1, Usage{Input: 50, CacheWrite: 1000, CacheRead: 200_000, Output: 300}, "51200"},
		{"cached", Prices{Input: "2.5", Output: "10", CachedInput: "0.25"}, 1, Usage{Input: 80, CacheRead: 1920, Output: 300}, "3680"},
		{"missing ones cost as input", Prices{Input: "2"}, 3, Usage{Input: 1, CacheWrite: 10, CacheRead: 100, Output: 1000, CacheWrite1h: 5}, "2222"},
		{"an hour costs as a write", claude, 1, Usage{CacheWrite: 10, CacheWrite1h: 4}, "50"},
		{"an hour", Prices{Input: "4", CacheWrite: "5", CacheWrite1h: "8"}, 1, Usage{CacheWrite: 10, CacheWrite1h: 4}, "62"},
		{"a free kind", Prices{Input: "4", CachedInput: "0"}, 1, Usage{CacheRead: 1000}, "0"},
		{"per call", Prices{PerCall: "0.0125"}, 3, Usage{}, "37500"},
		{"fractions", Prices{Input: "0.1"}, 1, Usage{Input: 3}, "3/10"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.prices.Cost(c.calls, c.used).RatString()) })
	}
	p, err := ParsePrices(`{"input": 4, "cachedInput": 0.2}`)
	require.NoError(t, err)
	require.Equal(t, Prices{Input: "4", CachedInput: "0.2"}, p)
	_, err = ParsePrices(`{"input": []}`)
	require.ErrorContains(t, err, "prices are")
}

// Ten thousand calls cost ten thousand times as much.
func TestCostOfManyCalls(t *testing.T) {
	s := mustNew(t, Config{Prices: Prices{Input: "2.5", Output: "10", CachedInput: "0.25"}})
	for i := range 10_000 {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chatOf(8, 500)))
		r.Header.Set("Authorization", fmt.Sprintf("Bearer key %d", i%4/3))
		r.Header.Set(UsageHeader, `{"input": 80, "cache_read": 1920, "output": 300}`)
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, "9200000", s.CostOf("key 1").RatString(), "a quarter has it")
	require.Zero(t, s.CostOf("key 2").Sign())
	require.Equal(t, int64(36_800_000), s.Stats().Millionths)
	require.Equal(t, "36800000", s.Cost().RatString())
}

// What the prompts and answers of a configuration use.
func TestUsageByConfiguration(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		cached string // the header
		bytes  int
		want   Usage
	}{
		{"default", Config{AnswerLeast: 7, AnswerMost: 7}, "", 4000, Usage{Input: 1000, Output: 7}},
		{"at most the maximum", Config{AnswerLeast: 700, AnswerMost: 700}, "", 4000, Usage{Input: 1000, Output: 100}},
		{"ratio", Config{TokensPerByte: 0.5, AnswerMost: 1}, "", 4001, Usage{Input: 2001, Output: 1}},
		{
			"shares",
			Config{CachedShare: 0.5, WriteShare: 0.125, AnswerLeast: 1000, AnswerMost: 1000},
			"", 32_000,
			Usage{Input: 3000, CacheWrite: 1000, CacheRead: 4000, Output: 100},
		},
		{
			"nearly all cached",
			Config{CachedShare: 0.95, LongWrites: true, WriteShare: 1, AnswerMost: 1},
			"", 4000,
			Usage{CacheWrite: 50, CacheWrite1h: 50, CacheRead: 950, Output: 1},
		},
		{"header", Config{CachedShare: 0.5, AnswerMost: 1}, "0.95", 4000, Usage{Input: 50, CacheRead: 950, Output: 1}},
		{"header of none", Config{CachedShare: 0.5, AnswerMost: 1}, "0", 4000, Usage{Input: 1000, Output: 1}},
		{"a header that is wrong", Config{CachedShare: 0.5, AnswerMost: 1}, "2", 4000, Usage{Input: 500, CacheRead: 500, Output: 1}},
		{"thought", Config{ReasoningShare: 0.25, AnswerLeast: 80, AnswerMost: 80}, "", 4, Usage{Input: 1, Output: 80, Reasoning: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustNew(t, c.config)
			r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chatOf(c.bytes, 100)))
			r.Header.Set(CachedHeader, c.cached)
			s.ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, c.want, s.Stats().Usage)
		})
	}
}

// OpenAI and Azure count the characters of a prompt, the others its bytes.
func TestEstimateOfOtherWriting(t *testing.T) {
	body := fmt.Sprintf(`{"max_tokens":10,"messages":[{"content":%q}]}`, strings.Repeat("\u6f22", 4000))
	for provider, want := range map[Provider]Amounts{
		OpenAI: {1, 0, 0, 1000}, Azure: {1, 0, 0, 1010}, Anthropic: {1, 3000, 0, 3010}, Bedrock: {1, 0, 0, 3010}, BedrockMantle: {1, 3010, 0, 0},
	} {
		s := mustNew(t, Config{Provider: provider})
		require.Equal(t, http.StatusOK, post(s, "/v1/chat/completions", body, Usage{}).Code)
		first := s.Charges()[0]
		require.Equal(t, Charge{first.At, want.Requests, want.Tokens, want.Input, want.Output}, first)
		require.Equal(t, 3000, s.Stats().Usage.Input)
	}
}

// Answers and prompts differ within their bounds, always the same for a seed.
func TestSpread(t *testing.T) {
	lengths := func(seed uint64) (prompts, answers map[int]bool, log string) {
		prompts, answers = map[int]bool{}, map[int]bool{}
		for i := range 200 {
			s := mustNew(t, Config{Provider: Anthropic, Seed: seed, Spread: 0.1, AnswerLeast: 50, AnswerMost: 60})
			post(s, "/v1/chat/completions", fmt.Sprintf(`{"max_tokens":100,"messages":[{"content":"%4000d"}]}`, i), Usage{})
			u := s.Stats().Usage
			require.Equal(t, 1000, s.Charges()[0].Input, "the estimate is what prompts have in the mean")
			prompts[u.Input], answers[u.Output] = true, true
			log += fmt.Sprintln(u)
			require.GreaterOrEqual(t, u.Input, 900)
			require.LessOrEqual(t, u.Input, 1100)
		}
		return prompts, answers, log
	}
	prompts, answers, log := lengths(1)
	require.Greater(t, len(prompts), 100)
	require.Len(t, answers, 11, "50 to 60")
	_, _, again := lengths(1)
	require.Equal(t, log, again)
	_, _, other := lengths(2)
	require.NotEqual(t, log, other)
}

// Answers of Bedrock's newer endpoint end where the limit on output does, and cost no more.
func TestOutputStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, Config{Provider: BedrockMantle, OutputTokensPerMinute: 600, Slice: 10 * time.Second})
		send := func() *httptest.ResponseRecorder {
			return post(s, "/v1/chat/completions", chatOf(40, 90), Usage{Input: 10, Output: 70})
		}
		require.Contains(t, send().Body.String(), `"finish_reason":"stop"`)
		w := send()
		require.Contains(t, w.Body.String(), `"finish_reason":"length"`)
		require.Contains(t, w.Body.String(), `"completion_tokens":30`)
		require.Equal(t, http.StatusTooManyRequests, send().Code)
		require.Equal(t, 100, s.Stats().Charged.Output)
		require.Equal(t, 1, s.Stats().Stopped)
	})
}

// What a call uses above its charge is debt, which has to be earned first.
func TestDebtOfOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, Config{Provider: Anthropic, OutputTokensPerMinute: 600, Slice: 10 * time.Second})
		send := func() int {
			return post(s, "/v1/chat/completions", chatOf(40, 9000), Usage{Input: 10, Output: 1000}).Code
		}
		require.Equal(t, http.StatusOK, send())
		require.Equal(t, http.StatusTooManyRequests, send())
		time.Sleep(90 * time.Second)
		require.Equal(t, http.StatusTooManyRequests, send(), "900 of it are earned")
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, http.StatusOK, send())
	})
}

// The maximum of an answer has a name in each dialect, and counts for each of several answers.
func TestLongestAnswer(t *testing.T) {
	for path, cases := range map[string]map[string]int{
		"/v1/chat/completions": {
			`{"messages":[{"content":"aaaa"}]}`:                                           1024,
			`{"messages":[{"content":"aaaa"}],"max_tokens":70,"max_completion_tokens":9}`: 9,
			`{"messages":[{"content":"aaaa"}],"max_tokens":70,"n":3}`:                     210,
		},
		"/v1/responses":                     {`{"input":"aaaa","max_output_tokens":70}`: 70},
		"/v1/messages":                      {`{"messages":[{"content":"aaaa"}],"max_tokens":70}`: 70},
		"/v1beta/models/g:generateContent":  {`{"contents":[{"parts":[{"text":"aaaa"}]}],"generationConfig":{"maxOutputTokens":70,"candidateCount":2}}`: 140},
		"/model/c/converse":                 {`{"messages":[{"content":[{"text":"aaaa"}]}],"inferenceConfig":{"maxTokens":70}}`: 70},
		"/model/c/invoke":                   {`{"prompt":"aaaa","max_gen_len":70}`: 70, `{"inputText":"aaaa","textGenerationConfig":{"maxTokenCount":7}}`: 7},
		"/v1/embeddings":                    {`{"input":"aaaa","max_tokens":70}`: 0},
		"/openai/deployments/d/embeddings":  {`{"input":["aa","aa"]}`: 0},
		"/v1beta/models/e:embedContent":     {`{"content":{"parts":[{"text":"aaaa"}]}}`: 0},
		"/any/path/before/chat/completions": {`{"system":"aaa","messages":[{"role":"user","content":"a"}],"max_tokens":5}`: 5},
	} {
		for body, want := range cases {
			s := mustNew(t, Config{Provider: Azure})
			require.Equal(t, http.StatusOK, post(s, path, body, Usage{}).Code)
			require.Equal(t, 1+want, s.Charges()[0].Tokens, "%s %s", path, body)
		}
	}
}
