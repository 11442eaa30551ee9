package account_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestWhetherALimitIsSet(t *testing.T) {
	for _, tc := range []struct {
		config       account.Config
		limited, any bool
	}{
		{account.Config{OutputTokens: 5}, false, false},
		{account.Config{RequestsPerMinute: 1}, false, true},
		{account.Config{InFlight: 1}, false, true},
		{account.Config{Main: true}, false, true},
		{account.Config{Announced: true}, true, true},
		{account.Config{InputTokensPerMinute: 1}, true, true},
		{account.Config{OutputTokensPerMinute: 1}, true, true},
		{account.Config{TokensPerMinute: 1}, true, true},
		{account.Config{RequestsPerDay: account.Day{Amount: 1}}, true, true},
		{account.Config{TokensPerDay: account.Day{Amount: 1}}, true, true},
	} {
		require.Equal(t, tc.limited, tc.config.Limited(), "%+v", tc.config)
		require.Equal(t, tc.any, tc.config.Any(), "%+v", tc.config)
	}
}

// A limit of a minute saves up a second's worth, rounded up.
func TestBurstsOfMinutes(t *testing.T) {
	for most, want := range map[int]int{1: 1, 60: 1, 61: 2, 120: 2, 6000: 100} {
		c := account.Config{RequestsPerMinute: most}
		require.Equal(t, want, c.Limits()["requestsPerMinute"].Burst, most)
	}
}

// The first limit of a minute is the main one, unless there is that of Main. It alone has the quotas that name no limit.
func TestTheMainLimit(t *testing.T) {
	for _, hasMain := range []bool{false, true} {
		var got map[profile.Kind]bool
		c := account.Config{Provider: profile.SelfHosted, Main: hasMain, TokensPerMinute: 600, RequestsPerMinute: 600}
		c.Shape = func(k profile.Kind, isMain bool, l throttle.Limit) throttle.Limit {
			got[k] = isMain
			return l
		}
		c.Pool.Limit = throttle.Limit{Max: 100}
		c.Quotas = throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 5}}}
		want := map[profile.Kind]bool{profile.Tokens: !hasMain, profile.Requests: false}
		got = map[profile.Kind]bool{}
		c.Limits()
		require.Equal(t, want, got)
		got = map[profile.Kind]bool{}
		open(t, c)
		require.Equal(t, want, got)
		for _, key := range []string{"tokensPerMinute", "requestsPerMinute"} {
			c.QuotasOf = named(map[string]throttle.Quotas{key: c.Quotas})
			got = map[profile.Kind]bool{}
			twice := ""
			if !hasMain && key == "tokensPerMinute" {
				twice = "quotas has quotas of tokensPerMinute twice"
			}
			faulty(t, twice, c.CheckPools(account.Budget{}), key)
			require.Equal(t, want, got)
		}
	}
}
