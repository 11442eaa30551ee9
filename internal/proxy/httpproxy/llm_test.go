package httpproxy

import (
	"crypto/rand"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A body is read once, whatever rules there are.
func TestABodyIsReadOnce(t *testing.T) {
	const body = `{"model":"a","user":{"id":7},"max_tokens":5,"prompt":"hello"}`
	req, err := http.NewRequest(http.MethodPost, "http://h/v1/chat", http.NoBody)
	require.NoError(t, err)
	m := &message{req: req, body: []byte(body), whole: true, estimates: true}
	m.paths = []costrule.Path{{"model"}, {"user", "id"}}
	first := m.facts()
	v, ok, _ := m.field(costrule.Path{"user", "id"})
	require.True(t, ok)
	require.Equal(t, "7", v.Text())
	c, err := llmCall(m)
	require.NoError(t, err)
	require.Equal(t, prompt.Size{Bytes: 5, Chars: 5, Inputs: 1, Answer: 5, Model: "a"}, c.Size)
	require.Same(t, first, m.facts())
}

// settled returns what the limits of a proxy were charged, from its page of metrics.
func settled(t *testing.T, at string) map[string]string {
	t.Helper()
	_, page := send(t, http.MethodGet, "http://"+at+"/metrics", "")
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^numathrottle_tokens_settled_total\{limit="p([^"]*)"\} (\S+)$`).FindAllStringSubmatch(page, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// ofAccount returns settings whose limits are those of an account.
func ofAccount(t *testing.T, url string) (c Config, health string) {
	t.Helper()
	health = testenv.ClosedPort(t)
	c.Upstream = url
	c.Limits.Pool = numathrottle.Config{Store: "memory://" + rand.Text(), Pool: "p", ID: "i", HealthAddr: health}
	return c, health
}

// Limits of an LLM need neither a cost nor max; each counts as its provider does, a refused call once for each attempt, and by its usage in the end.
func TestLimitsOfAnAccount(t *testing.T) {
	u := serve(t, refusing(1, func(w http.ResponseWriter, _ testkit.Request, _ int) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":50,"cache_read_input_tokens":900,"output_tokens":30}}`)
	}))
	c, health := ofAccount(t, u.URL)
	c.Provider, c.Limits.RequestsPerMinute = profile.Anthropic, 600_000
	c.LLM.InputTokensPerMinute, c.LLM.OutputTokensPerMinute = 60_000_000, 60_000_000
	c.Prices = map[string]account.Price{"m": {Input: "1", Output: "10", CachedInput: "0.1"}}
	c.Budget = account.Budget{Amount: "5"}
	p := start(t, c)
	asked := `{"model":"m","max_tokens":80,"messages":[{"role":"user","content":"` + strings.Repeat("x", 400) + `"}]}`
	res, text := send(t, http.MethodPost, p.url+"/v1/messages", asked)
	require.Equal(t, 200, res.StatusCode, text)
	require.Eventually(t, func() bool { return settled(t, health)["/input"] == "150" }, 5*time.Second, 10*time.Millisecond, "100 drawn for the refused one")
	require.Equal(t, map[string]string{"/requests": "2", "/input": "150", "/output": "110", "/money": "440"}, settled(t, health))
}

// A long body that comes in chunks counts whole, also where its answer has no usage.
func TestLongBodiesOfAnAccount(t *testing.T) {
	u := serve(t, hello)
	c, health := ofAccount(t, u.URL)
	c.LLM.InputTokensPerMinute, c.BodyBuffer = 600_000_000, 1000
	p := start(t, c)
	post(t, p.url+"/v1/x", `{"prompt":"`+strings.Repeat("x", 400_000)+`"}`, true)
	require.Eventually(t, func() bool { return settled(t, health)["/input"] == "100000" }, 5*time.Second, 10*time.Millisecond, "%v", settled(t, health))
}

// With nothing but a provider and limits on requests, each text of a call for embeddings is a request where the provider counts so.
func TestAProviderAloneIsAnLLM(t *testing.T) {
	for provider, want := range map[profile.Name]bool{profile.Cohere: true, profile.Generic: false, "": false, profile.SelfHosted: false} {
		c := Config{Provider: provider}
		c.Limits.RequestsPerMinute = 5
		require.Equal(t, want, c.isLLM(), provider)
		c.Limits.Pool.Limit.Max = 5
		require.False(t, c.isLLM(), "max counts requests, as before")
		c.Cost = costLLM
		require.True(t, c.isLLM())
		c.Cost = "1"
		require.False(t, c.isLLM())
	}
}
