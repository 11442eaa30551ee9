package account

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A call whose answer has no bound draws no more than its tag's quota ever grants. What a quota only counts bounds nothing.
func TestMostOfAQuota(t *testing.T) {
	budget := func(n int64, then limit.Then) []throttle.Budget {
		return []throttle.Budget{{Amount: n, Per: limit.PeriodDay, Then: then}}
	}
	hard := throttle.Quota{Total: 500, Hard: true, Per: time.Minute}
	for name, tc := range map[string]struct {
		quota throttle.Quota
		want  int
	}{
		"none":                       {throttle.Quota{Reserved: 5}, 0},
		"a total":                    {throttle.Quota{Total: 500}, 500},
		"a hard total":               {hard, int(hard.Largest())},
		"hard without a total":       {throttle.Quota{Hard: true, Reserved: 5}, 0},
		"a budget":                   {throttle.Quota{Total: 500, Budgets: budget(300, limit.ThenRefuse)}, 300},
		"a larger budget":            {throttle.Quota{Total: 500, Budgets: budget(900, limit.ThenFallback)}, 500},
		"a budget that lowers":       {throttle.Quota{Budgets: budget(300, limit.ThenLower)}, 0},
		"a total that is shown only": {throttle.Quota{Total: 500, Shadow: true}, 0},
	} {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": tc.quota}, Other: throttle.Quota{Total: 7}}
		require.Equal(t, tc.want, mostOf(q, "acme"), name)
		require.Equal(t, 7, mostOf(q, "x"), name)
	}
}

// The tighter of both levels counts; a key without a quota of its own has that of its team alone.
func TestMostOfTwoLevels(t *testing.T) {
	q := throttle.Quotas{
		Tags:  map[string]throttle.Quota{"a": {Total: 500}, "b": {}, "c": {Total: 500}},
		Match: []throttle.QuotaPattern{{Tag: "a/*", Quota: throttle.Quota{Total: 300}}, {Tag: "b/*", Quota: throttle.Quota{Total: 900}}},
		Other: throttle.Quota{Total: 7},
	}
	for tag, want := range map[string]int{"a": 300, "b": 900, "c": 500} {
		require.Equal(t, want, (&limiter{first: tag, tag: tag + "/k"}).mostOf(q), tag)
	}
	require.Equal(t, 300, (&limiter{tag: "a/k"}).mostOf(q))
	require.Equal(t, 7, (&limiter{tag: "x"}).mostOf(q))
}
