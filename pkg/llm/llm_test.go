package llm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/llm"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Each wrong value gives a line with its field, its value and what is allowed.
func TestWrongSettings(t *testing.T) {
	prices := map[string]llm.Price{"m": {Input: "1", Output: "1"}}
	for _, tc := range []struct {
		config            llm.Config
		field, value, can string
	}{
		{llm.Config{Provider: "opnai"}, "provider", "opnai", "anthropic"},
		{llm.Config{Provider: "gemini", Announced: true}, "max", "gemini announces no limits", "openai"},
		{llm.Config{RequestsPerMinute: -1}, "requestsPerMinute", "-1", "0 to 1000000000"},
		{llm.Config{InputTokensPerMinute: -2}, "inputTokensPerMinute", "-2", "0 to 1000000000"},
		{llm.Config{OutputTokensPerMinute: 2_000_000_000}, "outputTokensPerMinute", "2000000000", "0 to 1000000000"},
		{llm.Config{TokensPerMinute: -3}, "tokensPerMinute", "-3", "0 to 1000000000"},
		{llm.Config{InFlight: -4}, "inFlight", "-4", "0 to 1000000000"},
		{llm.Config{RequestsPerDay: llm.Day{Amount: -5}}, "requestsPerDay", "-5", "1 to 1000000000"},
		{llm.Config{TokensPerDay: llm.Day{Amount: 1, Reset: "noon"}}, "tokensPerDay", "noon", "rolling or midnight"},
		{llm.Config{TokensPerDay: llm.Day{Amount: 1, Reset: "midnight", Zone: "Mars/X"}}, "tokensPerDay", "Mars/X", "IANA"},
		{llm.Config{TokensPerDay: llm.Day{Amount: 1, Burst: -1}}, "tokensPerDay", "-1", "1 to 1000000000"},
		{llm.Config{Charge: "half"}, "charge", "half", "larger"},
		{llm.Config{CachedInput: "some"}, "cachedInput", "some", "free"},
		{llm.Config{OutputWeight: 1001}, "outputWeight", "1001", "1 to 1000"},
		{llm.Config{OutputWeight: -1}, "outputWeight", "-1", "1 to 1000"},
		{llm.Config{OutputTokens: -1}, "outputTokens", "-1", "1 to 1000000"},
		{llm.Config{ImageTokens: -1}, "imageTokens", "-1", "1 to 1000000"},
		{llm.Config{AudioBytesPerToken: -1}, "audioBytesPerToken", "-1", "1 to 1000000"},
		{llm.Config{FileBytesPerToken: -1}, "fileBytesPerToken", "-1", "1 to 1000000"},
		{llm.Config{Prices: map[string]llm.Price{"m": {Input: "-1", Output: "1"}}}, `prices."m".input`, "-1", "0 to 1000000"},
		{llm.Config{Prices: map[string]llm.Price{"m": {Input: "1"}}}, `prices."m".output`, "not set", "price"},
		{llm.Config{Prices: prices, Budget: llm.Budget{Amount: "x"}}, "budget.amount", "x", "0 to 1000000000"},
		{llm.Config{Prices: prices, Budget: llm.Budget{Amount: "1", Per: limit.Period("week")}}, "budget.per", "week", "day"},
		{llm.Config{Prices: prices, Budget: llm.Budget{Amount: "1", Zone: "Mars/X"}}, "budget.zone", "Mars/X", "IANA"},
		{llm.Config{Budget: llm.Budget{Amount: "1"}}, "budget", "without prices", "with prices"},
		{llm.Config{InFlight: 1, Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Weight: 2}}}}, "quotas", "set", "limit per minute"},
	} {
		t.Run(tc.field+" "+tc.value, func(t *testing.T) {
			err := tc.config.Validate()
			require.Error(t, err)
			text := err.Error()
			for _, want := range []string{tc.field, tc.value, tc.can} {
				require.Contains(t, text, want)
			}
			require.NotContains(t, strings.TrimSpace(text), "\n")
		})
	}
}

// Quotas name the limits that they are parts of.
func TestQuotasOfLimits(t *testing.T) {
	of := func(key string) llm.Config {
		quotas := map[string]throttle.Quotas{key: {Tags: map[string]throttle.Quota{"acme": {Total: 5}}}}
		return llm.Config{TokensPerMinute: 600, QuotasOf: quotas, Store: "memory://x", Pool: "p"}
	}
	require.NoError(t, of("tokensPerMinute").Validate())
	require.ErrorContains(t, of("requestsPerMinute").Validate(), "quotas name requestsPerMinute, but there is no such limit")
	require.ErrorContains(t, of("budget").Validate(), "quotas name budget, without prices")
}
