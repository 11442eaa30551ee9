package account_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// purse returns a budget that is never spent.
func purse(t testing.TB, store string, prices map[string]account.Price) (p *account.Purse, c account.Config) {
	t.Helper()
	c.Pool.Store, c.Pool.Pool, c.Pool.ID = "memory://"+outsideNames.ReplaceAllString(store, "-"), "acct", "one"
	p, err := account.OpenPurse(t.Context(), c.Pool, prices, account.Budget{Amount: "1000000"}, c.BudgetQuotas(), false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, c
}

// What calls have cost is exact to the millionth.
func TestWhatCallsCost(t *testing.T) {
	row10 := account.Price{Input: "4", Output: "20", CachedInput: "0.2", CacheWrite: "5"}
	row11 := account.Price{Input: "2.5", Output: "10", CachedInput: "0.25"}
	const hour = `{"usage":{"input_tokens":7,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":300,` +
		`"ephemeral_1h_input_tokens":700},"cache_read_input_tokens":2000,"output_tokens":11}}`
	chatUsage := func(in, cached, out int) string {
		return fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens":%d,"total_tokens":%d}}`,
			in, cached, out, in+out)
	}
	for _, tc := range []struct {
		name   string
		price  account.Price
		answer string
		calls  int
		want   int
	}{
		{"10", row10, anthropicAnswer, 1, 51_200},
		{"11", row11, openAIAnswer, 1, 3680},
		{"12", row11, openAIAnswer, 10_000, 36_800_000},
		{
			"all kinds",
			account.Price{Input: "4", Output: "20", CachedInput: "0.2", CacheWrite: "5", CacheWrite1h: "8", PerCall: "0.000123"},
			hour, 1,
			28 + 220 + 400 + 1500 + 5600 + 123,
		},
		{"an hour costs as a write", account.Price{Input: "4", Output: "20", CacheWrite: "5"}, hour, 1, 28 + 220 + 8000 + 5000},
		{"missing ones cost as input", account.Price{Input: "4", Output: "20"}, hour, 1, 28 + 220 + 8000 + 4000},
		{"only a price for a call", account.Price{Output: "0", PerCall: "0.01"}, hour, 3, 30_000},
		{"fractions", account.Price{Input: "0.000003", Output: "0.3"}, chatUsage(1, 0, 1), 1000, 300}, // 300.003
		{"many fractions", account.Price{Input: "0.25", CachedInput: "0.025", Output: "0.7"}, chatUsage(21, 10, 3), 1000, 5100},
	} {
		virtually(t, tc.name, func(t *testing.T) {
			p, c := purse(t, t.Name(), map[string]account.Price{"m": tc.price})
			c.Provider, c.Purse = profile.SelfHosted, p
			l := open(t, c)
			tr := l.Transport(always(200, tc.answer))
			for range tc.calls {
				call(t, tr, chat(100, 500))
			}
			require.Equal(t, tc.want, l.settled(t)["/money"])
		})
	}
}

// The metric of costs is exact, also for what the budget counts in whole millionths. An answer that broke off costs what was drawn, unless it
// has used more.
func TestCostsInMetrics(t *testing.T) {
	const broken = "data: {\"choices\":[]}\n\ndata: {\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1}}\n\n"
	for name, tc := range map[string]struct {
		status int
		answer string
		budget int
		cost   float64
	}{
		"a usage": {200, `{"usage":{"prompt_tokens":11,"completion_tokens":1}}`, 3_000_008, 3.0000085},
		"less than its text": {
			200, `{"usage":{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1}}`, 3_000_008, 3.0000085,
		},
		"no usage":              {200, `{}`, 3_000_034, 3.000034},
		"a refusal":             {400, `{"usage":{"prompt_tokens":11,"completion_tokens":1}}`, 0, 0},
		"broken off":            {200, fmt.Sprintf(broken, 61), 3_000_034, 3.000034},
		"broken off, with more": {200, fmt.Sprintf(broken, 65), 3_000_035, 3.0000355},
	} {
		virtually(t, name, func(t *testing.T) {
			reader := sdk.NewManualReader()
			var c account.Config
			c.Pool.Store, c.Pool.Pool, c.Pool.ID = "memory://"+outsideNames.ReplaceAllString(t.Name(), "-"), "acct", "one"
			c.Pool.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
			prices := map[string]account.Price{"m": {Input: "0.5", Output: "3", PerCall: "3", CacheWrite1h: "0.6"}}
			p, err := account.OpenPurse(t.Context(), c.Pool, prices, account.Budget{Amount: "1000"}, throttle.Quotas{}, false, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			c.Purse = p
			l := open(t, c)
			call(t, l.Transport(service(func(*http.Request, string) (*http.Response, error) {
				res := answers(tc.status, tc.answer)
				if strings.HasPrefix(tc.answer, "data: ") {
					res.Header.Set("Content-Type", "text/event-stream")
				}
				return res, nil
			})), chat(204, 1)) // 51 tokens
			require.Equal(t, tc.budget, l.settled(t)["/money"])
			var all metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &all))
			var cost float64
			for _, scope := range all.ScopeMetrics {
				for _, m := range scope.Metrics {
					if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "llm_map.cost" {
						cost += sum.DataPoints[0].Value
					}
				}
			}
			require.InDelta(t, tc.cost, cost, 1e-9)
		})
	}
}

// Prices that cannot be told to the pool's other pods are no prices.
func TestPricesThatAreNone(t *testing.T) {
	var c account.Config
	c.Pool.Store, c.Pool.Pool = "memory://no-prices", "acct"
	_, err := account.OpenPurse(t.Context(), c.Pool, map[string]account.Price{"m": {Output: "x"}}, account.Budget{}, throttle.Quotas{}, false,
		slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "number")
}

// What a usage lacks, or cannot be, costs as drawn, and never less than what was surely used.
func TestMoneyOfAbsurdUsages(t *testing.T) {
	for name, tc := range map[string]struct {
		answer    string
		low, high int
	}{
		"none":            {`{}`, 500_000 + 1500, 500_000 + 2000},
		"too few":         {`{"usage":{"prompt_tokens":1,"completion_tokens":2}}`, 100_000 + 2*3, 101_000},
		"negative":        {`{"usage":{"prompt_tokens":-7,"completion_tokens":2}}`, 500_000 + 2*3, 501_000},
		"absurd":          {`{"usage":{"prompt_tokens":1e12,"completion_tokens":2}}`, 500_000 + 2*3, 501_000},
		"no answer":       {`{"usage":{"prompt_tokens":400000}}`, 400_000 + 1500, 400_000 + 1500},
		"absurd answer":   {`{"usage":{"prompt_tokens":400000,"completion_tokens":1e12}}`, 400_000 + 1500, 400_000 + 1500},
		"too long answer": {`{"usage":{"prompt_tokens":400000,"completion_tokens":900000}}`, 400_000 + 1500, 400_000 + 1500},
	} {
		virtually(t, name, func(t *testing.T) {
			p, c := purse(t, t.Name(), map[string]account.Price{"m": {Input: "1", Output: "3"}})
			c.Purse = p
			l := open(t, c)
			call(t, l.Transport(always(200, tc.answer)), chat(2_000_000, 500))
			require.GreaterOrEqual(t, l.settled(t)["/money"], tc.low)
			require.LessOrEqual(t, l.settled(t)["/money"], tc.high)
		})
	}
}

// Calls that surely cost nothing cost no money, and their fractions none of the others.
func TestFreeCalls(t *testing.T) { synctest.Test(t, testFreeCalls) }

func testFreeCalls(t *testing.T) {
	p, c := purse(t, t.Name(), map[string]account.Price{"m": {Input: "0.5", Output: "3"}})
	c.Purse = p
	l := open(t, c)
	for status, want := range map[int]int{400: 0, 401: 0, 404: 0} {
		call(t, l.Transport(always(status, `{"error":{"message":"no"},"usage":{"prompt_tokens":3,"completion_tokens":1}}`)), chat(100, 500))
		require.Equal(t, want, l.settled(t)["/money"], status)
	}
	for range 9 {
		call(t, l.Transport(always(200, `{"usage":{"prompt_tokens":5,"completion_tokens":0,"total_tokens":5}}`)), chat(4, 500)) // 2.5
	}
	require.Equal(t, 22, l.settled(t)["/money"])
}
