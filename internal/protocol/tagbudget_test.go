package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func budgeted(then limit.Then) limit.Quotas {
	return limit.Quotas{Tags: map[string]limit.Quota{"a": {Budgets: []limit.Budget{
		{Amount: 100, Per: limit.PeriodHour, Then: then}, {Amount: 1000, Per: limit.PeriodDay},
	}}}}
}

// Budget windows are those of the store's clock, which runs on between answers. What is spent is told by maximum, and
// begins again with the window.
func TestBudgetWindowsAreThoseOfTheStoresClock(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	hour := wallZero + (10 * sec).Microseconds() // the next one
	day := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC).UnixMicro()
	d := k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	require.Equal(t, []driver.BudgetDraw{
		{Amount: 100, Start: hour - time.Hour.Microseconds(), End: hour},
		{Amount: 1000, Start: day, End: day + (24 * time.Hour).Microseconds()},
	}, d.Budgets)
	g := k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{98, 500}})
	require.Equal(t, []int64{98, 100}, []int64{g.Spent, g.Budget}, "of the window that ends first")
	before := g.Batch.Window
	d = k.asks(6*sec, sharing.TagReport{Tag: "a", Waiting: 2, Back: 2, BackSpent: 2})
	require.EqualValues(t, 98, d.Budgets[0].Seen)
	require.EqualValues(t, 2, d.Back)
	g = k.gives(6*sec, 6*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{97, 499}})
	require.EqualValues(t, 98, g.Spent, "never less than was told")

	// A new hour: what was granted before is of another window.
	d = k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 2, Back: 2, BackSpent: 2})
	require.Equal(t, hour, d.Budgets[0].Start)
	require.Zero(t, d.Budgets[0].Seen)
	require.EqualValues(t, 500, d.Budgets[1].Seen)
	require.Zero(t, d.Back)
	g = k.gives(10*sec, 10*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{2, 501}})
	require.Greater(t, g.Batch.Window, before)
}

func TestABudgetIsNotDrawnBeforeTheTimeIsKnown(t *testing.T) {
	k := &bookkeeper{t: t}
	k.setQuotas(budgeted(limit.ThenRefuse).WithDefaults(sec), 0)
	require.Zero(t, k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2}))
}

// A spent budget says so, with the end of its window; the tag counts as one that wants nothing.
func TestASpentBudgetIsToldWithItsEnd(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	d := k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	g := k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Spent: []int64{100, 500}, Lack: driver.LackBudget, Again: 5 * sec})
	require.Equal(t, limit.ReasonBudget, g.Lacks)
	require.Equal(t, "budget", g.By)
	require.False(t, g.Lowered)
	require.Equal(t, tagBase.Add(10*sec), g.Again)
	var p tagPolicy
	p.set(&k.quotas)
	require.Empty(t, p.busy(&k.tagBook))
	k.report(10*sec, sec, false, []sharing.TagReport{{Tag: "a", Waiting: 2}})
	require.Len(t, p.busy(&k.tagBook), 1, "it can come again")
}

// At the end of a budget of class batch the tag goes on in the lower class, and without that budget.
func TestALoweredTagGoesOn(t *testing.T) {
	k := keep(t, budgeted(limit.ThenLower))
	d := k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	g := k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Spent: []int64{100, 500}, Lack: driver.LackBudget, Again: 5 * sec})
	require.True(t, g.Lowered)
	d = k.asks(6*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	require.Len(t, d.Budgets, 1)
	require.EqualValues(t, 1000, d.Budgets[0].Amount)
	g = k.gives(6*sec, 6*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{502}})
	require.EqualValues(t, 2, g.Batch.Tokens)
	require.True(t, g.Lowered)
	k.report(10*sec, sec, false, []sharing.TagReport{{Tag: "a", Waiting: 2}})
	require.False(t, k.accounts[0].lowered(), "the next window")
}

// While the store forgets, all that is known to be spent is told, also of tags that need nothing.
func TestWhatIsSpentIsToldToAStoreThatHasForgotten(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	d := k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{60, 500}})
	k.report(25*60*sec, sec, false, nil)
	require.Empty(t, k.draws(25*60*sec, sec, 1, false))
	draws := k.draws(25*60*sec, sec, 1, true)
	require.Len(t, draws, 1)
	require.Zero(t, draws[0].Ask)
	require.EqualValues(t, 500, draws[0].Budgets[1].Seen)
}

// A budget that has lowered the tag is not drawn from any more, but a store that has forgotten it is told. Else a processor
// that comes later would have all of it again. The pool stays frozen for longer than its tag buckets, and then the tag goes on.
func TestASpentBudgetThatLowersIsToldToAStoreThatHasForgotten(t *testing.T) {
	k := keep(t, budgeted(limit.ThenLower))
	frozen := func(now time.Duration, waiting, hand int64) driver.Draw {
		k.report(now, sec, false, []sharing.TagReport{{Tag: "a", Waiting: waiting, InHand: hand}})
		draws := k.draws(now, sec, 1, true)
		require.Len(t, draws, 1)
		return draws[0]
	}
	d := k.asks(4*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	k.gives(4*sec, 4*sec, driver.Drawn{Key: d.Key, Spent: []int64{100, 500}, Lack: driver.LackBudget, Again: 6 * sec})
	d = frozen(5*sec, 2, 0)
	require.Len(t, d.Budgets, 1, "nobody has said yet that tag buckets give nothing")
	require.NotZero(t, d.Ask)
	k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Spent: []int64{500}, Lack: driver.LackFrozen, Again: 2 * sec})
	d = frozen(6*sec, 2, 0)
	require.Len(t, d.Budgets, 2)
	require.Equal(t, []int64{100, 500, 0}, []int64{d.Budgets[0].Seen, d.Budgets[1].Seen, d.Ask})
	g := k.gives(6*sec, 6*sec, driver.Drawn{Key: d.Key, Spent: []int64{100, 500}, Lack: driver.LackFrozen, Again: sec})
	require.True(t, g.Lowered)
	d = frozen(7*sec, 2, 0)
	require.Len(t, d.Budgets, 1)
	require.NotZero(t, d.Ask)
	k.gives(7*sec, 7*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{502}})
	require.Len(t, frozen(7500*time.Millisecond, 0, 20).Budgets, 2, "who asks for nothing loses nothing by it")
}

// Without the store a processor spends its part of what is left, and tells what it spent.
func TestABudgetWithoutTheStore(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	d := k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 2})
	k.gives(5*sec, 5*sec, driver.Drawn{Key: d.Key, Tokens: 2, Spent: []int64{60, 500}})
	got := int64(0)
	for i := range 5 {
		now := 6*sec + time.Duration(i)*sec/2
		k.report(now, sec, true, []sharing.TagReport{{Tag: "a", Used: got, Waiting: 6}})
		k.grantLocally(now, sec, time.Hour, 4, 0.25, func(*tagAccount) bool { return true })
		got += k.grants(tagBase, 0)[0].Batch.Tokens
	}
	require.EqualValues(t, 10, got, "a quarter of the 40 that are left")
	// It is owed to the store, beside what it was known to have counted itself, and to no total.
	d = k.asks(9*sec, sharing.TagReport{Tag: "a", Used: got, Waiting: 2, Owed: 3})
	require.Equal(t, []int64{10, 0, 0, 0}, []int64{d.Owed, d.Total, d.Ask, d.Back})
	require.EqualValues(t, 60, d.Budgets[0].Seen)
	k.gives(9*sec, 9*sec, driver.Drawn{Key: d.Key, Spent: []int64{75, 510}})
	require.EqualValues(t, 75, k.accounts[0].budgets[0].spent())
	d = k.asks(10*sec-1, sharing.TagReport{Tag: "a", Used: got, Waiting: 2})
	require.NotZero(t, d.Ask)
	require.EqualValues(t, 3, d.Owed, "what was owed to the store")
}

// What calls cost above what was drawn counts, without the store, against this processor's part, and is no debt later.
func TestWhatIsOwedWithoutTheStoreCounts(t *testing.T) {
	k := keep(t, one(100))
	got := int64(0)
	for i := range 20 {
		now := 10*sec + time.Duration(i)*sec
		k.report(now, sec, true, []sharing.TagReport{{Tag: "a", Used: got, Waiting: 50, Owed: 15}})
		k.grantLocally(now, sec, time.Hour, 4, 0.25, func(*tagAccount) bool { return true })
		got += k.grants(tagBase, 0)[0].Batch.Tokens
	}
	require.InDelta(t, 20*10, got, 30, "25 each second, 15 of which are owed")
	require.Zero(t, k.asks(30*sec, sharing.TagReport{Tag: "a", Used: got, Waiting: 1}).Owed)
}

// Q7: after an outage the store counts what all processors have spent without it.
func TestABudgetAfterAnOutageIsWhatAllHaveSpent(t *testing.T) {
	record := &driver.Record{}
	send := func(k *bookkeeper, id string, now time.Duration, seq uint64, r sharing.TagReport) sharing.TagGrant {
		d := k.asks(now, r)
		req := driver.Request{
			Pool: "pool", ID: id, Incarnation: id, Seq: seq, Nonce: seq, LastSeq: seq - 1, LastNonce: seq - 1,
			Lease: driver.DefaultLease, Draws: []driver.Draw{d},
		}
		require.NoError(t, req.Validate())
		ans, _ := record.Sync(&req, driver.At{Now: wallZero + now.Microseconds()})
		require.Equal(t, driver.Granted, ans.Status)
		return k.gives(now, now, ans.Draws...)
	}
	q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Budgets: []limit.Budget{{Amount: 100, Per: limit.PeriodDay}}}}}
	a, b := keep(t, q), keep(t, q)
	send(a, "a", 1*sec, 1, sharing.TagReport{Tag: "a", Waiting: 1})
	send(b, "b", 1*sec, 1, sharing.TagReport{Tag: "a", Waiting: 1})
	for _, k := range []*bookkeeper{a, b} {
		k.report(2*sec, sec, true, []sharing.TagReport{{Tag: "a", Waiting: 90}})
		k.grantLocally(2*sec, sec, time.Hour, 2, 0.5, func(*tagAccount) bool { return true })
		require.InDelta(t, 48, k.grants(tagBase, 0)[0].Batch.Tokens, 2)
	}
	for seq := uint64(2); seq < 4; seq++ {
		now := time.Duration(seq+1) * sec
		for id, k := range map[string]*bookkeeper{"a": a, "b": b} {
			require.LessOrEqual(t, send(k, id, now, seq, sharing.TagReport{Tag: "a", Waiting: 90}).Batch.Tokens, int64(2))
		}
	}
	require.LessOrEqual(t, record.TagBuckets[0].Spent[0].Tokens, int64(102))
	require.GreaterOrEqual(t, record.TagBuckets[0].Spent[0].Tokens, int64(95))
}
