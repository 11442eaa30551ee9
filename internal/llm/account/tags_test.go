package account_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Only limits with quotas know tags; a budget is everybody's, and no quota of theirs.
func TestLimitsThatKnowTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := account.Config{Provider: profile.SelfHosted, TokensPerMinute: 60_000, InFlight: 4}
		c.RequestsPerDay = account.Day{Amount: 3, Reset: account.Midnight}
		plain := open(t, c)
		require.False(t, hook.TellsTags(plain.Limiter()))
		_, is := plain.Limiter().(throttle.Tagger)
		require.False(t, is)

		c.Quotas = throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 6000}}, Other: throttle.Quota{Total: 600}}
		l := openAs(t, c, "with-quotas") // of another store, or it would replace the first
		require.True(t, hook.TellsTags(l.Limiter()))
		tags, is := l.Limiter().(throttle.Tagger)
		require.True(t, is)
		for tag, quota := range map[string]string{"acme": "acme", "invented": "", "": ""} {
			of, is := tags.ForTag(tag).(interface{ QuotaTag() string })
			require.True(t, is)
			require.Equal(t, quota, of.QuotaTag(), "whose quota the tag %q has", tag)
		}
		time.Sleep(time.Minute)
		for _, tag := range []string{"acme", "invented", "acme"} {
			ctx := account.WithCall(t.Context(), &account.Call{Size: prompt.Size{Bytes: 4, Answer: 1}})
			permit, err := tags.ForTag(tag).Acquire(ctx, 1)
			require.NoError(t, err)
			permit.Settle(1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := tags.ForTag("acme").Acquire(account.WithCall(ctx, &account.Call{}), 1)
		require.ErrorContains(t, err, "budget", "three calls a day, whoever makes them")
	})
}

// A refusal concerns the key, and so the calls of all tenants.
func TestARefusalHoldsAllTenantsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tenant atomic.Value
		tenant.Store("a")
		calls := 0
		l := open(t, account.Config{
			Provider: profile.OpenAI, TokensPerMinute: 600_000, Tag: func(*http.Request) string { return fmt.Sprint(tenant.Load()) },
			Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Total: 300_000}, "b": {Total: 300_000}}},
		})
		time.Sleep(time.Minute)
		tr := l.Transport(scripted(func(*http.Request) (int, string, string) {
			if calls++; calls == 1 {
				return 429, "Retry-After: 20", `{"error":{"code":"rate_limit_exceeded"}}`
			}
			return 200, "", openAIAnswer
		}))
		var first sync.WaitGroup
		began := time.Now()
		first.Go(func() { post(t, tr, "http://service.test/v1/chat/completions", chat(10, 10)) })
		time.Sleep(2 * time.Second)
		tenant.Store("b")
		post(t, tr, "http://service.test/v1/chat/completions", chat(10, 10))
		require.GreaterOrEqual(t, time.Since(began), 20*time.Second)
		first.Wait()
	})
}

// An output limit below the expected length of an answer grants calls all the same, whatever they allow.
func TestSmallOutputLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, account.Config{Provider: profile.Anthropic, OutputTokensPerMinute: 600})
		_, _, most := l.TooLarge(&account.Call{Size: prompt.Size{Answer: 64_000}})
		require.Zero(t, most)
		tr := l.Transport(scripted(func(*http.Request) (int, string, string) { return 200, "", anthropicAnswer }))
		post(t, tr, "http://service.test/v1/messages", chat(10, 64_000))
		require.Equal(t, 300, l.settled(t)["/output"])
	})
}

// Calls that wait for other limits hold no money: the budget of a call in flight and those that wait is not spent.
func TestWaitingCallsHoldNoMoney(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := account.Config{Provider: profile.SelfHosted, InFlight: 1}
		c.Pool.Store, c.Pool.Pool, c.Pool.ID = "memory://waiting-calls", "acct", "one"
		prices := map[string]account.Price{"m": {Input: "1", Output: "15"}}
		two := account.Budget{Amount: "2"} // calls' worth
		p, err := account.OpenPurse(t.Context(), c.Pool, prices, two, throttle.Quotas{}, true, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close()) }()
		c.Purse = p
		l := open(t, c)
		tr := l.Transport(scripted(func(*http.Request) (int, string, string) {
			time.Sleep(time.Second)
			return 200, "", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`
		}))
		var all sync.WaitGroup
		began := time.Now()
		for range 50 {
			all.Go(func() { post(t, tr, "http://service.test/v1/chat/completions", chat(10, 64_000)) })
		}
		all.Wait()
		require.Less(t, time.Since(began), 3*time.Minute)
		require.Equal(t, 50*(3+15), l.settled(t)["/money"])
	})
}

// A call of two levels draws for both at the limit that has the quotas, and once at the others. Keys that callers invent keep their team's
// total together, delay no other team, and leave it what is reserved for it.
func TestCallsOfTwoLevels(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	testkit.SkipShort(t, "it measures")
	for name, c := range map[string]struct {
		key              throttle.Quota
		requests, flight int
	}{
		"totals of keys": {throttle.Quota{Total: 600}, 0, 0},
		"several limits": {throttle.Quota{}, 6000, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := open(t, account.Config{
					Provider: profile.SelfHosted, TokensPerMinute: 60_000, RequestsPerMinute: c.requests, InFlight: c.flight,
					Quotas: throttle.Quotas{
						Tags:  map[string]throttle.Quota{"a": {Total: 6000}, "b": {Reserved: 30_000}},
						Match: []throttle.QuotaPattern{{Tag: "a/*", Quota: c.key}},
					},
				})
				for tag, quota := range map[string]string{"a/k": "a\x00a/k", "b/k": "b", "c/k": ""} {
					of, is := hook.ForLevels(l.Limiter(), taglevel.First(tag), tag).(interface{ QuotaTag() string })
					require.True(t, is)
					require.Equal(t, quota, of.QuotaTag(), tag)
				}
				twoLevelsUnderLoad(t, taglevel.Limiter(l.Limiter()))
			})
		})
	}
}

// twoLevelsUnderLoad draws for many keys of one team, and for another team.
func twoLevelsUnderLoad(t *testing.T, l throttle.Limiter) {
	t.Helper()
	tags, is := l.(throttle.Tagger)
	require.True(t, is)
	ctx, cancel := context.WithCancel(t.Context())
	var used [2]atomic.Int64
	draw := func(team int, tag string) {
		for {
			one := account.WithCall(ctx, &account.Call{Size: prompt.Size{Tokens: 10, Silent: true}})
			permit, err := tags.ForTag(tag).Acquire(one, 1)
			if err != nil {
				return
			}
			used[team].Add(10)
			permit.Settle(1)
		}
	}
	for i := range 300 {
		go draw(0, fmt.Sprint("a/key-", i))
	}
	for range 20 {
		go draw(1, "b/key")
	}
	time.Sleep(time.Minute)
	before, other := used[0].Load(), used[1].Load()
	time.Sleep(time.Minute)
	require.LessOrEqual(t, used[0].Load()-before, int64(6000+600))
	require.Positive(t, used[0].Load()-before)
	require.GreaterOrEqual(t, used[1].Load()-other, int64(0.75*54_000), "what the first team leaves, as far as with a team without keys")
	cancel()
	synctest.Wait()
}
