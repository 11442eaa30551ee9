package main

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// loadWith reads these variables and nothing else.
func loadWith(t *testing.T, env map[string]string) (settings, error) {
	t.Helper()
	clearEnv(t)
	for name, value := range map[string]string{"LLM_MAP_MODEL": "m", "LLM_MAP_PROVIDER": "self-hosted", "LLM_MAP_BASE_URL": "http://h/v1"} {
		t.Setenv(name, value)
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	return loadSettings()
}

// The ramp is that of the limit on tokens, or of that on requests when there is none.
func TestRamp(t *testing.T) {
	ramp := map[string]string{
		"LLM_MAP_REQUESTS_PER_MINUTE": "500", "LLM_MAP_TOKENS_PER_MINUTE": "90000", "NUMATHROTTLE_MIN": "1000", "NUMATHROTTLE_RAMP_UP_DURATION": "10m",
		"NUMATHROTTLE_MODES": "{goBackN: {coolDownPeriod: 5s}}", "NUMATHROTTLE_RESUMED_RAMP_UP": "true", "NUMATHROTTLE_TTL": "1h",
	}
	s, err := loadWith(t, ramp)
	require.NoError(t, err)
	require.False(t, limitOf(s, "requestsPerMinute").Ramps())
	tokens := limitOf(s, "tokensPerMinute")
	require.Equal(t, []any{1000, 10 * time.Minute, true, time.Hour}, []any{tokens.Min, tokens.RampUpDuration, tokens.ResumedRampUp, tokens.TTL})
	require.Equal(t, throttle.RampGoBackN{CoolDownPeriod: 5 * time.Second}, tokens.Mode)

	ramp["LLM_MAP_TOKENS_PER_MINUTE"], ramp["NUMATHROTTLE_MIN"] = "0", "50"
	s, err = loadWith(t, ramp)
	require.NoError(t, err)
	require.Equal(t, 50, limitOf(s, "requestsPerMinute").Min)
	require.False(t, limitOf(s, "tokensPerMinute").Ramps())

	// Each deployment ramps by itself.
	ramp["LLM_MAP_DEPLOYMENTS"] = "{one: {requestsPerMinute: 60}, two: {tokensPerMinute: 6000}}"
	s, err = loadWith(t, ramp)
	require.NoError(t, err)
	require.Equal(t, []int{50, 50}, []int{limitOf(s.targets[0], "requestsPerMinute").Min, limitOf(s.targets[1], "tokensPerMinute").Min})
}

func TestRampsThatCannotBe(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"min is 501 (NUMATHROTTLE_MIN), allowed: 1 to requestsPerMinute": {"LLM_MAP_REQUESTS_PER_MINUTE": "500", "NUMATHROTTLE_MIN": "501"},
		"min and rampUpDuration are set, but there is no limit that ramps up (NUMATHROTTLE_MIN), allowed: with a limit per minute": {
			"LLM_MAP_IN_FLIGHT": "3", "NUMATHROTTLE_MIN": "5",
		},
		"min is 5 (NUMATHROTTLE_MIN), allowed: 0 with strict": {
			"LLM_MAP_REQUESTS_PER_MINUTE": "500", "NUMATHROTTLE_MIN": "5", "NUMATHROTTLE_STRICT": "true",
		},
		"rampUpDuration is \"60\"; did you mean 60s? (NUMATHROTTLE_RAMP_UP_DURATION)": {
			"LLM_MAP_REQUESTS_PER_MINUTE": "500", "NUMATHROTTLE_RAMP_UP_DURATION": "60",
		},
		"ttl is 1h0m0s (NUMATHROTTLE_TTL), allowed: only with min or rampUpDuration": {"LLM_MAP_REQUESTS_PER_MINUTE": "500", "NUMATHROTTLE_TTL": "1h"},
		"deployments.two: min is 50": {
			"LLM_MAP_DEPLOYMENTS": "{one: {requestsPerMinute: 60}, two: {requestsPerMinute: 40}}", "NUMATHROTTLE_MIN": "50", "LLM_MAP_MODEL": "m",
		},
	} {
		_, err := loadWith(t, env)
		require.ErrorContains(t, err, want, "%v", env)
	}
}

// withoutSources is an error without where its settings came from.
func withoutSources(err error) error {
	return errors.New(regexp.MustCompile(` \((?:[a-zA-Z]+: )?(?:LLM_MAP_|NUMATHROTTLE_|/)[^()]*\)`).ReplaceAllString(err.Error(), ""))
}
