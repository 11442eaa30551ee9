package opening

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A draw above the burst of one limit, which collects its tokens there for a while, also gets those of a budget beside it. The budget's tokens
// lapse meanwhile, and the pool is asked for them again.
func TestALargeDrawGetsItsBudgetToo(t *testing.T) {
	budget := throttle.Quota{Budgets: []throttle.Budget{{Amount: 1_000_000, Per: limit.PeriodDay}}}
	twenty := throttle.Limit{Max: 3000, Per: time.Minute, Burst: 50}
	for name, tc := range map[string]struct {
		of    throttle.Limit
		quota throttle.Quota
	}{
		"10 s a draw": {throttle.Limit{Max: 6000, Per: time.Minute, Burst: 100}, budget}, "20 s a draw": {twenty, budget},
		"a minute a draw": {throttle.Limit{Max: 1000, Per: time.Minute, Burst: 17}, budget},
		"adaptive":        {throttle.Limit{Max: 3000, Per: time.Minute, Burst: 50, Adaptive: true}, budget},
		"a total":         {twenty, throttle.Quota{Total: 6000, Per: time.Minute}},
		"a reservation":   {twenty, throttle.Quota{Reserved: 6000, Per: time.Minute}},
	} {
		of := tc.of
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quotas := throttle.Quotas{Other: tc.quota}
				var all []throttle.Limiter
				for i, c := range []Config{{Limit: of}, {Limit: throttle.Limit{Max: 1_000_000_000}, Quotas: quotas}} {
					c.Store, c.Pool, c.ID = fmt.Sprintf("memory://collect%d", time.Now().UnixNano()), fmt.Sprint("p", i), "a"
					th, err := Open(t.Context(), c)
					require.NoError(t, err)
					all = append(all, th)
					defer func() { require.NoError(t, th.Close()) }()
				}
				l := throttle.All(all...)
				time.Sleep(20 * time.Second)
				began := time.Now()
				for range 5 {
					p, err := l.Acquire(t.Context(), 1000)
					require.NoError(t, err)
					p.Settle(1000)
				}
				require.InDelta(t, 5*1000/of.Rate(), time.Since(began).Seconds(), 12)
			})
		})
	}
}
