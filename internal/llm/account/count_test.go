package account_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What one call counts for, by what its answer says.
func TestWhatOneCallCountsFor(t *testing.T) {
	const cached = `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":50,"cache_read_input_tokens":1000,"output_tokens":300}}`
	const none = `{"usage":{"completion_tokens":300}}`
	const three = `{"input":["a","b","c"]}`
	const most = 100_000_000
	long := `{"messages":[{"content":"` + strings.Repeat("x", 10_000) + `"}]}`
	main := account.Config{Main: true}
	main.Pool.Limit = throttle.Limit{Max: most}
	of := func(name profile.Name, c account.Config) account.Config {
		c.Provider = name
		return c
	}
	for name, tc := range map[string]struct {
		config             account.Config
		path, body, answer string
		want               map[string]int
	}{
		"no bound on the answer": {
			of(profile.Anthropic, account.Config{OutputTokensPerMinute: most}), "messages", long, cached, map[string]int{"/output": 300},
		},
		"texts as requests":    {of(profile.Gemini, account.Config{RequestsPerMinute: most}), "embed", three, `{}`, map[string]int{"/requests": 3}},
		"texts as one request": {of(profile.OpenAI, account.Config{RequestsPerMinute: most}), "embed", three, `{}`, map[string]int{"/requests": 1}},
		"texts, as is asked": {
			of(profile.OpenAI, account.Config{RequestsPerMinute: most, CountInputs: true}), "embed", three, `{}`, map[string]int{"/requests": 3},
		},
		"the main limit":           {of(profile.Anthropic, main), "messages", chat(400, 1000), cached, map[string]int{"": 350}},
		"no less than its text":    {of(profile.Anthropic, main), "messages", long, cached, map[string]int{"": 500}},
		"a usage without a prompt": {of(profile.SelfHosted, main), "chat", long, none, map[string]int{"": 2500 + 300}},
		"no usage, and no bound":   {of(profile.SelfHosted, main), "chat", long, `{}`, map[string]int{"": 2500 + account.DefaultOutputTokens}},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, tc.config)
			require.Equal(t, 200, callAt(t, l.Transport(always(http.StatusOK, tc.answer)), "http://llm/v1/"+tc.path, tc.body))
			require.Equal(t, tc.want, l.settled(t))
		})
	}
}

// A call that draws as much as a limit has fits, and one that draws more never does.
func TestWhatFitsIntoALimit(t *testing.T) {
	l := open(t, account.Config{Provider: profile.OpenAI, TokensPerMinute: 1000, InFlight: 4})
	for answer, want := range map[int64][]any{1000: {"", 0, 0}, 1001: {"tokensPerMinute", 1001, 1000}} {
		setting, tokens, most := l.TooLarge(&account.Call{Size: prompt.Size{Answer: answer}})
		require.Equal(t, want, []any{setting, tokens, most})
	}
}

// What calls have used is counted by kind, without those that they have not used.
func TestTokensByKind(t *testing.T) {
	l := open(t, account.Config{Provider: profile.SelfHosted, Name: "d"})
	call(t, l.Transport(always(http.StatusOK, openAIAnswer)), chat(8000, 500))
	require.Equal(t, map[string]int{"d input": 80, "d cache_read": 1920, "d output": 300}, l.sums(t, "llm.tokens"))
}

// A model without a price costs the most of each kind.
func TestTheDearestPrices(t *testing.T) {
	const hour = `{"usage":{"input_tokens":7,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":300,` +
		`"ephemeral_1h_input_tokens":700},"cache_read_input_tokens":2000,"output_tokens":11}}`
	p, c := purse(t, t.Name(), map[string]account.Price{
		"a": {Input: "1", Output: "2", CachedInput: "3", CacheWrite: "4", CacheWrite1h: "5", PerCall: "6"},
		"b": {Input: "6", Output: "5", CachedInput: "4", CacheWrite: "3", CacheWrite1h: "2", PerCall: "1"},
	})
	c.Provider, c.Purse = profile.Anthropic, p
	l := open(t, c)
	require.Equal(t, 200, call(t, l.Transport(always(http.StatusOK, hour)), `{"model":"c","messages":[]}`))
	require.Equal(t, map[string]int{"/money": 7*6 + 11*5 + 2000*4 + 300*4 + 700*5 + 6_000_000}, l.settled(t))
}

// Models without a price are logged once each, so many at most, and not where nothing has one.
func TestModelsWithoutAPriceAreLogged(t *testing.T) {
	for want, prices := range map[int]map[string]account.Price{100: {"m": {Output: "1"}}, 0: {}} {
		var log bytes.Buffer
		c := account.Config{Purse: account.NewPurse(prices, nil, false, slog.New(slog.NewTextHandler(&log, nil)))}
		tr := openAs(t, c, fmt.Sprint(t.Name(), want)).Transport(always(http.StatusOK, `{}`))
		for i := range 2 * 102 {
			call(t, tr, fmt.Sprintf(`{"model":"other-%d"}`, i/2))
		}
		require.Equal(t, want, strings.Count(log.String(), "a model has no price"))
		require.Equal(t, min(want, 1), strings.Count(log.String(), "model=other-7\n"))
	}
}
