package account_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	mostOfAll = 1_000_000_000
	mostMoney = "1000000000"
)

// faulty requires that one fault has a text, or that there is none without a text.
func faulty(t *testing.T, want string, faults []error, of any) {
	t.Helper()
	if want == "" {
		require.Empty(t, faults, "%+v", of)
		return
	}
	require.Len(t, faults, 1, "%+v", of)
	require.ErrorContains(t, faults[0], want)
}

// What is at a bound is allowed, and what is beyond it is not.
func TestBoundsOfLimits(t *testing.T) {
	for _, tc := range []struct {
		config account.Config
		fault  string
	}{
		{account.Config{Provider: profile.Generic, RequestsPerMinute: mostOfAll, InFlight: mostOfAll}, ""},
		{account.Config{Provider: profile.OpenAI}, ""},
		{account.Config{Provider: "opnai"}, `provider is "opnai"`},
		{account.Config{RequestsPerMinute: mostOfAll + 1}, "requestsPerMinute is 1000000001"},
		{account.Config{InFlight: -1}, "inFlight is -1"},
		{account.Config{RequestsPerDay: account.Day{Burst: 5}}, "requestsPerDay has the amount 0"},
	} {
		faulty(t, tc.fault, tc.config.Check(), tc.config)
	}
	for _, tc := range []struct {
		day   account.Day
		fault string
	}{
		{account.Day{}, ""},
		{account.Day{Amount: 1, Burst: 1, Reset: account.Rolling}, ""},
		{account.Day{Amount: mostOfAll, Burst: mostOfAll}, ""},
		{account.Day{Amount: 1, Reset: account.Midnight}, ""},
		{account.Day{Amount: 1, Reset: account.Midnight, Zone: "Europe/Berlin"}, ""},
		{account.Day{Amount: mostOfAll + 1}, "the amount 1000000001"},
		{account.Day{Amount: 1, Reset: "noon"}, `the reset "noon"`},
		{account.Day{Amount: 1, Reset: account.Midnight, Zone: "Local"}, `the zone "Local"`},
		{account.Day{Amount: 1, Zone: "UTC"}, "a zone without reset: midnight"},
		{account.Day{Amount: 1, Burst: -1}, "the burst -1"},
		{account.Day{Amount: 1, Burst: mostOfAll + 1}, "the burst 1000000001"},
		{account.Day{Amount: 1, Burst: 1, Reset: account.Midnight}, "a burst with reset: midnight"},
	} {
		c := account.Config{TokensPerDay: tc.day}
		faulty(t, tc.fault, c.Check(), c)
	}
}

// all are the settings of a program with an account and a budget.
type all struct {
	account.Config
	prices map[string]account.Price
	budget account.Budget
}

// Settings with structure are shown as they are read, and each fault is told once.
func TestSettingsWithStructure(t *testing.T) {
	fields := append(account.LimitFields(func(c *all) *account.Config { return &c.Config }),
		account.MoneyFields(func(c *all) *map[string]account.Price { return &c.prices }, func(c *all) *account.Budget { return &c.budget })...)
	require.Empty(t, config.Show(fields, &all{}))
	for setting, want := range map[string]string{
		`TOKENS_PER_DAY={amount: 5}`:                `{"amount":5}`,
		`TOKENS_PER_DAY={amount: 5, reset: x}`:      "tokensPerDay.reset",
		`TOKENS_PER_DAY={amount: 5, zone: UTC}`:     "tokensPerDay has a zone without reset",
		`PRICES={m: {output: 1.5}}`:                 `{"m":{"output":1.5}}`,
		`PRICES={m: {output: 1000000}}`:             `{"m":{"output":1000000}}`,
		`PRICES={m: {output: 1000000.000001}}`:      `prices."m".output`,
		`PRICES={m: {output: 1e3}}`:                 `prices."m".output`,
		`BUDGET={amount: 25, zone: Europe/Berlin}`:  `{"amount":25,"zone":"Europe/Berlin"}`,
		`BUDGET={amount: 1000000001, per: a month}`: "budget.per",
	} {
		var c all
		faults := config.Load(fields, []string{"NUMATHROTTLE_" + setting}, &c)
		shown := config.Show(fields, &c)
		if want[0] == '{' {
			require.Empty(t, faults, setting)
			require.Len(t, shown, 1, setting)
			require.Equal(t, want, shown[0].Value)
			continue
		}
		require.NotEmpty(t, faults, setting)
		require.Contains(t, fmt.Sprint(faults), want)
		for _, err := range faults {
			require.NotContains(t, err.Error(), "numathrottle:  ", "a fault without a field")
		}
		require.Empty(t, shown, setting)
	}
}

// What prices, a budget and the budgets of tags lack together.
func TestFaultsOfMoney(t *testing.T) {
	of := func(output json.Number) map[string]account.Price {
		return map[string]account.Price{"m": {Input: "1", Output: output}}
	}
	others := throttle.Quotas{Other: throttle.Quota{Budgets: []throttle.Budget{{Amount: 5, Per: limit.PeriodDay}}}}
	for _, tc := range []struct {
		prices map[string]account.Price
		budget account.Budget
		tags   throttle.Quotas
		texts  bool
		fault  string
	}{
		{nil, account.Budget{}, throttle.Quotas{}, true, ""},
		{of(""), account.Budget{}, throttle.Quotas{}, true, `prices."m".output is not set`},
		{of(""), account.Budget{}, throttle.Quotas{}, false, ""},
		{of("01"), account.Budget{}, throttle.Quotas{}, true, `prices."m".output is "01"`},
		{of("1"), account.Budget{Amount: mostMoney}, throttle.Quotas{}, true, ""},
		{of("1"), account.Budget{Amount: "5", Zone: "Europe/Berlin"}, throttle.Quotas{}, true, ""},
		{of("1"), account.Budget{Amount: "5", Zone: "Local"}, throttle.Quotas{}, true, `budget.zone is "Local"`},
		{of("1"), account.Budget{Per: limit.PeriodDay}, throttle.Quotas{}, true, "budget.amount is not set"},
		{nil, account.Budget{Amount: "5"}, throttle.Quotas{}, true, "budget is set without prices"},
		{nil, account.Budget{}, others, true, "quotas name budget, without prices"},
		{of("1"), account.Budget{}, others, true, ""},
		{of("1"), account.Budget{Amount: "5"}, others, true, "quotas.other.budget is set, and so is budget"},
	} {
		faulty(t, tc.fault, account.CheckMoney(tc.prices, tc.budget, tc.tags, tc.texts), tc)
	}
}

// The budget of a tag is one in millionths, above 0.
func TestBudgetsInQuotas(t *testing.T) {
	for text, want := range map[string]string{
		"{amount: 0.5}": "", "{amount: 0}": "amount is not above 0", "{per: hour}": "amount is not above 0", "{amount: x}": "amount",
		"{amount: 5, zone: Local}": `zone is "Local"`,
	} {
		var doc yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte("{tags: {acme: {budget: "+text+"}}}"), &doc))
		_, of, faults := config.ReadManyQuotas(doc.Content[0], account.QuotaLimits)
		if want == "" {
			require.Empty(t, faults)
			require.Equal(t, []throttle.Budget{{Amount: 500_000, Per: limit.PeriodDay}}, of["budget"].Tags["acme"].Budgets)
			continue
		}
		require.Len(t, faults, 1, text)
		require.Contains(t, faults[0].Field+" "+faults[0].Problem, want)
	}
	for pool, want := range map[string]string{
		"acct/tokens": "tokensPerMinute", "a/b/input": "inputTokensPerMinute", "acct/money": "budget", "/in-flight": "inFlight", "tokens": "", "acct/x": "",
	} {
		require.Equal(t, want, account.QuotaKey(pool), pool)
	}
}
