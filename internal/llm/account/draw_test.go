package account_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A call that was made counts at each limit and in the budget although it used nothing; one that was not made counts nowhere.
func TestCallsThatUseNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		end    func(p throttle.Permit)
		counts int
	}{
		"settled with nothing": {func(p throttle.Permit) { p.Settle(0) }, 1}, "cancelled": {func(p throttle.Permit) { p.Cancel() }, 0},
	} {
		virtually(t, name, func(t *testing.T) {
			budget := throttletest.New()
			c := account.Config{Provider: profile.SelfHosted, RequestsPerMinute: 60}
			c.Purse = account.NewPurse(map[string]account.Price{"m": {Output: "0", PerCall: "0.000007"}}, budget, false, slog.New(slog.DiscardHandler))
			l := open(t, c)
			p, err := l.Limiter().Acquire(account.WithCall(t.Context(), &account.Call{Model: "m"}), 1)
			require.NoError(t, err)
			tc.end(p)
			require.Equal(t, tc.counts, l.settled(t)["/requests"])
			require.Equal(t, 7*tc.counts, budget.Used())
		})
	}
}

// Without a call so many tokens are drawn, for no tag, also where there are quotas.
func TestDrawsWithoutACall(t *testing.T) {
	for name, quotas := range map[string]throttle.Quotas{
		"without quotas": {}, "with quotas": {Tags: map[string]throttle.Quota{"acme": {Total: 60_000}}},
	} {
		virtually(t, name, func(t *testing.T) {
			l := open(t, account.Config{Provider: profile.SelfHosted, TokensPerMinute: 60_000, Quotas: quotas})
			for _, ctx := range []context.Context{t.Context(), account.WithCall(t.Context(), &account.Call{Size: prompt.Size{Tokens: 5, Silent: true}})} {
				p, err := l.Limiter().Acquire(ctx, 7)
				require.NoError(t, err)
				p.Settle(1)
			}
			require.Equal(t, 7+5, l.settled(t)["/tokens"])
		})
	}
}

// Draws for no call take so many tokens, but one request and one slot.
func TestDrawsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		config account.Config
		want   bool
	}{
		"requests":          {account.Config{RequestsPerMinute: 60}, true},
		"requests of a day": {account.Config{RequestsPerDay: account.Day{Amount: 86_400, Burst: 1}}, true},
		"slots":             {account.Config{InFlight: 1}, true},
		"tokens":            {account.Config{TokensPerMinute: 60}, false},
		"a budget":          {account.Config{RequestsPerDay: account.Day{Amount: 1, Reset: account.Midnight}}, true},
	} {
		virtually(t, name, func(t *testing.T) {
			tc.config.Provider = profile.SelfHosted
			l := open(t, tc.config)
			time.Sleep(time.Minute)
			_, ok := l.Limiter().TryAcquire(2)
			require.Equal(t, tc.want, ok)
		})
	}
}

// A limiter of one's own is drawn from as if it were used directly.
func TestALimiterOfOnesOwn(t *testing.T) {
	own := throttletest.New()
	l := open(t, account.Config{Provider: profile.SelfHosted, Limiter: own})
	call(t, l.Transport(always(200, openAIAnswer)), chat(8000, 500))
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 2500, Granted: 2500, Settled: true, Used: 2300}}, own.Draws())
}

// A call whose prompt came from a cache costs money, although its only limit counts nothing.
func TestMoneyOfCallsThatCountNothing(t *testing.T) {
	budget := throttletest.New()
	c := account.Config{Provider: profile.Anthropic, InputTokensPerMinute: 60_000_000}
	c.Purse = account.NewPurse(map[string]account.Price{"m": {Input: "1", Output: "2"}}, budget, false, slog.New(slog.DiscardHandler))
	l := open(t, c)
	call(t, l.Transport(always(200, `{"usage":{"input_tokens":0,"cache_read_input_tokens":1000,"output_tokens":10}}`)), chat(4000, 10))
	require.Zero(t, l.settled(t)["/input"])
	require.Equal(t, 1020, budget.Used())
}

// Only an account that neither limits nor counts anything is unlimited.
func TestWhatIsUnlimited(t *testing.T) {
	purse := account.NewPurse(map[string]account.Price{"m": {Output: "1"}}, nil, false, slog.New(slog.DiscardHandler))
	for name, tc := range map[string]struct {
		config account.Config
		want   bool
	}{
		"nothing": {account.Config{}, true}, "a limit": {account.Config{RequestsPerMinute: 60}, false}, "prices": {account.Config{Purse: purse}, false},
	} {
		require.Equal(t, tc.want, throttle.Unlimited(openAs(t, tc.config, t.Name()+name).Limiter()), name)
	}
}

// The budgets of a team and of its keys end its calls, and all calls count in that of the account; where only patterns have budgets, too.
func TestBudgetsOfTwoLevels(t *testing.T) {
	day := func(n int64) throttle.Quota {
		return throttle.Quota{Budgets: []throttle.Budget{{Amount: n, Per: limit.PeriodDay}}}
	}
	for name, tc := range map[string]struct {
		tags         throttle.Quotas
		account      account.Budget
		first, other int // calls of a key, and of another team, as many as there may be
	}{
		"of a team, within the account's": {
			throttle.Quotas{Tags: map[string]throttle.Quota{"a": day(300)}}, account.Budget{Amount: "0.001"}, 3, 7,
		},
		"of keys": {throttle.Quotas{Match: []throttle.QuotaPattern{{Tag: "a/*", Quota: day(200)}}}, account.Budget{}, 2, 9},
	} {
		virtually(t, name, func(t *testing.T) {
			c := account.Config{Provider: profile.SelfHosted, RequestsPerMinute: 6000}
			c.Pool.Store, c.Pool.Pool, c.Pool.ID = fmt.Sprint("memory://two-levels-", runs.Add(1)), "acct", "one"
			p, err := account.OpenPurse(t.Context(), c.Pool, map[string]account.Price{"m": {Output: "0", PerCall: "0.0001"}}, tc.account, tc.tags, false,
				slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			c.Purse = p
			l := open(t, c)
			time.Sleep(20 * time.Second)
			calls := func(first, tag string) (n int) {
				of, is := hook.ForLevels(l.Limiter(), first, tag).(throttle.Limiter)
				require.True(t, is)
				for range 9 {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					if permit, err := of.Acquire(account.WithCall(ctx, &account.Call{Model: "m"}), 1); err == nil {
						permit.Settle(1)
						n++
					}
					cancel()
				}
				return n
			}
			require.Equal(t, []int{tc.first, tc.other}, []int{calls("a", "a/k"), calls("b", "b/k")})
		})
	}
}

// A request that was read in part counts by the usage of its answer, like any other.
func TestAUsageOfALongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, every(profile.SelfHosted))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/v1/chat", io.MultiReader(strings.NewReader(chat(2<<20, 100))))
		require.NoError(t, err)
		res, err := l.Transport(always(200, `{"usage":{"prompt_tokens":200000,"completion_tokens":7}}`)).RoundTrip(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, map[string]int{"/requests": 1, "/input": 200_000, "/output": 7, "/tokens": 200_007, "/in-flight": 1}, l.settled(t))
	})
}
