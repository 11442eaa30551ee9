package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// One processor that does not know quotas makes all go by total x own share, which is safe; with tag buckets it is full use again.
func TestAPoolWithAnOlderProcessorDividesTotalsByShares(t *testing.T) {
	p := newTagPool(t, 1000, acme(0, 200), 4)
	p.everywhere("", 600)
	p.everywhere("acme", 200)
	old := p.join()
	old.p.tags = tagging{} // of a release without quotas
	old.asks[""] = 10
	p.run(3 * time.Second)
	paid := p.record.TagBuckets[0].Paid // before all were known
	p.run(20 * time.Second)
	require.Equal(t, paid, p.record.TagBuckets[0].Paid)
	most := p.worst("acme", 10*time.Second)
	require.LessOrEqual(t, most, p.bound("acme", 10*time.Second))
	require.Greater(t, most, 1000.0, "it is not shut out")
	p.members = p.members[:4] // it dies
	p.run(40 * time.Second)
	require.Len(t, p.record.TagBuckets, 1)
	require.InDelta(t, 200, p.rate("acme", 10*time.Second), 6)
}

// T9: without the store nothing is granted after two intervals with Stop, and total x share with Degrade.
func TestTagsWithoutTheStore(t *testing.T) {
	for name, loss := range map[string]StoreLoss{"stop": Stop, "degrade": Degrade} {
		t.Run(name, func(t *testing.T) {
			p := newTagPool(t, 1000, acme(0, 200), 0)
			for range 4 {
				p.join(func(c *ProcessorConfig) { c.OnStoreLoss = loss })
			}
			p.everywhere("acme", 500)
			p.run(20 * time.Second)
			for _, m := range p.members {
				m.lost = true
			}
			p.run(3 * time.Second)
			p.run(5 * time.Second)
			require.Zero(t, p.rate("acme", 5*time.Second), "what was drawn is void; the lease lasts longer")
			p.run(30 * time.Second)
			rate := p.rate("acme", 20*time.Second)
			if loss == Stop {
				require.Zero(t, rate)
				return
			}
			require.InDelta(t, 200, rate, 10)
			require.LessOrEqual(t, p.worst("acme", 10*time.Second), p.bound("acme", 10*time.Second))
			for _, m := range p.members {
				m.lost = false
			}
			p.run(40 * time.Second)
			require.InDelta(t, 200, p.rate("acme", 20*time.Second), 6)
			require.LessOrEqual(t, p.worst("acme", 3*time.Second), p.bound("acme", 3*time.Second)+200*2, "and lots of both kinds for as long as they are good")
		})
	}
}

// Q1 with a store that loses everything, again and again.
func TestTotalsHoldThoughTheStoreForgets(t *testing.T) {
	p := newTagPool(t, 1000, acme(0, 200), 5)
	p.server = "one"
	p.everywhere("acme", 100)
	p.everywhere("", 300)
	p.run(30 * time.Second)
	for i := range 6 {
		if p.record = (driver.Record{}); i%2 == 0 {
			p.server += "x"
		}
		p.run(25*time.Second + time.Duration(i)*130*time.Millisecond)
		require.InDelta(t, 200, p.rate("acme", 2*time.Second), 20, i)
	}
	for _, w := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
		require.LessOrEqual(t, p.worst("acme", w), p.bound("acme", w), w)
	}
}

// Budgets are exact over the whole pool, and begin again with each window.
func TestABudgetIsExactOverThePool(t *testing.T) {
	q := limit.Quotas{Tags: map[string]limit.Quota{"acme": {Budgets: []limit.Budget{{Amount: 500, Per: limit.PeriodHour}}}}}
	p := newTagPool(t, 1000, q, 4)
	p.everywhere("acme", 20)
	p.everywhere("", 100)
	spent := func() (n float64) {
		for _, m := range p.members {
			n += float64(m.stocks["acme"].Used)
		}
		return n
	}
	p.run(60 * time.Second)
	require.LessOrEqual(t, spent(), 500.0)
	require.GreaterOrEqual(t, spent(), 490.0, "next to nothing is lost")
	for _, m := range p.members {
		v := m.p.View(p.now)
		require.Equal(t, "budget", v.Tags[1].By)
		require.Equal(t, []int64{500, 500}, []int64{v.Tags[1].Spent, v.Tags[1].Budget})
		require.Len(t, m.p.tags.own, 1, "it counts for nothing, and others get its part")
	}
	p.now = time.Hour + 10*time.Second - time.Duration(tagBase.Unix()%3600)*time.Second
	require.Positive(t, p.now)
	p.used = map[string][]float64{}
	p.run(60 * time.Second)
	require.LessOrEqual(t, spent(), 1000.0)
	require.GreaterOrEqual(t, spent(), 970.0, "what is in hand when a window ends, or nobody syncs, is lost")
}

// Q2 when a processor dies: what is reserved comes first from what is not claimed by it.
func TestReservedComesFirstWhileAClaimIsDead(t *testing.T) {
	p := newTagPool(t, 1000, acme(300, 0), 5)
	p.everywhere("", 400)
	p.everywhere("acme", 60)
	p.run(10 * time.Second)
	require.InDelta(t, 300, p.rate("acme", 3*time.Second), 15)
	p.members = p.members[:4]
	p.everywhere("acme", 75)
	p.run(6 * time.Second)
	require.GreaterOrEqual(t, p.rate("acme", 2*time.Second), 290.0)
}

// A pool without quotas sends what it always sent.
func TestAProcessorWithoutQuotasSaysNothingOfTags(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, thousandOf(1000)))})
	req := p.Request(0, 1, Observation{Demand: driver.Whole})
	require.Empty(t, req.Busy)
	require.Empty(t, req.Draws)
	require.Nil(t, p.Orders(0, 0, tagBase).Grants)
	require.Nil(t, p.View(0).Tags)
}

// Syncs stay one for each interval, and a tenth of it only while a share is on its way.
func TestTagsDoNotMakeSyncsMoreFrequent(t *testing.T) {
	p := newTagPool(t, 1000, acme(0, 200), 4)
	p.everywhere("acme", 500)
	p.everywhere("", 500)
	p.run(10 * time.Second)
	before := p.nonce
	p.run(60 * time.Second)
	require.LessOrEqual(t, p.nonce-before, uint64(4*60*12/10))
}
