package account_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// named returns quotas that name limits.
func named(of map[string]throttle.Quotas) opening.QuotasOf { return opening.QuotasOf{Limits: of} }

// tenants are callers with tags, and what the service has answered them.
type tenants struct {
	mu    sync.Mutex
	calls map[string]int
}

// answer answers a call of a tenant, whose name is the host.
func (s *tenants) answer(req *http.Request, _ string) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[req.URL.Host]++
	return answers(200, `{"usage":{"prompt_tokens":300,"completion_tokens":100}}`), nil
}

// of returns how many calls of a tenant were answered.
func (s *tenants) of(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[tenant]
}

func tenantOf(req *http.Request) string { return req.URL.Host }

// tryAs makes a call of a tenant, and reads its answer.
func tryAs(ctx context.Context, tr http.RoundTripper, tenant string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+tenant+"/v1/chat", strings.NewReader(chat(300, 100)))
	if err != nil {
		return err
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

// Each tag keeps every limit that its quota names, and uses what the tightest leaves; those of a pattern and all others, too. Nobody slows the rest.
func TestQuotasOnEveryLimit(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	synctest.Test(t, func(t *testing.T) {
		s := &tenants{calls: map[string]int{}}
		limits := map[string]throttle.Quotas{
			"requestsPerMinute": {
				Tags:  map[string]throttle.Quota{"acme": {Total: 50}, "big": {}},
				Match: []throttle.QuotaPattern{{Tag: "team-*", Quota: throttle.Quota{Total: 20}}},
			},
			"tokensPerMinute": {
				Tags:  map[string]throttle.Quota{"acme": {Reserved: 8000, Total: 60_000}, "big": {Total: 12_000}},
				Match: []throttle.QuotaPattern{{Tag: "team-*"}}, Other: throttle.Quota{Total: 4000},
			},
		}
		l := open(t, account.Config{
			Provider: profile.SelfHosted, RequestsPerMinute: 600, TokensPerMinute: 120_000, QuotasOf: named(limits), Tag: tenantOf,
		})
		tr := l.Transport(service(s.answer))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, name := range []string{"acme", "big", "team-1", "team-2", "x", "y"} {
			for range 4 {
				all.Go(func() {
					for ctx.Err() == nil {
						_ = tryAs(ctx, tr, name) // only the end of the test is an error
					}
				})
			}
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		clear(s.calls)
		s.mu.Unlock()
		const minutes = 3
		time.Sleep(minutes * time.Minute)
		cancel()
		all.Wait()
		for name, want := range map[string]float64{"acme": 50, "big": 30, "team-1": 20, "team-2": 20} {
			require.LessOrEqual(t, float64(s.calls[name])/minutes, want*1.03, name)
			require.GreaterOrEqual(t, float64(s.calls[name])/minutes, want*0.75, name) // some is lost where two quotas of a tag bind
		}
		require.InDelta(t, 10, float64(s.calls["x"]+s.calls["y"])/minutes, 2)
	})
}

// A quota of calls in flight bounds its tag's calls at once, beside its other limits, and those of others have the rest.
func TestQuotasOfCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		count := func(of string, n int) {
			mu.Lock()
			defer mu.Unlock()
			now[of] += n
			most[of] = max(most[of], now[of])
		}
		s := func(r *http.Request, _ string) (*http.Response, error) {
			count(tenantOf(r), 1)
			time.Sleep(time.Second)
			count(tenantOf(r), -1)
			return answers(200, `{"usage":{"prompt_tokens":300,"completion_tokens":100}}`), nil
		}
		l := open(t, account.Config{
			Provider: profile.SelfHosted, RequestsPerMinute: 60_000, InFlight: 8, Tag: tenantOf, QuotasOf: named(map[string]throttle.Quotas{
				"inFlight": {Tags: map[string]throttle.Quota{"acme": {Reserved: 2, Total: 3}}},
			}),
		})
		tr := l.Transport(service(s))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, name := range []string{"acme", "x"} {
			for range 20 {
				all.Go(func() {
					for ctx.Err() == nil {
						_ = tryAs(ctx, tr, name)
					}
				})
			}
		}
		time.Sleep(time.Minute)
		cancel()
		all.Wait()
		require.Equal(t, 3, most["acme"])
		require.GreaterOrEqual(t, most["x"], 5)
	})
}

// runs makes stores of repeated tests differ: a budget that is spent stays so.
var runs atomic.Int64

// A tag's budget in money ends its calls alone, and all calls count in that of the account. The error names the tag and the pool.
func TestBudgetsOfTags(t *testing.T) {
	for name, tc := range map[string]struct {
		account       account.Budget
		other         int64 // the budget of other tags
		first, second int   // calls of acme, then of others
	}{
		"with that of the account":    {account.Budget{Amount: "0.002"}, 0, 5, 15},
		"without one for the account": {account.Budget{}, 0, 5, 40},
		"beside one for the others":   {account.Budget{}, 1000, 5, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tenants{calls: map[string]int{}}
				budgets := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Budgets: []throttle.Budget{{Amount: 500, Per: limit.PeriodDay}}}}}
				if tc.other > 0 {
					budgets.Other.Budgets = []throttle.Budget{{Amount: tc.other, Per: limit.PeriodDay}}
				}
				c := account.Config{Provider: profile.SelfHosted, RequestsPerMinute: 6000, Tag: tenantOf}
				c.QuotasOf = named(map[string]throttle.Quotas{"budget": budgets})
				c.Pool.Store, c.Pool.Pool, c.Pool.ID = fmt.Sprint("memory://budgets-of-tags", runs.Add(1)), "acct", "one"
				prices := map[string]account.Price{"m": {Input: "0", Output: "1"}} // 100 millionths a call
				p, err := account.OpenPurse(t.Context(), c.Pool, prices, tc.account, c.BudgetQuotas(), false, slog.New(slog.DiscardHandler))
				require.NoError(t, err)
				defer func() { require.NoError(t, p.Close()) }()
				c.Purse = p
				l := open(t, c)
				tr := l.Transport(service(s.answer))
				try := func(tenant string) error {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					return tryAs(ctx, tr, tenant)
				}
				time.Sleep(20 * time.Second)
				refused := func(tenant string) (e *throttle.Error) {
					for range 40 {
						if err := try(tenant); err != nil {
							require.ErrorAs(t, err, &e)
							return e
						}
					}
					return nil
				}
				e := refused("acme")
				require.Equal(t, tc.first, s.calls["acme"])
				require.Equal(t, []any{"acme", "acct/money", throttle.ReasonBudget}, []any{e.Tag, e.Limit, e.Reason})
				e = refused("other")
				require.Equal(t, tc.second, s.calls["other"])
				if tc.account != (account.Budget{}) {
					require.Equal(t, []any{"", throttle.ReasonBudget}, []any{e.Tag, e.Reason})
				}
				require.Equal(t, 100*(tc.first+tc.second), l.settled(t)["/money"])
			})
		})
	}
}

// A call that waits for one limit of its tag holds no token of another: the rest of that is there for other tags.
func TestATagThatWaitsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := map[string]throttle.Quotas{
			"requestsPerMinute": {Tags: map[string]throttle.Quota{"slow": {Total: 1}}},
			"tokensPerMinute":   {Tags: map[string]throttle.Quota{"slow": {}}},
		}
		l := open(t, account.Config{
			Provider: profile.SelfHosted, RequestsPerMinute: 6000, TokensPerMinute: 24_000, QuotasOf: named(limits), Tag: tenantOf,
		})
		s := &tenants{calls: map[string]int{}}
		tr := l.Transport(service(s.answer))
		time.Sleep(20 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var stop atomic.Bool
		for i := range 10 {
			name := "slow"
			if i%2 == 0 {
				name = "quick"
			}
			all.Go(func() {
				for !stop.Load() {
					_ = tryAs(ctx, tr, name) // only the end of the test is an error
				}
			})
		}
		time.Sleep(time.Minute)
		before := s.of("quick")
		time.Sleep(3 * time.Minute)
		after := s.of("quick")
		stop.Store(true)
		cancel()
		all.Wait()
		require.InDelta(t, 59, float64(after-before)/3, 2, "24,000 tokens a minute are 60 calls, of which slow has one")
	})
}

func TestFaultsOfQuotasOfLimits(t *testing.T) {
	quota := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 700, Total: 800}}}
	for want, c := range map[string]account.Config{
		"quotas name requestsPerMinute, but there is no such limit, allowed: limits that are set: tokensPerMinute": {
			TokensPerMinute: 5000, QuotasOf: named(map[string]throttle.Quotas{"requestsPerMinute": quota}),
		},
		"quotas name outputTokensPerMinute, but there is no such limit, allowed: limits that are set: inFlight": {
			InFlight: 5, QuotasOf: named(map[string]throttle.Quotas{"outputTokensPerMinute": quota}),
		},
		"quotas name inFlight, but there is no such limit, allowed: limits that are set: tokensPerMinute": {
			TokensPerMinute: 5000, QuotasOf: named(map[string]throttle.Quotas{"inFlight": quota}),
		},
		"quotas of inFlight cannot be kept: quotas reserve 700 calls in flight together, allowed: at most the limit, which is 1": {
			TokensPerMinute: 5000, InFlight: 1, QuotasOf: named(map[string]throttle.Quotas{"inFlight": quota}),
		},
		"quotas of requestsPerMinute cannot be kept: quotas reserve 11.6667 tokens per second together": {
			TokensPerMinute: 5000, RequestsPerMinute: 600, QuotasOf: named(map[string]throttle.Quotas{"requestsPerMinute": quota}),
		},
		"quotas has quotas of tokensPerMinute twice": {
			TokensPerMinute: 5000, Quotas: quota, QuotasOf: named(map[string]throttle.Quotas{"tokensPerMinute": quota}),
		},
	} {
		faults := c.CheckPools(account.Budget{})
		require.NotEmpty(t, faults, want)
		require.Contains(t, fmt.Sprint(faults), want)
	}
	tags := throttle.Quotas{Other: throttle.Quota{Budgets: []throttle.Budget{{Amount: 5, Per: limit.PeriodDay}}}}
	require.Contains(t, fmt.Sprint(account.CheckMoney(nil, account.Budget{}, tags, true)), "quotas name budget, without prices")
	prices := map[string]account.Price{"m": {Output: "1"}}
	require.Empty(t, account.CheckMoney(prices, account.Budget{}, tags, true))
	require.Contains(t, fmt.Sprint(account.CheckMoney(prices, account.Budget{Amount: "5"}, tags, true)), "quotas.other.budget is set, and so is budget")
}

// A call without a bound for its answer has its turn although its tag's total is below what it might take.
func TestSmallQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quotas := throttle.Quotas{Tags: map[string]throttle.Quota{"small": {Total: 500}}}
		l := open(t, account.Config{
			Provider: profile.SelfHosted, TokensPerMinute: 60_000, QuotasOf: named(map[string]throttle.Quotas{"tokensPerMinute": quotas}), Tag: tenantOf,
		})
		s := &tenants{calls: map[string]int{}}
		tr := l.Transport(service(s.answer))
		for range 3 {
			require.Equal(t, 200, callAt(t, tr, "http://small/v1/chat", chat(100, 0)))
		}
	})
}
