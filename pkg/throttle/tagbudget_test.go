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
			{Amount: 10, Per: limit.Hour, Zone: "UTC"}, {Amount: 15, Per: limit.Day, Zone: "UTC"},
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
