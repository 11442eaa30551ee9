package account_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
)

// logged opens an account, and returns its log.
func logged(t *testing.T, c account.Config) (*account.Limits, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	c.Pool.Store, c.Pool.Pool, c.Pool.ID = "memory://"+outsideNames.ReplaceAllString(t.Name(), "-"), "acct", "one"
	l, err := account.Open(t.Context(), c, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, &log
}

// Settings that change nothing, and limits that the provider is not known to have, are allowed, and logged in a line each.
func TestSettingsThatAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		config account.Config
		lines  []string // a part of each
	}{
		"all count": {account.Config{Provider: profile.Bedrock, TokensPerMinute: 5, OutputWeight: 5, CachedInput: profile.CachedCounted}, nil},
		"no limit of both kinds": {
			account.Config{Provider: profile.Anthropic, InputTokensPerMinute: 5, OutputWeight: 5, Charge: profile.BySum, CachedInput: profile.CachedFree},
			[]string{"no effect: no limit of this account counts by it\" setting=outputWeight", "setting=charge"},
		},
		"announced limits of both kinds": {account.Config{Provider: profile.OpenAI, Announced: true, OutputWeight: 5, Charge: profile.BySum}, nil},
		"an announced limit on prompts":  {account.Config{Provider: profile.Anthropic, Announced: true, CachedInput: profile.CachedFree}, nil},
		"no limit on prompts": {
			account.Config{Provider: profile.Anthropic, RequestsPerMinute: 5, CachedInput: profile.CachedFree}, []string{"setting=cachedInput"},
		},
		"not the provider's": {
			account.Config{Provider: profile.OpenAI, OutputTokensPerMinute: 5, TokensPerMinute: 5},
			[]string{"setting=outputTokensPerMinute provider=openai"},
		},
		"not the provider's day": {
			account.Config{Provider: profile.DeepSeek, InFlight: 5, RequestsPerDay: account.Day{Amount: 5}},
			[]string{"setting=requestsPerDay provider=deepseek"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, log := logged(t, tc.config)
			require.Equal(t, len(tc.lines), strings.Count(log.String(), "setting="), log.String())
			for _, part := range tc.lines {
				require.Contains(t, log.String(), part)
			}
		})
	}
}

// A day that is used up is logged once, however many calls wait for its end; they hold nothing of the other limits meanwhile.
func TestASpentDayIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := logged(t, account.Config{
			Provider: profile.SelfHosted, RequestsPerDay: account.Day{Amount: 2, Reset: account.Midnight}, InFlight: 2,
		})
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			permit, err := l.Limiter().Acquire(account.WithCall(ctx, &account.Call{Size: prompt.Size{Bytes: 4}}), 1)
			cancel()
			if err == nil {
				permit.Settle(1)
			} else {
				require.ErrorContains(t, err, "acct/requests-day")
			}
		}
		require.Equal(t, 1, strings.Count(log.String(), "is spent"), log.String())
		require.Contains(t, log.String(), "pool=acct/requests-day")
	})
}
