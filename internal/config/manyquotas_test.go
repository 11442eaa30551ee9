package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

var someLimits = []QuotaLimit{{Key: "requestsPerMinute"}, {Key: "tokensPerMinute"}, {
	Key: "budget", Form: Schema{"type": "integer"},
	Read: func(n *yaml.Node, _ string) (limit.Quota, []BlockFault) {
		if n.Value != "25" {
			return limit.Quota{}, []BlockFault{{"budget", "is " + n.Value, "25", n.Line}}
		}
		return limit.Quota{Budgets: []limit.Budget{{Amount: 25, Per: limit.PeriodDay}}}, nil
	},
}}

func many(t *testing.T, text string) (limit.Quotas, map[string]limit.Quotas, []BlockFault) {
	t.Helper()
	n, fault := parseYAML([]byte(text), quotasKey)
	require.Nil(t, fault)
	return ReadManyQuotas(n, someLimits)
}

// A tag's quota names limits: a number is a total, a mapping a quota. Each tag of the block has a quota of each limit that the block names.
func TestQuotasThatNameLimits(t *testing.T) {
	main, of, faults := many(t, `
tags:
  acme: {requestsPerMinute: 50, tokensPerMinute: {reserved: 20000, total: 60000, class: batch}, budget: 25}
  none: {requestsPerMinute: 0}
  free: {requestsPerMinute: none}
match:
- {tag: "team-*", requestsPerMinute: "20"}
other: {tokensPerMinute: 5000}
`)
	require.Empty(t, faults)
	require.False(t, main.Given(), "no quota is one of the main limit")
	require.Equal(t, map[string]limit.Quotas{
		"requestsPerMinute": {
			Tags:  map[string]limit.Quota{"acme": {Total: 50}, "none": {Blocked: true}, "free": {}},
			Match: []limit.QuotaPattern{{Tag: "team-*", Quota: limit.Quota{Total: 20}}},
		},
		"tokensPerMinute": {
			Tags:  map[string]limit.Quota{"acme": {Reserved: 20_000, Total: 60_000, Class: limit.ClassBatch}, "none": {}, "free": {}},
			Match: []limit.QuotaPattern{{Tag: "team-*"}}, Other: limit.Quota{Total: 5000},
		},
		"budget": {
			Tags:  map[string]limit.Quota{"acme": {Budgets: []limit.Budget{{Amount: 25, Per: limit.PeriodDay}}}, "none": {}, "free": {}},
			Match: []limit.QuotaPattern{{Tag: "team-*"}},
		},
	}, of)
}

// Quotas that name no limit are those of the main one, also beside others.
func TestQuotasOfTheMainLimit(t *testing.T) {
	for text, named := range map[string]int{
		"{}":                           0,
		"{tags: {a: {total: 5}}}":      0,
		"{tags: {a: {}}}":              0,
		"{other: {weight: 2}}":         0,
		"{match: [{tag: a, per: 1s}]}": 0,
		"{tags: {a: {total: 5}, b: {requestsPerMinute: 5}}}":                           1,
		"{tags: {b: {requestsPerMinute: 5, per: 1h}}}":                                 1,
		"{tags: {b: {requestsPerMinute: 5}}, match: [{tag: a}]}":                       1,
		"{tags: {b: {requestsPerMinute: 5}}, other: {total: 1}}":                       1,
		"{tags: {a: {}}, match: [{tag: c, tokensPerMinute: {}}], other: {budget: 25}}": 2,
	} {
		main, of, faults := many(t, text)
		require.Empty(t, faults, text)
		require.True(t, main.Given(), text)
		require.Len(t, of, named, text)
	}
	main, _, _ := many(t, "{tags: {a: {total: 5, per: 1m}, b: {requestsPerMinute: 5}}}")
	require.Equal(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 5, Per: time.Minute}, "b": {}}}, main)
}

func TestFaultsOfQuotasThatNameLimits(t *testing.T) {
	for text, want := range map[string]string{
		"{tags: {a: {requestsPerMinute: -1}}}":                 `is "-1", allowed: a whole number up to 1000000000, none, or a quota`,
		"{tags: {a: {requestsPerMinute: 1.5}}}":                `quotas.tags.a.requestsPerMinute is "1.5"`,
		"{tags: {a: {requestsPerMinute: 1000000001}}}":         `quotas.tags.a.requestsPerMinute is "1000000001"`,
		"{tags: {a: {requestsPerMinute: [5]}}}":                "quotas.tags.a.requestsPerMinute is a list",
		"{tags: {a: {requestsPerMinute: {totl: 5}}}}":          "quotas.tags.a.requestsPerMinute.totl is not a setting; did you mean total?",
		"{tags: {a: {requestsPerMinutes: 5}}}":                 "quotas.tags.a.requestsPerMinutes is not a setting; did you mean requestsPerMinute?",
		"{match: [{tag: a, tokensPerMinute: {total: x}}]}":     `quotas.match[0].tokensPerMinute.total is "x"`,
		"{other: {budget: 24}}":                                "quotas.other.budget is 24, allowed: 25",
		"{tags: {a: {tokensPerMinute: {budget: 25}}}}":         "quotas.tags.a.tokensPerMinute.budget is not a setting",
		"{tags: {a: {tokensPerMinute: {tokensPerMinute: 5}}}}": "quotas.tags.a.tokensPerMinute.tokensPerMinute is not a setting",
	} {
		_, _, faults := many(t, text)
		require.Len(t, faults, 1, text)
		f := limit.FieldError{Field: faults[0].Field, Problem: faults[0].Problem, Allowed: faults[0].Allowed}
		require.Contains(t, f.Error(), want)
	}
}
