package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// withoutRoom runs syncs of a tag for which the store has no tag bucket, and returns what it got in all.
func (k *bookkeeper) withoutRoom(syncs int, share float64, r sharing.TagReport) (got int64) {
	for i := range syncs {
		now := 6*sec + time.Duration(i)*sec
		k.report(now, sec, false, []sharing.TagReport{r})
		k.grantLocally(now, sec, time.Hour, 4, share, func(a *tagAccount) bool { return a.lack == driver.LackFull })
		for _, g := range k.grants(tagBase, now) {
			got += g.Batch.Tokens
			r.Used += g.Batch.Tokens
		}
		var drawn []driver.Drawn
		for _, d := range k.draws(now, sec, 4, false) {
			drawn = append(drawn, driver.Drawn{Key: d.Key, Lack: driver.LackFull, Spent: make([]int64, len(d.Budgets))})
		}
		k.take(now, now, sec, &driver.Answer{Wall: wallZero, Draws: drawn})
	}
	return got
}

// T8: a tag without a tag bucket lives on this processor's part of its budget, once.
func TestABudgetWithoutATagBucketIsSpentOnce(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	require.EqualValues(t, 25, k.withoutRoom(20, 0.25, sharing.TagReport{Tag: "a", Waiting: 40}), "a quarter of 100")
}

// T8: the part of a small total adds up to whole tokens.
func TestASmallTotalWithoutATagBucketAddsUp(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 60, Per: time.Minute, Burst: 1}}})
	got := k.withoutRoom(41, 0.25, sharing.TagReport{Tag: "a", Waiting: 5})
	require.InDelta(t, 10, got, 1, "a quarter of one each second")
}

// T8: what calls cost above what was drawn counts against the part as well.
func TestWhatIsOwedWithoutATagBucketCounts(t *testing.T) {
	k := keep(t, one(40))
	got := k.withoutRoom(41, 0.25, sharing.TagReport{Tag: "a", Waiting: 50, Owed: 4})
	require.InDelta(t, 6*40, got, 20, "10 each second, 4 of which are owed")
}

// An answer to a request without draws says nothing of what an earlier one told.
func TestWhatIsOwedSurvivesRequestsWithoutDraws(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a", OnStoreLoss: Degrade}, "1")
	q := one(100).WithDefaults(sec)
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 1000})), Quotas: &q})
	var record driver.Record
	sync := func(now time.Duration, answered bool, reports ...sharing.TagReport) driver.Request {
		p.Yield(now, driver.Whole, reports)
		req := p.Request(now, uint64(now), Observation{Demand: driver.Whole})
		if !answered {
			p.Failed(now, req.Seq)
			return req
		}
		ans, _ := record.Sync(&req, driver.At{Now: wallZero + now.Microseconds()})
		require.NoError(t, p.Take(now, ans, "2"))
		return req
	}
	now := time.Duration(0)
	for ; now < 30*sec; now += sec / 2 {
		sync(now, true, sharing.TagReport{Tag: "a", Waiting: 1})
	}
	require.EqualValues(t, 7, sync(now, false, sharing.TagReport{Tag: "a", Waiting: 1, Owed: 7}).Draws[0].Owed)
	for range 40 {
		now += sec / 2
		sync(now, false, sharing.TagReport{Tag: "a", Waiting: 1})
	}
	require.True(t, p.degraded)
	now += sec / 2
	require.Empty(t, sync(now, true, sharing.TagReport{Tag: "a", Waiting: 1}).Draws)
	now += sec / 2
	require.EqualValues(t, 7, sync(now, true, sharing.TagReport{Tag: "a", Waiting: 1}).Draws[0].Owed)
}

// A tag that has nothing but a budget at whose end it goes on in the lower class goes on.
func TestATagWithALoweringBudgetAloneGoesOn(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodHour, Then: limit.ThenLower}}}}})
	d := k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Spent: []int64{100}, Lack: driver.LackBudget, Again: 5 * sec})
	d = k.asks(6*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	require.NotZero(t, d.Ask)
	require.Empty(t, d.Budgets)
	var record driver.Record
	req := driver.Request{Pool: "pool", ID: "a", Incarnation: "1", Seq: 1, Lease: driver.DefaultLease, Draws: []driver.Draw{d}}
	ans, _ := record.Sync(&req, driver.At{Now: wallZero})
	g := k.gives(6*sec, 6*sec, ans.Draws...)
	require.True(t, g.Lowered)
	require.NotZero(t, g.Batch.Tokens)
}

// A limiter that has forgotten a tag counts from 0 again, which is no lack of demand.
func TestATagThatWasForgottenCountsAnew(t *testing.T) {
	k := keep(t, limit.Quotas{Match: []limit.QuotaPattern{{Tag: "free/*"}}})
	k.report(10*sec, sec, false, []sharing.TagReport{{Tag: "free/x", Used: 5000, Refused: 10}})
	k.report(100*sec, sec, false, nil)
	k.report(200*sec, sec, false, []sharing.TagReport{{Tag: "free/x", Used: 40, Refused: 2, Again: true}})
	require.Positive(t, k.account("free/x").demand)
	k.report(201*sec, sec, false, []sharing.TagReport{{Tag: "free/x", Used: 140, Refused: 2}})
	require.InDelta(t, 100, k.account("free/x").demand, 5)
	k.report(202*sec, sec, false, []sharing.TagReport{{Tag: "free/x", Used: 240, Refused: 2}})
	require.InDelta(t, 100, k.account("free/x").uses, 5)
}
