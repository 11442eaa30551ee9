package consensus_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What operators see while a total holds callers: whose it is, how many callers it holds, and the total as the target, of a tag that goes by
// its name and of one that goes by a pattern.
func TestOperatorsSeeWhoseTotalHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		q := throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {Total: 60}},
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 10}}},
		}
		var nodes []*tenantNode
		for _, id := range []string{"a", "b", "c"} {
			nodes = append(nodes, tenants(t, store, id, q))
		}
		time.Sleep(20 * time.Second)
		overview := func() consensus.Overview {
			o, err := consensus.LoadOverview(context.Background(), store, "pool")
			require.NoError(t, err)
			return o
		}
		target := func(tag string) (targets []float64, by []string) {
			for _, n := range nodes {
				st := n.th.Status()
				if i := slices.IndexFunc(st.Tags, func(s throttle.TagStatus) bool { return s.Tag == tag }); i >= 0 {
					targets, by = append(targets, st.Tags[i].Target), append(by, st.Tags[i].By)
				}
			}
			return targets, by
		}
		planned := func() (use consensus.TagUse) {
			var roster []consensus.RosterRow
			o := overview()
			for i := range o.Processors {
				roster = append(roster, o.Processors[i].RosterRow)
			}
			for _, u := range consensus.PlanTags(roster, q, 1000) {
				if u.Pattern {
					use = u
				}
			}
			return use
		}

		nodes[0].call(t, "free/x", 1)
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, planned().Target, 2)
		require.Equal(t, "total", planned().By)
		targets, by := target("free/x")
		require.Equal(t, []any{[]float64{10}, []string{"total"}}, []any{targets, by})
		require.Equal(t, consensus.HashedTag("free/x"), overview().Processors[0].Tag)

		for _, n := range nodes {
			n.call(t, "acme", 4)
			n.call(t, "free/x", 2)
		}
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, planned().Target, 2)
		require.Equal(t, "total", planned().By)
		targets, by = target("free/x")
		require.Equal(t, []any{[]float64{10, 10, 10}, []string{"total", "total", "total"}}, []any{targets, by})
		targets, by = target("acme")
		require.Equal(t, []any{[]float64{60, 60, 60}, []string{"total", "total", "total"}}, []any{targets, by})
		o := overview()
		for i := range o.Processors {
			require.Equal(t, "quota (acme)", o.Processors[i].Why())
			require.GreaterOrEqual(t, o.Processors[i].Waiting, 4)
		}
		for _, n := range nodes {
			up, ok := n.th.HoldUp()
			require.True(t, ok)
			require.Equal(t, "acme", up.Tag)
			times := map[throttle.Reason]time.Duration{}
			for _, s := range n.th.WaitStats() {
				times[s.Reason] = s.Time
			}
			require.Greater(t, times[throttle.ReasonQuota], 9*time.Second)
		}

		_, err := nodes[0].m.Pause(context.Background(), time.Now().Add(time.Minute), "test")
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		o = overview()
		for i := range o.Processors {
			require.Equal(t, throttle.ReasonPause, o.Processors[i].Throttled)
			require.Empty(t, o.Processors[i].Tag)
		}
	})
}
