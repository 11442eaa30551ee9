package account_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
)

// An opened account has its limits, and reads its metrics.
type opened struct {
	*account.Limits
	reader *sdk.ManualReader
}

// open opens an account whose pool is "acct", in memory.
func open(t testing.TB, c account.Config) opened {
	t.Helper()
	return openAs(t, c, t.Name())
}

var outsideNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// openAs is open with a store of some name.
func openAs(t testing.TB, c account.Config, name string) opened {
	t.Helper()
	l := openOnly(t, c, name)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// openOnly is openAs for an account that its caller closes.
func openOnly(t testing.TB, c account.Config, name string) opened {
	t.Helper()
	reader := sdk.NewManualReader()
	c.Pool.Store, c.Pool.Pool, c.Pool.ID = "memory://"+outsideNames.ReplaceAllString(name, "-"), "acct", "one"
	c.Pool.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
	l, err := account.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return opened{l, reader}
}

// sums returns the counters of a name, by their labels.
func (o opened) sums(t testing.TB, name string) map[string]int {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(context.Background(), &all))
	found := map[string]int{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				var labels []string
				for _, kv := range p.Attributes.ToSlice() {
					labels = append(labels, kv.Value.String())
				}
				found[strings.Join(labels, " ")] = int(p.Value)
			}
		}
	}
	return found
}

// settled returns what the limits were charged, by the names of their pools without "acct".
func (o opened) settled(t testing.TB) map[string]int {
	t.Helper()
	found := map[string]int{}
	for name, n := range o.sums(t, "numathrottle.tokens.settled") {
		found[strings.TrimPrefix(name, "acct")] = n
	}
	return found
}

// answering serves an answer to every request.
func answering(t testing.TB, contentType, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// post makes a call, and reads its answer.
func post(t testing.TB, tr http.RoundTripper, url, body string) string {
	t.Helper()
	res, err := (&http.Client{Transport: tr}).Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(answer)
}

// chat is a request with a prompt of so many characters, and a longest answer; 0: none.
func chat(chars, most int) string {
	limit := ""
	if most > 0 {
		limit = fmt.Sprintf(`,"max_tokens":%d`, most)
	}
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]%s}`, strings.Repeat("a", chars), limit)
}

const (
	anthropicAnswer = `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":50,` +
		`"cache_creation_input_tokens":1000,"cache_read_input_tokens":200000,"output_tokens":300}}`
	openAIAnswer = `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2000,"completion_tokens":300,` +
		`"prompt_tokens_details":{"cached_tokens":1920}}}`
	converseAnswer = `{"output":{"message":{"content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":3000,"outputTokens":1000,` +
		`"cacheReadInputTokens":4000,"cacheWriteInputTokens":1000}}`
)

// What limits hold after one call, by the way of counting of each provider.
func TestWhatLimitsAreCharged(t *testing.T) {
	all := func(p profile.Name) account.Config {
		return account.Config{
			Provider: p, RequestsPerMinute: 1000, InputTokensPerMinute: 1_000_000, OutputTokensPerMinute: 1_000_000, TokensPerMinute: 1_000_000,
		}
	}
	with := func(c account.Config, change func(c *account.Config)) account.Config {
		change(&c)
		return c
	}
	for _, tc := range []struct {
		name         string
		config       account.Config
		body, answer string
		want         map[string]int
	}{
		{"1: Anthropic", all(profile.Anthropic), chat(100, 500), anthropicAnswer, map[string]int{"/input": 1050, "/output": 300, "/requests": 1}},
		{
			"2: cached input counts", with(all(profile.Anthropic), func(c *account.Config) { c.CachedInput = profile.CachedCounted }),
			chat(100, 500), anthropicAnswer,
			map[string]int{"/input": 201_050, "/output": 300},
		},
		{"4: OpenAI", all(profile.OpenAI), chat(8000, 500), openAIAnswer, map[string]int{"/tokens": 2000}},
		{"4: a longer answer", all(profile.OpenAI), chat(8000, 4000), openAIAnswer, map[string]int{"/tokens": 4000}},
		{"5: Azure", all(profile.Azure), chat(8000, 500), openAIAnswer, map[string]int{"/tokens": 2500}},
		{"5: a longer answer", all(profile.Azure), chat(8000, 4000), openAIAnswer, map[string]int{"/tokens": 6000}},
		{
			"6: Bedrock", with(all(profile.Bedrock), func(c *account.Config) { c.OutputWeight = 5 }), chat(100, 32_000),
			converseAnswer,
			map[string]int{"/tokens": 9000},
		},
		{
			"6: 15", with(all(profile.Bedrock), func(c *account.Config) { c.OutputWeight = 15 }), chat(100, 32_000),
			converseAnswer,
			map[string]int{"/tokens": 19_000},
		},
		{
			"7: mantle", all(profile.BedrockMantle), chat(100, 2000),
			`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4000,"completion_tokens":400,` +
				`"prompt_tokens_details":{"cached_tokens":1000}}}`,
			map[string]int{"/input": 3400, "/output": 400},
		},
		{
			"8: Gemini", all(profile.Gemini), chat(100, 500), `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],` +
				`"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":800,"candidatesTokenCount":100,"thoughtsTokenCount":60,` +
				`"toolUsePromptTokenCount":40}}`,
			map[string]int{"/input": 1040, "/output": 160},
		},
		{
			"9: Groq", all(profile.Groq), chat(100, 500),
			`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":10,` +
				`"prompt_tokens_details":{"cached_tokens":896}}}`,
			map[string]int{"/tokens": 114},
		},
		{
			"an answer without a usage", all(profile.Anthropic), chat(4000, 500), `{"type":"message"}`,
			map[string]int{"/input": 1000, "/output": 500, "/tokens": 1500},
		},
		{
			"a usage that cannot be", all(profile.Anthropic), chat(4000, 500),
			`{"type":"message","usage":{"input_tokens":1e12,"output_tokens":-5}}`,
			map[string]int{"/input": 1000, "/output": 500, "/tokens": 1500},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := open(t, tc.config)
			s := answering(t, "application/json", tc.answer)
			require.Equal(t, tc.answer, post(t, l.Transport(nil), s.URL+"/v1/messages", tc.body))
			got := l.settled(t)
			maps.DeleteFunc(got, func(name string, _ int) bool { _, wanted := tc.want[name]; return !wanted })
			require.Equal(t, tc.want, got)
		})
	}
}
