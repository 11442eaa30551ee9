package otelthrottle_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Tags that are configured are told apart, the first hundred of them; all others are one.
func TestTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		q := throttle.Quotas{
			Tags:  map[string]throttle.Quota{"t000": {Total: 10, Budgets: []throttle.Budget{{Amount: 100, Per: "day"}}}},
			Match: []throttle.QuotaPattern{{Tag: "free/*"}},
		}
		var names []string
		for i := range otelthrottle.MaxTags + 5 {
			name := fmt.Sprintf("t%03d", i)
			names = append(names, name)
			if i > 0 {
				q.Tags[name] = throttle.Quota{}
			}
		}
		th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000}, throttle.WithName("llm"), throttle.WithQuotas(q))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		stop := c.watch(otelthrottle.Watched{Throttle: th, Tags: names})
		time.Sleep(10 * time.Second)
		_, err = th.ForTag("t000").Acquire(t.Context(), 1)
		require.NoError(t, err)
		_, ok := th.ForTag("t000").TryAcquire(1)
		require.False(t, ok)
		for _, other := range []string{"t104", "free/a", "unknown", ""} {
			_, ok := th.ForTag(other).TryAcquire(2)
			require.True(t, ok, other)
		}
		got := map[string]float64{}
		for name, value := range c.collect() {
			if strings.HasPrefix(name, "numathrottle.quota.") && !strings.HasPrefix(name, "numathrottle.quota.target") {
				got[strings.TrimPrefix(name, "numathrottle.quota.")] = value
			}
		}
		require.Equal(t, map[string]float64{
			"used limit=llm tag=t000": 1, "throttled limit=llm tag=t000": 1, "spent limit=llm tag=t000": 0.01,
			"used limit=llm tag=other": 8, "throttled limit=llm tag=other": 0,
		}, got)
		stop()
	})
}
