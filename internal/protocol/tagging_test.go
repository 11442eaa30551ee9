package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
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

// taggedProcessor returns a processor with the quota of a tag, alone in its pool of 1000 tokens per second, which it holds.
func taggedProcessor(t *testing.T, q limit.Quota) *Processor {
	t.Helper()
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	quotas := limit.Quotas{Tags: map[string]limit.Quota{"acme": q}}.WithDefaults(sec)
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, thousandOf(1000))), Quotas: &quotas})
	p.state, p.until, p.held, p.tags.policy.capable = StateHolding, time.Hour, driver.Whole/4, true
	p.Answer.Live = 2
	return p
}

// Early requests are saved up for five intervals, to the moment.
func TestWhenATagMayAskEarly(t *testing.T) {
	e := extraSyncs{}
	taken := func(now time.Duration) (n int) {
		for n < 9 && e.take(now, sec) {
			n++
		}
		return n
	}
	require.Equal(t, 5, taken(20*sec))
	require.Zero(t, taken(21*sec-1))
	require.Equal(t, 1, taken(21*sec))
	require.Equal(t, 3, taken(24*sec))

	p := taggedProcessor(t, limit.Quota{})
	require.Equal(t, p.Interval(), p.tags.pokeEvery(&p.core))
	p.tags.slots.most = 1
	for live, every := range map[int]time.Duration{1: sec / 10, 32: sec / 2, 64: sec, 100: p.Interval()} {
		p.Answer.Live = live
		require.Equal(t, every, p.tags.pokeEvery(&p.core), live)
	}
}

// Which quotas a limiter may have: those of a limit of tokens, or of calls in flight. Tags may be short of tokens of their own if one of
// the quotas has them.
func TestConfiguringQuotas(t *testing.T) {
	total := limit.Quota{Total: 5}
	patterns := []limit.QuotaPattern{{Tag: "*"}, {Tag: "x", Quota: total}}
	tokens := hook.Ceiling(limitOf(t, thousandOf(1000)))
	for name, c := range map[string]struct {
		terms       sharing.Terms
		on, buckets bool
		most        int
	}{
		"none":         {sharing.Terms{Ceiling: tokens}, false, false, 0},
		"no limit":     {sharing.Terms{Quotas: &limit.Quotas{}}, false, false, 0},
		"tokens":       {sharing.Terms{Ceiling: tokens, Quotas: &limit.Quotas{}}, true, false, 0},
		"slots":        {sharing.Terms{Slots: 3, Quotas: &limit.Quotas{}}, true, false, 3},
		"both":         {sharing.Terms{Ceiling: tokens, Slots: 3, Quotas: &limit.Quotas{}}, true, false, 0},
		"for a tag":    {sharing.Terms{Ceiling: tokens, Quotas: &limit.Quotas{Tags: map[string]limit.Quota{"a": total, "b": {}}}}, true, true, 0},
		"for others":   {sharing.Terms{Ceiling: tokens, Quotas: &limit.Quotas{Other: total, Tags: map[string]limit.Quota{"b": {}}}}, true, true, 0},
		"of a pattern": {sharing.Terms{Ceiling: tokens, Quotas: &limit.Quotas{Match: patterns}}, true, true, 0},
	} {
		p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
		p.Configure(c.terms)
		require.Equal(t, c.on, p.tags.on, name)
		require.Equal(t, c.buckets, p.tags.buckets, name)
		require.Equal(t, c.most, p.tags.slots.most, name)
		require.Equal(t, time.Duration(map[bool]int{true: 2}[c.on])*p.Interval(), p.tags.soon(&p.core), name)
	}
}

// A processor gives its tags tokens itself when it goes on without the store, or while another one knows no quotas: by its share, once
// per usual interval. If it holds no share it gives them to nobody, nor about to leave. Otherwise only tags without a bucket live on that.
func TestWhoGivesTagsTokensWithoutTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		but          func(p *Processor)
		alone, gives bool
		due          bool
	}{
		"the store does it":       {func(*Processor) {}, false, false, false},
		"without the store":       {func(p *Processor) { p.degraded = true }, true, true, true},
		"it has done so":          {func(p *Processor) { p.degraded, p.tags.rationed = true, 9*sec+1 }, true, true, false},
		"in the last interval":    {func(p *Processor) { p.degraded, p.tags.rationed = true, 9*sec }, true, true, true},
		"an older one is there":   {func(p *Processor) { p.tags.policy.capable = false }, true, true, false},
		"and it holds nothing":    {func(p *Processor) { p.tags.policy.capable, p.state = false, StateLost }, false, false, false},
		"though it's degraded":    {func(p *Processor) { p.degraded, p.state = true, StateLost }, true, true, true},
		"about to leave":          {func(p *Processor) { p.degraded, p.tags.retired = true, true }, true, false, true},
		"calls in flight":         {func(p *Processor) { p.degraded, p.tags.slots.most = true, 5 }, true, false, false},
		"without quotas":          {func(p *Processor) { p.degraded, p.tags.on = true, false }, true, false, false},
		"a tag without a bucket":  {func(p *Processor) { p.tags.book.accounts[0].lack = driver.LackFull }, false, true, false},
		"not while it's a joiner": {func(p *Processor) { p.tags.book.accounts[0].lack, p.state = driver.LackFull, StateJoining }, false, false, false},
		"nor with a budget": {func(p *Processor) {
			p.tags.book.accounts[0].lack, p.tags.book.accounts[0].quota.Budgets = driver.LackFull, []limit.Budget{daily}
		}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := taggedProcessor(t, limit.Quota{Total: 40})
			p.Lease = 10 * sec
			p.tags.book.accounts = []tagAccount{{quota: limit.Quota{Total: 40}.WithDefaults(sec)}}
			p.tags.book.accounts[0].Waiting = 50
			c.but(p)
			require.Equal(t, c.alone, p.tags.alone(&p.core))
			require.Equal(t, c.due, p.RationDue(10*sec))
			p.tags.ration(&p.core, 10*sec)
			want := int64(0)
			if c.gives {
				want = 10 // a quarter of the total
			}
			require.Equal(t, want, p.tags.book.accounts[0].batch.tokens)
		})
	}
}

// A processor's share of the pool is that of the limit, or an even one while tokens are issued.
func TestTheShareOfATag(t *testing.T) {
	p := taggedProcessor(t, limit.Quota{})
	require.InDelta(t, 0.25, p.tags.share(&p.core, 0), 0)
	p.issuing = true
	require.InDelta(t, 0.5, p.tags.share(&p.core, 0), 0)
	p.Answer.Live = 0
	require.InDelta(t, 1, p.tags.share(&p.core, 0), 0)
	require.InDelta(t, 1000, p.rateInForce(0), 0)
	p.tags.slots.most = 7
	require.InDelta(t, 7, p.rateInForce(0), 0)

	p = taggedProcessor(t, limit.Quota{})
	require.Equal(t, p.Interval()*19/20, p.TagKeep())
	p.tags.retired = true
	require.Equal(t, wire.MaxReach, p.TagKeep())
	require.Zero(t, (&Processor{}).rateInForce(0), "no limit is known")
}

// What a tag has beyond its guarantee is lowered in proportion.
func TestLoweringTags(t *testing.T) {
	p := taggedProcessor(t, limit.Quota{Reserved: 100})
	k, other := p.tags.policy.index[acmeKey()], p.tags.policy.index[0]
	for _, c := range []struct{ own, held, part, want float64 }{{300, 100, 0.25, 150}, {300, 0, 0.5, 150}, {80, 100, 0.25, 80}, {100, 100, 0, 100}} {
		p.tags.policy.plan.Held = []fairtags.Busy{{Key: acmeKey(), Rate: c.held}}
		p.tags.policy.plan.Own = make([]float64, 2)
		p.tags.policy.plan.Own[k], p.tags.policy.plan.Own[other] = c.own, 60
		before := p.tags.policy.plan.Own
		p.tags.lower(c.part)
		require.InDelta(t, c.want, p.tags.policy.plan.Own[k], 1e-9)
		require.InDelta(t, 60*c.part, p.tags.policy.plan.Own[other], 1e-9)
		require.InDelta(t, c.own, before[k], 0, "a copy keeps its plan")
	}
}
