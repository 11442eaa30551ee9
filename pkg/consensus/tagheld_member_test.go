package consensus_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What operators see while a total holds callers: whose it is, how many callers it holds, and the total as the target, of a tag that goes by
// its name and of one that goes by a pattern.
func TestOperatorsSeeWhoseTotalHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {Total: 60}},
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 10}}},
		}
		p := newMatrixPool(t, 3, throttle.Limit{Max: 1000}, q)
		time.Sleep(20 * time.Second)
		overview := func() protocol.Overview {
			o, err := protocol.LoadOverview(context.Background(), p.store, "pool")
			require.NoError(t, err)
			return o
		}
		target := func(tag string) (targets []float64, by []string) {
			for _, th := range p.pods {
				st := th.Status()
				if i := slices.IndexFunc(st.Tags, func(s throttle.TagStatus) bool { return s.Tag == tag }); i >= 0 {
					targets, by = append(targets, st.Tags[i].Target), append(by, st.Tags[i].By)
				}
			}
			return targets, by
		}
		planned := func() (use protocol.TagUse) {
			var roster []driver.RosterRow
			o := overview()
			for i := range o.Processors {
				roster = append(roster, o.Processors[i].RosterRow)
			}
			for _, u := range protocol.PlanTags(roster, q, 1000) {
				if u.Pattern {
					use = u
				}
			}
			return use
		}

		heldAtTotal := func(use protocol.TagUse) {
			t.Helper()
			require.Equal(t, "total", use.By)
			// Of all names of the pattern, of which one is at its total. What is used is measured over two intervals, and tokens come in batches.
			require.InDelta(t, max(use.Used, 10), use.Target, 1e-9)
			require.Less(t, use.Used, 20.0)
		}

		p.closed(p.pods[0], "free/x", 1, 1)
		time.Sleep(10 * time.Second)
		heldAtTotal(planned())
		targets, by := target("free/x")
		require.Equal(t, []any{[]float64{10}, []string{"total"}}, []any{targets, by})
		const looks = 40 // at one moment all callers may have their tokens
		reported, held := 0, 0
		for range looks {
			time.Sleep(250 * time.Millisecond)
			if overview().Processors[0].Tag == "#fd8fb7ef1f" { // free/x
				reported++
			}
		}
		require.Greater(t, reported, looks*3/4)

		for _, th := range p.pods {
			p.closed(th, "acme", 4, 1)
			p.closed(th, "free/x", 2, 1)
		}
		time.Sleep(10 * time.Second)
		heldAtTotal(planned())
		targets, by = target("free/x")
		require.Equal(t, []any{[]float64{10, 10, 10}, []string{"total", "total", "total"}}, []any{targets, by})
		targets, by = target("acme")
		require.Equal(t, []any{[]float64{60, 60, 60}, []string{"total", "total", "total"}}, []any{targets, by})
		reported = 0
		for range looks {
			time.Sleep(250 * time.Millisecond)
			o := overview()
			for i := range o.Processors {
				if o.Processors[i].Why() == "quota (acme)" {
					require.Positive(t, o.Processors[i].Waiting)
					reported++
				}
			}
			for _, th := range p.pods {
				if up, ok := th.HoldUp(); ok && up.Tag == "acme" {
					held++
				}
			}
		}
		require.Greater(t, reported, len(p.pods)*looks*3/4)
		require.Greater(t, held, len(p.pods)*looks*3/4)
		for _, th := range p.pods {
			for _, s := range th.WaitStats() {
				if s.Reason == throttle.ReasonQuota {
					require.Greater(t, s.Time, 19*time.Second)
				}
			}
		}

		_, err := p.pods[0].Pause(context.Background(), time.Now().Add(time.Minute), "test")
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		o := overview()
		for i := range o.Processors {
			require.Equal(t, throttle.ReasonPause, o.Processors[i].Throttled)
			require.Empty(t, o.Processors[i].Tag)
		}
	})
}

// Nobody knows how much the tags of a pattern may use together. While nothing holds them back, operators see what they ask for: of the
// pattern, and of a tag that has no total.
func TestTheTargetOfAPatternIsItsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {}},
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 10}}, {Tag: "gold/*", Quota: throttle.Quota{Weight: 5}}},
		}
		p := newMatrixPool(t, 1, throttle.Limit{Max: 1000}, q)
		for _, tag := range []string{"acme", "free/x", "free/y", "gold/x"} {
			p.open(p.pods[0], tag, 7.5, 1)
		}
		time.Sleep(30 * time.Second)
		o, err := protocol.LoadOverview(context.Background(), p.store, "pool")
		require.NoError(t, err)
		roster := []driver.RosterRow{o.Processors[0].RosterRow}
		for _, u := range protocol.PlanTags(roster, q, 1000) {
			want := map[string]float64{"acme": 1000, "free/*": 15, "gold/*": 7.5}[u.Tag]
			require.InDelta(t, want, u.Target, 2, u.Tag)
			require.Equal(t, "demand", u.By)
		}
		targets := map[string]float64{}
		for _, s := range p.pods[0].Status().Tags {
			targets[s.Tag] = s.Target
		}
		require.InDeltaMapValues(t, map[string]float64{"acme": 1000, "free/x": 10, "free/y": 10, "gold/x": 7.5}, targets, 2)
	})
}
