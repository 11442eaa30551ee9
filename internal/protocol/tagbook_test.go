package protocol

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

const sec = time.Second

// wallZero is the store's clock at local time 0: ten seconds before a full hour.
var wallZero = time.Date(2026, 3, 4, 9, 59, 50, 0, time.UTC).UnixMicro()

// A bookkeeper drives a tagBook with an interval of one second.
type bookkeeper struct {
	t *testing.T
	tagBook
}

func keep(t *testing.T, q limit.Quotas) *bookkeeper {
	t.Helper()
	k := &bookkeeper{t: t}
	k.setQuotas(q.WithDefaults(sec), 0)
	k.take(0, 0, sec, &driver.Answer{Wall: wallZero})
	return k
}

// asks reports one tag and returns its draw.
func (k *bookkeeper) asks(now time.Duration, r sharing.TagReport) driver.Draw {
	k.t.Helper()
	k.report(now, sec, false, []sharing.TagReport{r})
	list := k.draws(now, sec, 1, false)
	if len(list) == 0 {
		return driver.Draw{}
	}
	require.Len(k.t, list, 1)
	require.NoError(k.t, valid(list))
	return list[0]
}

func valid(draws []driver.Draw) error {
	req := driver.Request{Pool: "pool", ID: "a", Incarnation: "1", Seq: 1, Lease: driver.DefaultLease, Draws: draws}
	return req.Validate()
}

// gives takes an answer to a request that was sent at a time, and returns what the limiter gets.
func (k *bookkeeper) gives(now, sent time.Duration, drawn ...driver.Drawn) sharing.TagGrant {
	k.t.Helper()
	k.take(now, sent, sec, &driver.Answer{Time: now.Microseconds(), Wall: wallZero + now.Microseconds(), Draws: drawn})
	list := k.grants(tagBase, now)
	require.Len(k.t, list, 1)
	return list[0]
}

func one(total int) limit.Quotas {
	return limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: total}}}
}

func TestABookAsksForWhatATagWillUse(t *testing.T) {
	k := keep(t, one(1000))
	d := k.asks(10*sec, sharing.TagReport{Tag: "a", Used: 40, Waiting: 8})
	require.Equal(t, driver.Draw{Key: tagname.Key("a"), Total: 1000, Per: sec, Burst: 100, Ask: 14}, d, "48 in ten seconds, a quarter more, and who waits")
	k.gives(10*sec, 10*sec)
	d = k.asks(11*sec, sharing.TagReport{Tag: "a", Used: 140, Refused: 20, InHand: 30})
	require.EqualValues(t, 120, d.Ask, "120 in the last second, less what is in hand")
	k.gives(11*sec, 11*sec)
	require.EqualValues(t, 75, k.asks(12*sec, sharing.TagReport{Tag: "a", Used: 140, Refused: 20}).Ask, "over two intervals it is 60 a second still")
	k.gives(12*sec, 12*sec)
	require.EqualValues(t, 1, k.asks(13*sec, sharing.TagReport{Tag: "a", Used: 140, Refused: 20}).Ask, "one for who comes next")
	k.gives(13*sec, 13*sec)
	require.Zero(t, k.asks(30*sec, sharing.TagReport{Tag: "a", Used: 140, Refused: 20}), "it is not used any more")
	k.gives(30*sec, 30*sec)
	require.EqualValues(t, 1350, k.asks(31*sec, sharing.TagReport{Tag: "a", Used: 140, Waiting: 1e9}).Ask, "more than the total can earn is not asked for")
}

func TestABookAsksForOneTokenAtLeastIfSomebodyWaits(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 1, Per: time.Hour, Burst: 1}}})
	require.EqualValues(t, 1, k.asks(100*sec, sharing.TagReport{Tag: "a", Waiting: 1}).Ask)
	k.gives(100*sec, 100*sec)
	require.Zero(t, k.asks(103*sec, sharing.TagReport{Tag: "a", Used: 1}), "too little for a token in each hand")
}

// Urgent requests follow each other in tenths of an interval. Demand is still measured over whole ones.
func TestDemandIsMeasuredOverWholeIntervals(t *testing.T) {
	k := keep(t, one(10_000))
	for i := range 40 {
		now := 10*sec + time.Duration(i)*sec/10
		k.report(now, sec, false, []sharing.TagReport{{Tag: "a", Used: int64(10 * i)}})
	}
	require.InDelta(t, 100, k.accounts[0].demand, 12)
	require.InDelta(t, 100, k.accounts[0].uses, 12)
}

// A batch of a total is used up as soon as it is there, and a request goes out for more a tenth of an interval later. What is used is not
// told as twice as much by that, for who looks at it would take it to be above the total.
func TestWhatIsUsedIsMeasuredOverWholeBatches(t *testing.T) {
	k := keep(t, one(100))
	report := func(now time.Duration, used int64) float64 {
		k.report(now, sec, false, []sharing.TagReport{{Tag: "a", Used: used, Waiting: 50}})
		return k.account("a").uses
	}
	for i := range 20 {
		now := 10*sec + time.Duration(i)*sec
		before := report(now, int64(100*i))
		after := report(now+sec/10, int64(100*(i+1)))
		if i > 2 {
			require.InDelta(t, 100, before, 1)
			require.InDelta(t, 100, after, 1)
		}
	}
}

// T3: what was drawn is void two intervals after its request was sent, however late the answer comes.
func TestABatchIsVoidTwoIntervalsAfterItsRequest(t *testing.T) {
	k := keep(t, one(100))
	k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 50})
	g := k.gives(11*sec, 10*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 30, Lack: driver.LackTotal, Again: sec / 2})
	require.Equal(t, sharing.Batch{Tokens: 30, From: tagBase.Add(10 * sec), Until: tagBase.Add(12 * sec)}, g.Batch)
	require.Equal(t, limit.ReasonQuota, g.Lacks)
	require.Equal(t, tagBase.Add(11*sec+sec/2), g.Again)
	require.Zero(t, g.AgainFor, "for any draw")
	require.True(t, g.Needed)
	require.Nil(t, k.grants(tagBase, 11*sec), "once")

	k.asks(20*sec, sharing.TagReport{Tag: "a", Waiting: 50})
	g = k.gives(22*sec, 20*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 30})
	require.Zero(t, g.Batch, "it is over")
	k.asks(30*sec, sharing.TagReport{Tag: "a", Waiting: 5})
	g = k.gives(30*sec, 30*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 1000})
	require.LessOrEqual(t, g.Batch.Tokens, int64(135), "a store that gives more than it was asked for is not believed")
}

// Until a large draw can be reserved smaller ones may have their tokens; not so while a budget is spent.
func TestALargeDrawThatHasToWait(t *testing.T) {
	k := keep(t, one(10))
	for lack, n := range map[driver.Lack]int64{driver.LackTotal: 40, driver.LackBudget: 0} {
		k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 45, Head: 40})
		g := k.gives(10*sec, 10*sec, driver.Drawn{Key: tagname.Key("a"), Lack: lack, Again: 2 * sec})
		require.Equal(t, tagBase.Add(12*sec), g.Again)
		require.Equal(t, n, g.AgainFor)
	}
}

// T2: what callers wait for is set aside in turn, and until it is about to come nothing else is asked for.
func TestALargeDrawIsAskedForAhead(t *testing.T) {
	k := keep(t, one(10))
	d := k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 45, Head: 40})
	require.EqualValues(t, 40, d.Ask)
	require.Equal(t, wire.MaxReach, d.Ahead, "however long that takes")
	g := k.gives(10*sec+sec/10, 10*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 40, From: 4 * sec})
	require.Equal(t, tagBase.Add(14*sec+sec/10), g.Again, "not before the store's time")
	require.Zero(t, g.Batch)
	require.Zero(t, k.asks(12*sec, sharing.TagReport{Tag: "a", Waiting: 45, Head: 40, Line: 45}))
	require.Zero(t, k.asks(14*sec, sharing.TagReport{Tag: "a", Waiting: 45, Head: 40, Line: 40}))
	g = k.gives(14*sec+sec/10, 14*sec)
	require.Equal(t, sharing.Batch{Tokens: 40, From: tagBase.Add(14*sec + sec/10), Until: tagBase.Add(16 * sec)}, g.Batch)
	require.NotZero(t, k.asks(15*sec, sharing.TagReport{Tag: "a", Waiting: 5, Head: 5}))
}

// T4: what is given back, and what is owed, is told until a request that says it is answered.
func TestWhatIsGivenBackIsToldUntilItIsAnswered(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	d := k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 1})
	k.gives(10*sec, 10*sec, driver.Drawn{Key: d.Key, Tokens: 1})
	d = k.asks(10*sec+1, sharing.TagReport{Tag: "a", Waiting: 1, Back: 8, BackSpent: 7, Owed: 3})
	require.Equal(t, []int64{7, 3}, []int64{d.Back, d.Owed})
	k.unsure = true
	d = k.asks(11*sec, sharing.TagReport{Tag: "a", Waiting: 1, Back: 2, BackSpent: 2, Owed: 1})
	require.Equal(t, []int64{7, 4}, []int64{d.Back, d.Owed}, "the one before got no answer: the store counts the first of both")
	g := k.gives(11*sec, 11*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 1})
	require.EqualValues(t, 1, g.Batch.Tokens, "nothing of what was given back")
	k.unsure = false
	d = k.asks(12*sec, sharing.TagReport{Tag: "a", Waiting: 1, Back: 5, BackSpent: 5})
	require.Equal(t, []int64{7, 0}, []int64{d.Back, d.Owed})
	k.gives(12*sec, 12*sec)
	d = k.asks(13*sec, sharing.TagReport{Tag: "a", Waiting: 1})
	require.Zero(t, d.Back, "also a repeated answer settles it, which gives nothing")
}

// What a store has forgotten, or a clone may hold as well, is not given back: it would make room for others twice.
func TestWhatTheStoreHasForgottenIsNotGivenBack(t *testing.T) {
	for name, forget := range map[string]func(*bookkeeper){
		"frozen": func(k *bookkeeper) {
			k.take(6*sec, 6*sec, sec, &driver.Answer{Frozen: sec, Wall: wallZero + (6 * sec).Microseconds()})
		},
		"a new incarnation": func(k *bookkeeper) { k.forget() },
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t, budgeted(limit.ThenRefuse))
			k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 50})
			k.gives(5*sec, 5*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 50})
			k.report(6*sec, sec, false, []sharing.TagReport{{Tag: "a", Waiting: 1, Back: 4, BackSpent: 4, Owed: 2}})
			forget(k)
			list := k.grants(tagBase, 6*sec)
			require.Len(t, list, 1)
			require.True(t, list[0].Forgotten, "the limiter may keep a permit of it for hours")
			d := k.asks(6*sec+sec/2, sharing.TagReport{Tag: "a", Waiting: 1, Back: 3, BackSpent: 3})
			require.Zero(t, d.Back)
			require.EqualValues(t, 2, d.Owed, "what is owed counts")
			k.gives(7*sec, 7*sec)
			require.EqualValues(t, 5, k.asks(7*sec, sharing.TagReport{Tag: "a", Waiting: 1, Back: 5, BackSpent: 5}).Back, "that cannot be of before")
		})
	}
}

// A machine that was suspended voids what is in hand, and what an answer under way brings.
func TestDistrustVoidsWhatIsInHand(t *testing.T) {
	k := keep(t, one(1000))
	k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 50})
	k.distrust()
	g := k.gives(10*sec, 10*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 50})
	require.True(t, g.Void)
	require.Zero(t, g.Batch)
	k.asks(11*sec, sharing.TagReport{Tag: "a", Waiting: 50})
	g = k.gives(11*sec, 11*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 50})
	require.False(t, g.Void)
	require.EqualValues(t, 50, g.Batch.Tokens)
}

// Tags that wait come first, and those that found no room come first the next time: none starves.
func TestTagsTakeTurnsInRequests(t *testing.T) {
	const tags = 1200
	k := keep(t, limit.Quotas{Match: []limit.QuotaPattern{{Tag: "t*", Quota: limit.Quota{Total: 1000}}}})
	tag := func(i int) string { return fmt.Sprintf("t%04d", i) }
	seen := map[uint64]int{}
	for turn := range 10 {
		now := time.Duration(10+turn) * sec
		var reports []sharing.TagReport
		for i := range tags {
			reports = append(reports, sharing.TagReport{Tag: tag(i), Used: int64(10 * (turn + 1)), Waiting: int64(1 - min(i%400, 1))})
		}
		k.report(now, sec, false, reports)
		draws := k.draws(now, sec, 1, false)
		require.Len(t, draws, usualDraws)
		require.NoError(t, valid(draws))
		for i := range 3 {
			require.Contains(t, []uint64{tagname.Key("t0000"), tagname.Key("t0400"), tagname.Key("t0800")}, draws[i].Key)
		}
		for _, d := range draws {
			seen[d.Key]++
		}
		k.take(now, now, sec, &driver.Answer{})
	}
	require.Len(t, seen, tags)

	var all []sharing.TagReport
	for i := range tags {
		all = append(all, sharing.TagReport{Tag: tag(i), Waiting: 1})
	}
	seen = map[uint64]int{}
	for turn := range 2 {
		now := time.Duration(30+turn) * sec
		k.report(now, sec, false, all)
		draws := k.draws(now, sec, 1, false)
		require.Len(t, draws, wire.MaxDraws)
		for _, d := range draws {
			seen[d.Key]++
		}
		k.take(now, now, sec, &driver.Answer{})
	}
	require.Len(t, seen, tags)
}

// However many names come, memory is bounded, and no account that owes is dropped.
func TestABookIsBounded(t *testing.T) {
	testkit.SkipRace(t, "it has one goroutine")
	k := keep(t, limit.Quotas{Match: []limit.QuotaPattern{{Tag: "*", Quota: limit.Quota{Total: 10}}}})
	k.report(0, sec, false, []sharing.TagReport{{Tag: "debtor", Owed: 5}})
	const each = 2048 // a report copies the book
	for i := range 3 * maxAccounts / each {
		var used []sharing.TagReport
		for n := range each {
			used = append(used, sharing.TagReport{Tag: fmt.Sprint("n", i*each+n), Used: 1})
		}
		k.report(time.Duration(4*i)*sec, sec, false, used)
	}
	require.LessOrEqual(t, len(k.accounts), maxAccounts)
	require.EqualValues(t, 5, k.account("debtor").Owed)
	// Names that all wait fill the book. The next ones have no room, but for tags that have a quota by name.
	var waiting []sharing.TagReport
	for i := range maxAccounts + 10 {
		waiting = append(waiting, sharing.TagReport{Tag: fmt.Sprint("w", i), Waiting: 1})
	}
	k.report(100*sec, sec, false, waiting)
	require.Len(t, k.accounts, maxAccounts)
	k.setQuotas(limit.Quotas{Tags: map[string]limit.Quota{"known": {Total: 10}}, Match: k.quotas.Match}, 0)
	k.report(101*sec, sec, false, append(waiting, sharing.TagReport{Tag: "known", Waiting: 1}, sharing.TagReport{Waiting: 1}))
	require.NotNil(t, k.account("known"))
	require.NotNil(t, k.account(""))
	draws := k.draws(101*sec, sec, 1, false)
	require.Len(t, draws, wire.MaxDraws)
	require.Equal(t, tagname.Key("known"), draws[0].Key, "it is before all names")
	require.False(t, draws[0].Pattern)
	require.True(t, draws[1].Pattern)
	// What is still to be told of names that have no quota any more takes no place from tags by name either.
	k.setQuotas(limit.Quotas{Tags: map[string]limit.Quota{"known": {Total: 10}}, Match: k.quotas.Match, Other: limit.Quota{Total: 5}}, 0)
	for i := range k.accounts {
		k.accounts[i].Owed = 1
	}
	k.setQuotas(limit.Quotas{Tags: k.quotas.Tags, Other: k.quotas.Other}, 0)
	for _, d := range k.draws(102*sec, sec, 1, false) {
		require.Equal(t, d.Key != tagname.Key("known") && d.Key != tagname.OtherKey, d.Pattern)
	}
	k.setQuotas(limit.Quotas{Tags: k.quotas.Tags, Match: []limit.QuotaPattern{{Tag: "*", Quota: limit.Quota{Total: 10}}}}, 0)
	for i := range k.accounts {
		k.accounts[i].Owed = 0
	}
	// Tags by name stay, however long they are idle.
	k.report(200*sec, sec, false, nil)
	for i := range waiting {
		waiting[i].Tag = fmt.Sprint("x", i)
	}
	k.report(500*sec, sec, false, waiting)
	require.NotNil(t, k.account("known"))
	require.LessOrEqual(t, len(k.accounts), maxAccounts+2)
}

// A limiter may report anything.
func TestABookSurvivesHostileReports(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 10, Budgets: []limit.Budget{{Amount: 5, Per: limit.PeriodDay}}}}})
	for i, r := range []sharing.TagReport{
		{Tag: "a", Used: -1, Refused: -5, Waiting: -9, InHand: -3, Back: -2, BackSpent: -1, Owed: -7, Head: -1},
		{
			Tag: "a", Used: math.MaxInt64, Refused: math.MaxInt64, Waiting: math.MaxInt64, InHand: math.MaxInt64,
			Back: math.MaxInt64, BackSpent: math.MaxInt64, Owed: math.MaxInt64, Head: math.MaxInt64,
		},
		{Tag: "a", Waiting: math.MaxInt64, Back: 1, BackSpent: 9, Head: math.MaxInt64},
	} {
		k.report(time.Duration(10+i)*sec, sec, false, []sharing.TagReport{r})
		require.NoError(t, valid(k.draws(time.Duration(10+i)*sec, sec, 1, true)))
	}
}

// Callers that wait for each token do not show what they could use: a tag whose callers go on waiting asks for what is
// reserved, or for twice as much as it uses.
func TestATagThatGoesOnWaitingAsksForMore(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Reserved: 300, Total: 500}}})
	at := func(i, used, waiting int64) float64 {
		k.report(time.Duration(10+i)*sec, sec, false, []sharing.TagReport{{Tag: "a", Used: used, Waiting: waiting}})
		return k.accounts[0].demand
	}
	require.InDelta(t, 4.0, at(0, 0, 4), 4)
	require.InDelta(t, 300, at(1, 50, 4), 0.1)
	require.InDelta(t, 400, at(2, 250, 4), 0.1)
	require.InDelta(t, 500, at(3, 650, 4), 0.1, "at most the total")
	require.InDelta(t, 400, at(4, 1050, 0), 0.1)
	require.InDelta(t, 400, at(5, 1300, 1), 80, "one who waits at one moment says nothing")
}

// asksHeld is asks for a tag that the limit holds at rate.
func (k *bookkeeper) asksHeld(now time.Duration, rate float64, r sharing.TagReport) (tokens int64) {
	k.t.Helper()
	k.report(now, sec, false, []sharing.TagReport{r})
	a := k.account(r.Tag)
	a.held, a.rate = true, rate
	for _, d := range k.draws(now, sec, 4, false) {
		tokens += d.Ask
	}
	return tokens
}

// Tokens promised to callers that wait for the limit count as in hand: those behind them would get theirs too early.
func TestPromisedTokensCountAsInHand(t *testing.T) {
	k := keep(t, one(100))
	require.EqualValues(t, 8, k.asksHeld(10*sec, 6, sharing.TagReport{Tag: "a", Used: 10, Waiting: 16, Head: 4, Line: 4}))
	require.Zero(t, k.asksHeld(20*sec, 6, sharing.TagReport{Tag: "a", Used: 20, Waiting: 16, Head: 4, Line: 4, Promised: 8}))
	require.NotZero(t, k.asksHeld(30*sec, 6, sharing.TagReport{Tag: "a", Used: 30, Waiting: 16, Head: 4, Line: 4, Promised: 4}))
}

// The size of a large call is remembered whole for some reports: less of it would be of no use to the next one.
func TestTheSizeOfACallDoesNotDecay(t *testing.T) {
	k := keep(t, one(60))
	k.asks(10*sec, sharing.TagReport{Tag: "a", Waiting: 60, Head: 60, Line: 60})
	for i := range keepSize {
		k.asks(time.Duration(11+i)*time.Second, sharing.TagReport{Tag: "a", Waiting: 1, Head: 1, Line: 1})
		require.EqualValues(t, 60, k.account("a").size, "%d reports later", i+1)
	}
	k.asks(30*sec, sharing.TagReport{Tag: "a", Waiting: 1, Head: 1, Line: 1})
	require.EqualValues(t, 1, k.account("a").size, "the calls are small now")
}

// However many names wait, a tag with its own quota draws, whether its callers wait or not.
func TestNamesThatWaitLeaveRoomForTagsByName(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"known": {Total: 10}}, Match: []limit.QuotaPattern{{Tag: "*", Quota: limit.Quota{Total: 10}}}})
	reports := []sharing.TagReport{{Tag: "known", Used: 10}}
	for i := range wire.MaxDraws + 10 {
		reports = append(reports, sharing.TagReport{Tag: fmt.Sprint("w", i), Waiting: 1})
	}
	k.report(10*sec, sec, false, reports)
	draws := k.draws(10*sec, sec, 1, false)
	require.Len(t, draws, wire.MaxDraws)
	require.Equal(t, tagname.Key("known"), draws[0].Key)
}
