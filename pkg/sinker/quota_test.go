package sinker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A tag's budget that says so sends what it refuses to the fallback sink, whatever OnDenied is; other tags go on.
func TestBudgetSendsToTheFallbackSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000}, throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"a": {Budgets: []throttle.Budget{{Amount: 1, Per: "day", Then: "fallback"}}}},
		}))
		require.NoError(t, err)
		defer th.Close()
		time.Sleep(time.Second)
		_, ok := th.ForTag("a").TryAcquire(1)
		require.True(t, ok)
		s := sinker.Wrap(&handler{}, th, sinker.WithTag(func(d sinksdk.Datum) string { return map[string]string{"1": "a", "2": "b"}[d.ID()] }))
		in := make(chan sinksdk.Datum, 2)
		in <- datum{"1"}
		in <- datum{"2"}
		close(in)
		got := map[string]bool{}
		for _, r := range s.Sink(context.Background(), in) {
			got[r.ID] = r.Fallback
		}
		require.Equal(t, map[string]bool{"1": true, "2": false}, got)
	})
}
