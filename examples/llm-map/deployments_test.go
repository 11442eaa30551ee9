package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// load returns the settings of variables without their prefix.
func load(t *testing.T, vars map[string]string) (settings, error) {
	t.Helper()
	clearEnv(t)
	for name, value := range vars {
		t.Setenv(prefix+name, value)
	}
	return loadSettings()
}

func TestDeploymentsOfASetting(t *testing.T) {
	t.Setenv("A_KEY_OF_TESTS", canary+"-azure\n")
	s, err := load(t, map[string]string{
		"MODEL": "gpt-4o-mini", "API_KEY": canary, "TOKENS_PER_MINUTE": "1000", "BASE_URL": "https://proxy/v1", "MAX_TOKENS": "7", "IN_FLIGHT": "5",
		"DEPLOYMENTS": `
z-first: {requestsPerMinute: 5}
azure: {provider: azure, baseURL: "https://n.azure.com", model: mini, apiKeyEnv: A_KEY_OF_TESTS, tokensPerMinute: 2000, maxTokens: 9}
anthropic: {provider: anthropic, apiKeyEnv: A_KEY_OF_TESTS, tokensPerMinute: 0}
own: {provider: self-hosted, baseURL: "http://vllm/v1", model: qwen, inFlight: 32, extraBody: {seed: 7}}
`,
	})
	require.NoError(t, err)
	type seen struct {
		name, pool, model, url, key string
		charge                      profile.Charge
		requests, tokens, slots     int
	}
	var got []seen
	for _, d := range s.targets {
		key, err := d.APIKey.ReadHeader()
		require.NoError(t, err)
		got = append(got, seen{d.Deployment, d.Pool.Pool, d.Model, d.endpoint(), key, d.Charge, d.RequestsPerMinute, d.TokensPerMinute, d.InFlight})
	}
	require.Equal(t, []seen{
		{"z-first", "default/z-first", "gpt-4o-mini", "https://proxy/v1/chat/completions", canary, "", 5, 1000, 5},
		{
			"azure", "default/azure", "mini", "https://n.azure.com/openai/deployments/mini/chat/completions?api-version=2024-10-21", canary + "-azure",
			"", 0, 2000, 5,
		},
		{"anthropic", "default/anthropic", "gpt-4o-mini", "https://api.anthropic.com/v1/chat/completions", canary + "-azure", "", 0, 0, 5},
		{"own", "default/own", "qwen", "http://vllm/v1/chat/completions", "", "", 0, 1000, 32},
	}, got)
	require.Equal(t, 9, s.targets[1].MaxTokens)
	require.Equal(t, 7, s.targets[0].MaxTokens)
	require.JSONEq(t, `{"seed":7}`, s.targets[3].ExtraBody)

	var out bytes.Buffer
	require.NoError(t, llmMap.Run(t.Context(), []string{"--check"}, &out, &out))
	require.Contains(t, out.String(), "deployments: \"{z-first: {requestsPerMinute: 5}, azure: ")
	require.Contains(t, out.String(), `spillAfter: "1s"`)
	require.NotContains(t, out.String(), canary)
}

// A key is never sent to where it does not belong.
func TestKeysStayWithTheirDeployments(t *testing.T) {
	_, err := load(t, map[string]string{
		"MODEL": "m", "API_KEY": canary,
		"DEPLOYMENTS": `{a: {}, b: {baseURL: "https://elsewhere/v1"}, c: {provider: azure, baseURL: "https://n.azure.com"}}`,
	})
	require.ErrorContains(t, err, "deployments.b: apiKey and apiKeyFile are not set")
	require.ErrorContains(t, err, "deployments.c: apiKey and apiKeyFile are not set")
	require.NotContains(t, err.Error(), "deployments.a")
	_, err = load(t, map[string]string{
		"MODEL": "m", "HEADERS": "Authorization: Bearer " + canary, "DEPLOYMENTS": `{a: {}, b: {baseURL: "https://elsewhere/v1"}}`,
	})
	require.ErrorContains(t, withoutSources(err), "deployments.b: headers sets Authorization, which would be sent to a deployment at another place, "+
		"allowed: apiKeyFile or apiKeyEnv of each deployment")
	require.NotContains(t, err.Error(), canary)
}

func TestFaultsOfDeployments(t *testing.T) {
	_, err := load(t, map[string]string{"MODEL": "m", "API_KEY": canary, "DEPLOYMENTS": `
A_B: {}
a: {modell: x, tokensPerMinute: -1, baseURL: "ftp://x", headers: "a: b"}
b: 5
`})
	for _, want := range []string{
		`deployments has the name "A_B" (LLM_MAP_DEPLOYMENTS:2), allowed: ` + aDeploymentName,
		"deployments.a.modell is not a setting; did you mean model? (LLM_MAP_DEPLOYMENTS:3), allowed: one of provider, api, baseURL",
		`deployments.a.tokensPerMinute is "-1"`, "deployments.a.baseURL is not as it should be (not shown)", "deployments.a.headers is not a setting",
		"deployments.b is a single value", "allowed: a mapping with provider",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = load(t, map[string]string{
		"DEPLOYMENTS": `{a: {apiKeyEnv: NOT_SET_IN_TESTS, tokensPerMinute: 5, maxTokens: 6}, b: {apiKeyFile: /nowhere, model: m}}`,
	})
	for _, want := range []string{
		"deployments.a: model is not set", `deployments.a: apiKeyEnv is "NOT_SET_IN_TESTS", a variable that is not set, allowed: a variable that holds the key`,
		"deployments.a: maxTokens is 6, which no call could ever draw", `deployments.b: apiKeyFile is "/nowhere", which cannot be used`,
	} {
		require.ErrorContains(t, withoutSources(err), want)
	}
	_, err = load(t, map[string]string{"MODEL": "m", "API_KEY": canary, "DEPLOYMENTS": "{}"})
	require.ErrorContains(t, err, "deployments is an empty mapping")
	_, err = load(t, map[string]string{"MODEL": "m", "API_KEY": canary, "SPILL_AFTER": "2s"})
	require.ErrorContains(t, err, "spillAfter is set without deployments (LLM_MAP_SPILL_AFTER), allowed: with deployments")
}

func TestEachDeploymentHasPoolsOfItsOwn(t *testing.T) {
	s, err := load(t, map[string]string{
		"MODEL": "m", "API_KEY": canary, "TOKENS_PER_MINUTE": "600", "DEPLOYMENTS": `{a: {}, b: {tokensPerMinute: 1200}}`,
	})
	require.NoError(t, err)
	targets, all, err := openTargets(t.Context(), &s, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, all.close()) }()
	require.Len(t, targets, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for i, want := range []string{"default/a/tokens 600", "default/b/tokens 1200"} {
		_, err := targets[i].limits.Limiter().Acquire(ctx, 5000)
		e, ok := errors.AsType[*throttle.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, want, e.Limit+" "+strconv.Itoa(limitOf(targets[i].settings, "tokensPerMinute").Max))
	}
}
