package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A tag whose budgets are all spent is refused at once where the last of their windows ends after the deadline.
func TestSpentBudgetsRefuseUntilTheLastWindowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * time.Hour) // from midnight
		th := whole(t, Limit{Max: 100, Burst: 100}, WithQuotas(Quotas{Tags: map[string]Quota{"a": {Budgets: []Budget{
			{Amount: 10, Per: limit.PeriodHour, Zone: "UTC"}, {Amount: 15, Per: limit.PeriodDay, Zone: "UTC"},
		}}}}))
		a := th.ForTag("a")
		acquire(t, a, 10)
		time.Sleep(time.Hour)
		take(t, a, 5)
		_ = Charge(a, 5)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		began := time.Now()
		_, err := a.Acquire(ctx, 1)
		require.Equal(t, began, time.Now())
		require.Equal(t, ReasonBudget, throttled(t, err).Reason)
		require.InDelta(t, 13*time.Hour, throttled(t, err).RetryAfter, float64(time.Second))
	})
}

// Processors that know nothing of each other share no budget: a draw above the part of one would wait for ever.
func TestReplicasRefuseBudgets(t *testing.T) {
	half, err := Replicas(2)
	require.NoError(t, err)
	alone, err := Replicas(1)
	require.NoError(t, err)
	some := Quota{Total: 10, Budgets: []Budget{{Amount: 100, Per: limit.PeriodDay}}}
	for setting, q := range map[string]Quotas{
		"tags.a":   {Tags: map[string]Quota{"a": some}},
		"match[1]": {Match: []QuotaPattern{{Tag: "b/*"}, {Tag: "c/*", Quota: some}}},
		"other":    {Other: some},
	} {
		_, err := New(Limit{Max: 100}, WithSharer(half), WithQuotas(q))
		require.EqualError(t, err, "throttle: quotas."+setting+".budgets has length 1, allowed: 0 with Replicas above 1, which share no budget")
		whole(t, Limit{Max: 100}, WithSharer(alone), WithQuotas(q))
	}
	whole(t, Limit{Max: 100}, WithSharer(half), WithQuotas(Quotas{Other: Quota{Total: 10}}))
}
