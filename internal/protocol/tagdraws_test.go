package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A request has room for tags by name first, whose callers wait or not, then for names of patterns: whose callers wait, and others up to
// the usual number. Who finds no room begins the next request.
func TestWhichTagsARequestHasRoomFor(t *testing.T) {
	q := limit.Quotas{Tags: map[string]limit.Quota{}, Match: []limit.QuotaPattern{{Tag: "p*", Quota: limit.Quota{Total: 10}}}}
	for i := range 300 {
		q.Tags[fmt.Sprintf("q%04d", i)] = limit.Quota{Total: 10}
	}
	tags := func(of string, from, to int, waiting int64) (list []sharing.TagReport) {
		for i := from; i < to; i++ {
			list = append(list, sharing.TagReport{Tag: fmt.Sprintf("%s%04d", of, i), Used: 10, Waiting: waiting})
		}
		return list
	}
	few := [][]sharing.TagReport{tags("q", 0, 5, 1), tags("q", 5, 9, 0), tags("p", 0, 3, 1), tags("p", 3, 9, 0)}
	named := [][]sharing.TagReport{few[0], tags("q", 5, 300, 0), few[2], few[3]}
	patterns := [][]sharing.TagReport{few[0], few[2], tags("p", 3, 300, 0)}
	for name, c := range map[string]struct {
		reports [][]sharing.TagReport
		first   []string // of each group in the request
		counts  []int
		next    string
	}{
		"all":       {few, []string{"q0000", "q0005", "p0000", "p0003"}, []int{5, 4, 3, 6}, ""},
		"by name":   {named, []string{"q0000", "q0005", "p0000"}, []int{5, usualDraws, 3}, "q0261"},
		"of a kind": {patterns, []string{"q0000", "p0000", "p0003"}, []int{5, 3, usualDraws - 8}, "p0251"},
		"who waits": {[][]sharing.TagReport{few[0], tags("p", 0, 1100, 1)}, []string{"q0000", "p0000"}, []int{5, wire.MaxDraws - 5}, "p1019"},
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t, q)
			var all []sharing.TagReport
			for _, l := range c.reports {
				all = append(all, l...)
			}
			k.report(10*sec, sec, false, all)
			k.draws(10*sec, sec, 1, false)
			var first []string
			var counts []int
			for i, d := range k.carried {
				a := k.account(d.tag)
				kind := func(d *tagDraw, a *tagAccount) string { return fmt.Sprint(d.Pattern, a.Waiting > 0) }
				if i == 0 || kind(&k.carried[i-1], k.account(k.carried[i-1].tag)) != kind(&d, a) {
					first, counts = append(first, d.tag), append(counts, 0)
				}
				counts[len(counts)-1]++
			}
			require.Equal(t, c.first, first)
			require.Equal(t, c.counts, counts)
			require.Equal(t, c.next, k.next)
			if c.next != "" {
				k.report(11*sec, sec, false, all)
				k.draws(11*sec, sec, 1, false)
				begins := false
				for _, d := range k.carried {
					begins = begins || d.tag == c.next
				}
				require.True(t, begins)
			}
		})
	}
}

// A tag has a draw if it asks, gives back or owes. To a store that has forgotten it all that is known to be spent is told besides.
func TestWhichTagsHaveADraw(t *testing.T) {
	for _, c := range []struct {
		d    driver.Draw
		asks bool
	}{{driver.Draw{}, false}, {driver.Draw{Ask: 1}, true}, {driver.Draw{Back: 1}, true}, {driver.Draw{Owed: 1}, true}} {
		require.Equal(t, c.asks, (&tagDraw{Draw: c.d}).asks())
	}
	for _, c := range []struct {
		spent [2]int64
		seen  bool
		draws int
	}{{[2]int64{0, 0}, true, 0}, {[2]int64{0, 5}, true, 1}, {[2]int64{5, 0}, true, 1}, {[2]int64{5, 5}, false, 0}} {
		k := keep(t, budgeted(limit.ThenRefuse))
		k.report(0, sec, false, []sharing.TagReport{{Tag: "a"}})
		k.accounts[0].budgets[0].seen, k.accounts[0].budgets[1].seen = c.spent[0], c.spent[1]
		require.Len(t, k.draws(0, sec, 1, c.seen), c.draws, c)
	}
}

// A draw names a period in whole microseconds, whose rate is never above the real one, and what of it is for calls that wait.
func TestWhatADrawSays(t *testing.T) {
	for per, named := range map[time.Duration]time.Duration{ms: ms, ms + 1: ms + time.Microsecond, ms + 999: ms + time.Microsecond} {
		k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 10, Per: per}}})
		require.Equal(t, named, k.asks(sec, sharing.TagReport{Tag: "a", Waiting: 1}).Per)
	}
	for _, c := range []struct{ head, line, inHand, coming, covers int64 }{
		{6, 8, 0, 0, 8}, {6, 8, 5, 0, 8}, {6, 8, 0, 3, 5}, {6, 8, 0, 20, 0}, {60, 100, 0, 0, 60}, {60, 100, 5, 0, 65},
	} {
		k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 10, Budgets: []limit.Budget{{Amount: 60, Per: limit.PeriodDay}}}}})
		k.report(sec, sec, false, []sharing.TagReport{{Tag: "a", Waiting: 30, Head: c.head, Line: c.line, InHand: c.inHand}})
		k.accounts[0].reserved = []tagBatch{{tokens: c.coming, covers: c.coming}}
		d, _ := k.draw(&k.accounts[0], sec, sec, 1, false)
		require.Equal(t, c.covers, d.covers, c)
	}
	k := keep(t, budgeted(limit.ThenRefuse))
	k.report(sec, sec, false, []sharing.TagReport{{Tag: "a"}})
	k.accounts[0].budgets[1].own, k.accounts[0].budgets[2].own = 4, 9 // the first window has begun since, and there is no third
	k.draws(sec, sec, 1, false)
	d := &k.carried[0]
	require.Equal(t, []int64{4, 1, 1, 4}, []int64{d.Owed, int64(len(d.Budgets)), int64(d.budgets[0]), d.own[1]})
}

// What an answer says of a draw is taken as far as it was asked, and is of the same windows.
func TestWhatAnAnswerSaysOfADraw(t *testing.T) {
	type result struct {
		seen             [wire.MaxBudgets]int64
		own              int64 // of the first
		again            time.Duration
		againFor, tokens int64
		credit           float64
		reserved         []tagBatch
		latest           time.Duration
	}
	const now, sent, good = 10 * sec, 9 * sec, 11 * sec
	aside := tagBatch{tokens: 5, from: sent, until: good, window: 1, due: (80 * sec).Microseconds(), covers: 4}
	for name, c := range map[string]struct {
		drawn driver.Drawn
		but   func(k *bookkeeper, c *tagDraw)
		want  result
	}{
		"what is spent":          {driver.Drawn{Spent: []int64{50, 500}}, nil, result{seen: [3]int64{50, 500}}},
		"of more than was asked": {driver.Drawn{Spent: []int64{50, 500, 700}}, nil, result{seen: [3]int64{50, 500}}},
		"of another window":      {driver.Drawn{Spent: []int64{50, 500}}, func(_ *bookkeeper, c *tagDraw) { c.window-- }, result{}},
		"less than was known": {driver.Drawn{Spent: []int64{50}}, func(k *bookkeeper, c *tagDraw) {
			k.accounts[0].budgets[0], c.own[0] = tagBudget{seen: 70, own: 9}, 4
		}, result{seen: [3]int64{70}, own: 5}},
		"when more can come": {driver.Drawn{Lack: driver.LackTotal, Again: sec}, nil, result{again: 11 * sec}},
		"for all of it": {
			driver.Drawn{Lack: driver.LackTotal, Again: sec}, func(_ *bookkeeper, c *tagDraw) { c.Ahead = 1 }, result{again: 11 * sec, againFor: 20},
		},
		"without a lack":      {driver.Drawn{Again: sec}, nil, result{}},
		"nobody knows":        {driver.Drawn{Lack: driver.LackTotal}, nil, result{}},
		"no room":             {driver.Drawn{Lack: driver.LackFull, Again: sec, Tokens: 5}, nil, result{own: 3, credit: 40 - 3}},
		"none for its report": {driver.Drawn{Lack: driver.LackFull}, func(_ *bookkeeper, c *tagDraw) { c.ownOnly = true }, result{credit: 40}},
		"tokens":              {driver.Drawn{Tokens: 5}, nil, result{tokens: 5, latest: good}},
		"more than it asked":  {driver.Drawn{Tokens: 50}, nil, result{tokens: 20, latest: good}},
		"too late":            {driver.Drawn{Tokens: 5}, func(k *bookkeeper, _ *tagDraw) { k.good = now }, result{}},
		"in time":             {driver.Drawn{Tokens: 5}, func(k *bookkeeper, _ *tagDraw) { k.good = now + 1 }, result{tokens: 5, latest: now + 1}},
		"voided":              {driver.Drawn{Tokens: 5}, func(k *bookkeeper, _ *tagDraw) { k.voided = true }, result{}},
		"set aside": {
			driver.Drawn{Tokens: 5, From: 3 * sec}, func(_ *bookkeeper, c *tagDraw) { c.covers = 4 }, result{reserved: []tagBatch{aside}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := keep(t, budgeted(limit.ThenRefuse))
			k.report(0, sec, false, []sharing.TagReport{{Tag: "a"}})
			a := &k.accounts[0]
			a.credit = 40
			k.good, k.clock = good, (77 * sec).Microseconds()
			d := tagDraw{Draw: driver.Draw{Ask: 20, Owed: 3, Budgets: make([]driver.BudgetDraw, 2)}, tag: "a", window: a.window}
			d.budgets[1] = 1
			if c.but != nil {
				c.but(k, &d)
			}
			k.drawn(a, &d, &c.drawn, now, sent)
			is := result{
				own: a.budgets[0].own, again: a.again, againFor: a.againFor, tokens: a.batch.tokens, credit: a.credit, reserved: a.reserved, latest: k.latest,
			}
			for i := range a.budgets {
				is.seen[i] = a.budgets[i].seen
			}
			require.Equal(t, c.want, is)
			if a.batch.tokens > 0 {
				require.Equal(t, tagBatch{tokens: a.batch.tokens, from: sent, until: k.good, window: a.window}, a.batch)
				require.Equal(t, a.window, a.granted)
			}
		})
	}
}

// A draw that is to be set aside, and gets nothing, waits behind others if the total lacks tokens. If only a budget does, and has enough for
// the first call, less can be had at once.
func TestADrawThatGetsNothing(t *testing.T) {
	for _, c := range []struct {
		ahead   time.Duration
		drawn   driver.Drawn
		budgets int
		left    int64
		head    int64
		behind  bool
		again   bool
	}{
		{1, driver.Drawn{Lack: driver.LackTotal}, 1, 9, 5, true, true},
		{0, driver.Drawn{Lack: driver.LackTotal}, 1, 9, 5, false, true},
		{1, driver.Drawn{Lack: driver.LackTotal, Tokens: 1}, 1, 9, 5, false, true},
		{1, driver.Drawn{Lack: driver.LackBudget}, 1, 9, 5, false, false},
		{1, driver.Drawn{Lack: driver.LackBudget}, 1, 5, 5, false, false},
		{1, driver.Drawn{Lack: driver.LackBudget}, 1, 4, 5, false, true},
		{1, driver.Drawn{Lack: driver.LackBudget}, 1, 0, 0, false, true},
		{1, driver.Drawn{Lack: driver.LackBudget}, 0, 9, 5, false, true},
		{0, driver.Drawn{Lack: driver.LackBudget}, 1, 9, 5, false, true},
	} {
		a := anAccount(func(a *tagAccount) {
			ofBudget(a, c.left, limit.ThenRefuse)
			a.Head, a.lack, a.again = c.head, c.drawn.Lack, sec
		})
		a.refused(&tagDraw{Draw: driver.Draw{Ahead: c.ahead, Budgets: make([]driver.BudgetDraw, c.budgets)}}, &c.drawn)
		require.Equal(t, c.behind, a.behind, c)
		require.Equal(t, c.again, a.again > 0, c)
		require.Equal(t, c.again, a.lack == c.drawn.Lack, c)
	}
}

// A reservation that can be used counts as in hand beyond the calls that it is for, which wait no longer. It is good for as long as the
// newest answer.
func TestAReservationBecomesABatch(t *testing.T) {
	type tokens struct{ line, head, waiting, inHand int64 }
	for _, c := range []struct {
		had      tokens
		reserved int64
		is       tokens
	}{
		{tokens{45, 20, 50, 3}, 40, tokens{15, 20, 20, 13}},
		{tokens{30, 20, 20, 3}, 30, tokens{0, 0, 0, 3}},
		{tokens{20, 20, 50, 3}, 10, tokens{0, 0, 20, 0}},
	} {
		for good, until := range map[time.Duration]time.Duration{11 * sec: 11 * sec, 14 * sec: 12 * sec, 10*sec + 1: 10*sec + 1, 10 * sec: 0} {
			k := keep(t, one(10))
			k.good, k.latest = good, 11*sec+sec/2
			a := &tagAccount{TagReport: sharing.TagReport{Line: c.had.line, Head: c.had.head, Waiting: c.had.waiting, InHand: c.had.inHand}}
			a.reserved = []tagBatch{{tokens: c.reserved, covers: 30, from: 10 * sec, until: 12 * sec, window: 7}, {tokens: 1}}
			k.releaseDue(a, 10*sec)
			is := tokens{a.Line, a.Head, a.Waiting, a.InHand}
			require.Equal(t, c.is, is)
			require.Len(t, a.reserved, 1)
			require.Equal(t, until, a.batch.until)
			require.Equal(t, max(until, 11*sec+sec/2), k.latest)
			if until > 0 {
				require.EqualValues(t, 7, a.granted)
				k.releaseDue(a, 10*sec)
				require.Len(t, a.reserved, 1, "one at a time")
			}
		}
	}
}

// The store's clock and a freeze are those of the newest answer that tells. Only a new freeze makes the book forget. What the answer says of
// tags that were not asked for, or are forgotten, counts for none.
func TestWhatABookTakesOfAnAnswer(t *testing.T) {
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 10}, "b": {Total: 10}}})
	k.report(sec, sec, false, []sharing.TagReport{{Tag: "a", Waiting: 1}, {Tag: "b", Waiting: 1}})
	k.accounts[0].BackSpent, k.accounts[0].Owed = 5, 5
	k.carried = []tagDraw{
		{tag: "gone", Draw: driver.Draw{Key: 7}},
		{tag: "a", Draw: driver.Draw{Key: 8, Ask: 9, Back: 3, Owed: 9}},
		{tag: "b", Draw: driver.Draw{Key: 9, Ask: 9}},
	}
	k.take(3*sec, 2*sec, sec, &driver.Answer{Time: 5_000_000, Draws: []driver.Drawn{{Key: 7, Tokens: 3}, {Key: 9, Tokens: 4, Paid: 5_700_000}}})
	require.Equal(t, []int64{wallZero, 2, 0}, []int64{k.wall, k.accounts[0].BackSpent, k.accounts[0].Owed}, "an answer without the time")
	require.Equal(t, []int64{0, 4}, []int64{k.accounts[0].batch.tokens, k.accounts[1].batch.tokens})
	require.Equal(t, []time.Duration{0, 2700 * ms}, []time.Duration{k.accounts[0].paid, k.accounts[1].paid})
	k.carried = []tagDraw{{tag: "b", Draw: driver.Draw{Key: 9}}, {tag: "a", ownOnly: true, Draw: driver.Draw{Key: 8, Back: 1}}}
	k.take(3*sec, 2*sec, sec, &driver.Answer{Draws: []driver.Drawn{{Key: 9, Paid: 1 << 60}}})
	require.Equal(t, 2*sec+maxAsk*time.Microsecond, k.accounts[1].paid, "a store may say anything")
	require.EqualValues(t, 2, k.accounts[0].BackSpent, "it reported nothing else")

	for _, c := range []struct{ time, frozen time.Duration }{{10 * sec, 5 * sec}, {12 * sec, 3 * sec}, {20 * sec, 0}, {30 * sec, sec}} {
		k.lost = false
		k.take(c.time, c.time, sec, &driver.Answer{Time: c.time.Microseconds(), Frozen: c.frozen})
		require.Equal(t, c.time == 10*sec || c.time == 30*sec, k.lost, c)
	}
	k.accounts[0].reserved = []tagBatch{{due: 1 << 60}, {due: (32 * sec).Microseconds()}}
	k.take(40*sec, 39*sec, sec, &driver.Answer{Time: (30 * sec).Microseconds()})
	require.Equal(t, []tagBatch{
		{due: 1 << 60, from: 40*sec + wire.MaxReach, until: 41*sec + wire.MaxReach}, {due: (32 * sec).Microseconds(), from: 42 * sec, until: 43 * sec},
	}, k.accounts[0].reserved)
}
