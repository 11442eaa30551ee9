package profile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// What each provider's limits count for one call: drawn, and in the end.
func TestWhatProvidersCount(t *testing.T) {
	type count struct{ drawn, charged int }
	none := count{-1, -1}
	u := func(in, writes, reads, out int) usage.Usage {
		return usage.Usage{Input: in, CacheWrites: writes, CacheReads: reads, Output: out}
	}
	cached := u(50, 1000, 200_000, 300)
	of := profile.Of
	for _, tc := range []struct {
		name                  string
		is                    profile.Profile
		prompt, longest       int64
		used                  usage.Usage
		weight                int
		input, output, tokens count
	}{
		{"Anthropic", of(profile.Anthropic), 700, 64_000, cached, 1, count{700, 1050}, count{512, 300}, count{64_700, 201_350}},
		{
			"Anthropic, cached input counts", of(profile.Anthropic).WithCachedInput(profile.CachedCounted), 700, 64_000, cached, 1,
			count{700, 201_050},
			count{512, 300},
			count{64_700, 201_350},
		},
		{
			"Anthropic, cached input is free", of(profile.Anthropic).WithCachedInput(profile.CachedFree), 700, 64_000, cached, 1,
			count{700, 1050},
			count{512, 300},
			count{64_700, 1350},
		},
		{"OpenAI", of(profile.OpenAI), 2000, 500, u(80, 0, 1920, 300), 1, none, none, count{2000, -1}},
		{"OpenAI, a longer answer", of(profile.OpenAI), 2000, 4000, u(80, 0, 1920, 300), 1, none, none, count{4000, -1}},
		{"OpenAI by usage", of(profile.OpenAI).WithCharge(profile.ByUsage), 2000, 4000, u(80, 0, 1920, 300), 1, none, none, count{6000, 2300}},
		{"Azure", of(profile.Azure), 2000, 500, u(80, 0, 1920, 300), 1, none, none, count{2500, -1}},
		{"Azure, a longer answer", of(profile.Azure), 2000, 4000, u(80, 0, 1920, 300), 1, none, none, count{6000, -1}},
		{"Bedrock", of(profile.Bedrock), 7000, 32_000, u(3000, 1000, 4000, 1000), 5, none, none, count{39_000, 9000}},
		{"Bedrock, 10", of(profile.Bedrock), 7000, 32_000, u(3000, 1000, 4000, 1000), 10, none, none, count{39_000, 14_000}},
		{"Bedrock, 15", of(profile.Bedrock), 7000, 32_000, u(3000, 1000, 4000, 1000), 15, none, none, count{39_000, 19_000}},
		{"Bedrock mantle", of(profile.BedrockMantle), 4000, 2000, u(3000, 0, 1000, 400), 1, count{6000, 3400}, count{512, 400}, none},
		{"Gemini", of(profile.Gemini), 900, 500, u(240, 0, 800, 160), 1, count{900, 1040}, count{500, 160}, count{900, 1040}},
		{"Groq", of(profile.Groq), 900, 500, u(104, 0, 896, 10), 1, count{900, 104}, count{500, 10}, count{1400, 114}},
		{"self-hosted", of(profile.SelfHosted), 900, 500, u(104, 0, 896, 10), 1, count{900, 1000}, count{500, 10}, count{1400, 1010}},
		{"unknown", of("else"), 900, 500, u(104, 0, 896, 10), 1, count{900, 1000}, count{500, 10}, count{1400, 1010}},
		{"the larger", of(profile.SelfHosted).WithCharge(profile.ByLarger), 900, 500, u(1, 0, 0, 1), 1, none, none, count{900, -1}},
		{"the sum", of(profile.Groq).WithCharge(profile.BySum), 900, 500, u(1, 0, 0, 1), 1, none, none, count{1400, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := profile.Estimate{Prompt: tc.prompt, Answer: min(512, tc.longest), Longest: tc.longest, Allowed: tc.longest}
			used := tc.used
			used.HasInput, used.HasOutput = true, true
			for _, c := range []struct {
				rule profile.Rule
				want count
			}{{tc.is.Input, tc.input}, {tc.is.Output, tc.output}, {tc.is.Tokens, tc.tokens}} {
				if c.want == none {
					continue
				}
				require.Equal(t, c.want.drawn, c.rule.Drawn(e))
				require.Equal(t, c.want.charged >= 0, c.rule.Settles())
				if c.rule.Settles() {
					require.Equal(t, c.want.charged, c.rule.Charged(e, used, tc.weight))
				}
			}
		})
	}
}

// What a usage lacks counts as drawn; what cannot be is cut to what can.
func TestUsagesThatCannotBe(t *testing.T) {
	e := profile.Estimate{Prompt: 500, Least: 100, Answer: 200, Longest: 1000, Allowed: 1000}
	p := profile.Of(profile.SelfHosted)
	for _, tc := range []struct {
		name                  string
		used                  usage.Usage
		input, output, tokens int
	}{
		{"no prompt", usage.Usage{Output: 50, HasOutput: true}, 500, 50, 550},
		{"no output", usage.Usage{Input: 300, HasInput: true}, 300, 200, 1300},
		{"nothing", usage.Usage{}, 500, 200, 1500},
		{"only the sum", usage.Usage{Input: 310, Total: 310, HasTotal: true}, 500, 200, 310},
		{"only the sum, too much", usage.Usage{Input: 310_000, Total: 310_000, HasTotal: true}, 500, 200, 1500},
		{"too short a prompt", usage.Usage{Input: 3, Output: 50, HasInput: true, HasOutput: true}, 100, 50, 150},
		{
			"a prompt that is just long enough",
			usage.Usage{Input: 20, CacheWrites: 50, CacheReads: 30, Output: 50, HasInput: true, HasOutput: true},
			100, 50, 150,
		},
		{"too short a prompt, cached", usage.Usage{CacheReads: 30, Output: 50, HasInput: true, HasOutput: true}, 100, 50, 150},
		{"too long an answer", usage.Usage{Input: 300, Output: 50_000, HasInput: true, HasOutput: true}, 300, 1000, 1300},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.input, p.Input.Charged(e, tc.used, 1))
			require.Equal(t, tc.output, p.Output.Charged(e, tc.used, 1))
			require.Equal(t, tc.tokens, p.Tokens.Charged(e, tc.used, 1))
		})
	}
	require.Equal(t, 1, p.Input.Drawn(profile.Estimate{}), "at least one")
	require.Positive(t, p.Tokens.Drawn(profile.Estimate{Prompt: 1 << 60, Longest: 1 << 60}))
	free := p.WithCachedInput(profile.CachedFree)
	require.Zero(t, free.Input.Charged(e, usage.Usage{CacheReads: 30_000, HasInput: true, HasOutput: true}, 1), "all of it was cached")
}

func TestLimitsThatAProviderLacks(t *testing.T) {
	require.True(t, profile.Of(profile.OpenAI).Lacks(profile.Output))
	require.True(t, profile.Of(profile.DeepSeek).Lacks(profile.RequestsDay))
	require.False(t, profile.Of(profile.DeepSeek).Lacks(profile.InFlight))
	require.False(t, profile.Of(profile.OpenAI).Lacks(profile.InFlight))
	for _, k := range []profile.Kind{profile.Requests, profile.Input, profile.Output, profile.Tokens, profile.RequestsDay, profile.TokensDay} {
		require.False(t, profile.Of(profile.Generic).Lacks(k))
	}
	for _, name := range profile.Names() {
		require.NotEqual(t, name == profile.SelfHosted, profile.Of(name).Has != nil, name)
	}
}
