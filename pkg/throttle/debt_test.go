package throttle

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// One wrong number does not stop a limit for months, wherever it is settled.
func TestDebtIsBounded(t *testing.T) {
	quota := func(q Quota) []Option { return []Option{WithQuotas(Quotas{Tags: map[string]Quota{"a": q}})} }
	for _, tc := range []struct {
		name  string
		limit Limit
		opts  []Option
		wrap  func(Limiter) Limiter
		wait  time.Duration
	}{
		{name: "by default", limit: Limit{Max: 50}, wait: 10 * time.Minute},
		{name: "a long period", limit: Limit{Max: 50, Per: time.Hour}, wait: 3 * time.Hour},
		{name: "as configured", limit: Limit{Max: 50, MaxDebt: 3 * time.Second}, wait: 3 * time.Second},
		{name: "hard", limit: Limit{Max: 50, Burst: 10, Hard: true, MaxDebt: 3 * time.Second}, wait: 5 * time.Second},
		{name: "strict", limit: Limit{Max: 50, Strict: true, MaxDebt: 3 * time.Second}, wait: 3 * time.Second},
		{name: "a quota", limit: Limit{Max: 50, MaxDebt: 3 * time.Second}, opts: quota(Quota{Total: 10}), wait: 3 * time.Second},
		{name: "a quota, by default", limit: Limit{Max: 50}, opts: quota(Quota{Total: 10}), wait: 10 * time.Minute},
		{
			name: "a budget", limit: Limit{Max: 50, MaxDebt: 3 * time.Second}, wait: 3 * time.Second,
			opts: quota(Quota{Budgets: []Budget{{Amount: 100_000, Per: "day"}}}),
		},
		{
			name: "an All", limit: Limit{Max: 50, MaxDebt: 3 * time.Second}, wait: 3 * time.Second,
			wrap: func(l Limiter) Limiter { return All(l, PerCall(ofMax(1000))) },
		},
		{
			name: "an All with tags", limit: Limit{Max: 50, MaxDebt: 3 * time.Second}, opts: quota(Quota{Total: 10}), wait: 3 * time.Second,
			wrap: func(l Limiter) Limiter { return All(l, PerCall(ofMax(1000))) },
		},
	} {
		for how, use := range map[string]func(l Limiter, used int){
			"settled": func(l Limiter, used int) {
				for range 20 { // once more changes nothing
					if p, ok := l.TryAcquire(1); ok {
						p.Settle(used)
					}
				}
			},
			"charged": func(l Limiter, used int) {
				for range 20 {
					_ = Charge(l, used)
				}
			},
		} {
			t.Run(tc.name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					opts := slices.Concat(tc.opts, []Option{WithLogger(slog.New(slog.NewTextHandler(&log, nil)))})
					th := whole(t, tc.limit, opts...)
					var whole Limiter = th
					if tc.wrap != nil {
						whole = tc.wrap(th)
					}
					l := ForTags(whole, "a")
					time.Sleep(time.Minute + tc.limit.Per)
					use(l, 1_000_000_000)
					require.Error(t, Probe(l))
					began := time.Now()
					for Probe(l) != nil {
						time.Sleep(tc.wait / 100)
						require.Less(t, time.Since(began), 2*tc.wait, "it goes on in the end")
					}
					if !tc.limit.Hard && how == "settled" {
						require.InDelta(t, tc.wait.Seconds(), time.Since(began).Seconds(), tc.wait.Seconds()/10)
					}
					require.Positive(t, th.Status().DebtDropped)
					require.Equal(t, 1, strings.Count(log.String(), "the excess is dropped"), "%s", &log)
				})
			})
		}
	}
}

func ofMax(n int) *Throttle {
	th, err := New(Limit{Max: n})
	if err != nil {
		panic(err)
	}
	return th
}

// A debt that calls really make is not cut.
func TestAnHonestDebtIsPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 100, Burst: 10})
		time.Sleep(time.Second)
		take(t, th, 1).Settle(50_000)
		require.InDelta(t, 9-49_999, th.Status().Tokens, 1)
		require.Zero(t, th.Status().DebtDropped)
	})
}

func TestForgiveDebt(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit Limit
		tag   string
	}{
		{"a limit", Limit{Max: 50}, ""},
		{"a hard limit", Limit{Max: 50, Burst: 10, Hard: true}, ""},
		{"a strict limit", Limit{Max: 50, Strict: true}, ""},
		{"a quota", Limit{Max: 50}, "a"},
		{"a tag without a quota", Limit{Max: 50}, "b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []Option
				if tc.tag != "" {
					opts = append(opts, WithQuotas(Quotas{Tags: map[string]Quota{"a": {Total: 10}}}))
				}
				th := whole(t, tc.limit, append(opts, WithLogger(slog.New(slog.DiscardHandler)))...)
				require.Zero(t, th.ForgiveDebt())
				l := ForTags(th, tc.tag)
				time.Sleep(time.Second)
				_ = Charge(l, 1000)
				waited := make(chan error, 1)
				go func() { _, err := l.Acquire(t.Context(), 1); waited <- err }()
				synctest.Wait()
				began := time.Now()
				require.Positive(t, th.ForgiveDebt())
				require.NoError(t, <-waited)
				require.Less(t, time.Since(began), 500*time.Millisecond)
				require.Positive(t, th.Status().DebtForgiven)
				require.LessOrEqual(t, th.Status().Tokens, 5.0, "no more than that")
			})
		})
	}
	unlimited := whole(t, Limit{})
	require.Zero(t, unlimited.ForgiveDebt())
}

// What was charged is use, so that the pool gives the processor its share.
func TestAChargeIsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, _ := scripted(t, Limit{Max: 1000, Burst: 100}, 1)
		time.Sleep(time.Second)
		require.InDelta(t, 0.2, reports(th, func(ms int) {
			if ms%50 == 0 {
				_ = Charge(th, 10)
			}
		}), 0.02)
		require.InDelta(t, 1, reports(th, func(ms int) {
			if ms%50 == 0 && Probe(th) == nil {
				_ = Charge(th, 500)
			}
		}), 1e-9)
	})
}

func TestMaxDebtIsChecked(t *testing.T) {
	require.NoError(t, Limit{Max: 1, MaxDebt: time.Millisecond}.Validate())
	require.ErrorContains(t, Limit{Max: 1, MaxDebt: -1}.Validate(), "maxDebt is -1ns, allowed: 1ms to 744h")
	require.ErrorContains(t, Limit{Max: 1, MaxDebt: 745 * time.Hour}.Validate(), "maxDebt")
}
