package clienttest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/llm"
)

// tokens are counts by a label.
type tokens = map[string]int

// Each library's calls are charged as the provider counts them, compressed or not, and what they used is counted.
func TestCharges(t *testing.T) {
	usage := tokens{"input": 50, "cache_write": 20, "cache_read": 100, "output": 30}
	embedded := tokens{"input": 170}
	noWrites := tokens{"input": 70, "cache_read": 100, "output": 30} // Gemini reports none
	byLongest := tokens{"acct/requests": 1, "acct/tokens": longest}
	byUsage := tokens{"acct/requests": 1, "acct/tokens": 200}
	inputOnly := tokens{"acct/requests": 1, "acct/input": 170}
	apart := tokens{"acct/requests": 1, "acct/input": 70, "acct/output": 30}
	for _, c := range []struct {
		call, provider string
		settled, used  tokens
	}{
		{"openai-go chat", "openai", byLongest, usage},
		{"openai-go chat", "self-hosted", byUsage, usage},
		{"openai-go chat, streamed", "openai", byLongest, usage},
		{"openai-go chat, streamed", "self-hosted", byUsage, usage},
		{"openai-go response", "openai", byLongest, usage},
		{"openai-go response", "self-hosted", byUsage, usage},
		{"openai-go response, stream", "openai", byLongest, usage},
		{"openai-go response, stream", "self-hosted", byUsage, usage},
		{"openai-go embeddings", "openai", tokens{"acct/requests": 1, "acct/tokens": 16}, embedded},
		{"openai-go embeddings", "self-hosted", tokens{"acct/requests": 1, "acct/tokens": 170}, embedded},
		{"langchaingo chat", "openai", byLongest, usage},
		{"langchaingo chat", "self-hosted", byUsage, usage},
		{"langchaingo chat, streamed", "openai", byLongest, usage},
		{"langchaingo chat, streamed", "self-hosted", byUsage, usage},
		{"langchaingo embeddings", "self-hosted", tokens{"acct/requests": 1, "acct/tokens": 170}, embedded},
		{"anthropic-sdk-go", "anthropic", apart, usage},
		{"anthropic-sdk-go, streamed", "anthropic", apart, usage},
		{"genai", "gemini", inputOnly, noWrites},
		{"genai, streamed", "gemini", inputOnly, noWrites},
		{"genai embeddings", "gemini", tokens{"acct/requests": 3, "acct/input": 16}, tokens{}}, // without a usage: as drawn
	} {
		for _, compress := range []bool{false, true} {
			t.Run(c.call+" by "+c.provider+map[bool]string{true: " compressed"}[compress], func(t *testing.T) {
				p := newProvider(t)
				p.compress = compress
				server := httptest.NewServer(p)
				defer server.Close()
				a := open(t, llm.Config{Provider: c.provider})
				defer func() { require.NoError(t, a.Close()) }()
				text, err := calls[c.call](t.Context(), t, server.URL, &http.Client{Transport: a.Transport(nil)})
				require.NoError(t, err)
				if c.used["output"] > 0 {
					require.NotEmpty(t, text)
				}
				require.Equal(t, c.settled, a.sums(t, "numathrottle.tokens.settled", "limit"))
				require.Equal(t, c.used, a.sums(t, "llm.tokens", "kind"))
				if len(c.used) > 0 {
					require.Len(t, a.sums(t, "llm.tokens", "deployment"), 1)
					require.Contains(t, a.sums(t, "llm.tokens", "deployment"), "acct")
				}
			})
		}
	}
}
