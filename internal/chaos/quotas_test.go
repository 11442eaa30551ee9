//go:build numathrottle_faults

package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// tenantName is the tag that all workers draw for in a pool with a quota.
const tenantName = "tenant"

// A tenantQuota is the quota of the tag that all workers draw for. The limit is so much larger that it does not count.
type tenantQuota struct {
	// Total is the tag's total for a second; Burst is that of the pool. Budget is for a calendar month.
	Total  int
	Budget int64
}

// limitAboveTotal is how many times the total the limit is.
const limitAboveTotal = 4

// option is the quota as a limiter takes it.
func (q tenantQuota) option(burst int) throttle.Option {
	quota := throttle.Quota{Total: q.Total, Burst: burst}
	if q.Budget > 0 {
		quota.Budgets = []throttle.Budget{{Amount: q.Budget, Per: "month"}}
	}
	return throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{tenantName: quota}})
}

// TestQuotaFaults breaks real stores under pools of real processes that draw for one tag: no window holds more than its
// total allows, and no month more than its budget.
func TestQuotaFaults(t *testing.T) {
	t.Parallel() // with the other stores: nearly all of it is waiting
	g := newLedger(t, "Q1", fmt.Sprintf("processes of this module that draw for one tag, on %s and on three nats-server %s",
		redisVersion(t), server.VERSION))
	outages := &spans{}
	t.Run("lanes", func(t *testing.T) {
		for name, lane := range map[string]func(*testing.T, *ledger){
			"total": func(t *testing.T, g *ledger) { atRest(limitLane(t, g, "total of a tag: ", poolConfig{Total: true})) },
			"total, nats": func(t *testing.T, g *ledger) {
				atRest(limitNATSLane(t, g, outages, "total of a tag: ", poolConfig{Total: true}))
			},
			"budget": budgetLane,
		} {
			t.Run(name, func(t *testing.T) {
				inTurn(t)
				lane(t, g)
			})
		}
	})
	g.record(t, "quotas")
}

// atRest judges a whole window of the longest length in which nothing breaks: between faults there is none.
func atRest(l *lane) {
	l.pass(windowLengths[len(windowLengths)-1] + time.Second)
	l.judge("at rest")
}

// budgetLane breaks a Redis under a pool that spends the budget of a month, and goes on asking: what is spent is at
// most the budget, though the store forgets it while the processes remember.
func budgetLane(t *testing.T, _ *ledger) {
	const budget = 3000
	server := testenv.Redis(t)
	l := &lane{TB: t, pool: startPool(t, poolConfig{Stores: everyone("redis://" + server.Addr()), Total: true, Budget: budget})}
	used := func() int { return int(l.pool.service.seen()) }
	wait := func(n int) {
		l.until(fmt.Sprint(n, " calls"), func(ctx context.Context) error {
			if used() < n {
				return fmt.Errorf("%d calls", used())
			}
			return nil
		})
	}
	wait(budget / 4)
	client := redisClient(t, server)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	wait(budget / 2)
	ctx, cancel := l.bounded()
	defer cancel()
	require.NoError(t, server.Kill())
	l.pass(time.Second)
	require.NoError(t, server.Restart(ctx))
	wait(budget * 3 / 4)
	// Until nothing is spent any more for longer than a freeze.
	for before := -1; before != used(); {
		before = used()
		l.pass(l.pool.forgotten() + stateKept)
	}
	require.LessOrEqual(t, used(), budget)
	t.Logf("%d of %d spent", used(), budget)
}
