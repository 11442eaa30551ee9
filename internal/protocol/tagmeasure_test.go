package protocol

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The demand of a tag is the larger of that since the last mark and of that over two intervals. Who waits for tokens asks the limit for
// all of them at once if more wait than were served; the service, a total, and a block bound what is asked for.
func TestWhatATagsDemandIs(t *testing.T) {
	type want struct {
		demand, recent, wants, uses float64
		slow                        bool
		waited                      int
	}
	begun := tagMark{at: askAt - 1}
	usual := want{demand: 25, recent: 20, wants: 25, uses: 20}
	for name, c := range map[string]struct {
		but func(a *tagAccount)
		want
	}{
		"in the last interval": {func(*tagAccount) {}, usual},
		"in both":              {func(a *tagAccount) { a.Used, a.Refused = 110, 10 }, want{14, 12.5, 14, 12.5, false, 0}},
		"more wait than were served": {
			func(a *tagAccount) { a.Used, a.Refused, a.Waiting = 110, 10, 30 }, want{21.5, 12.5, 60, 12.5, false, 1},
		},
		"as many":       {func(a *tagAccount) { a.Used, a.Refused, a.Waiting = 130, 10, 30 }, want{30, 17.5, 60, 17.5, false, 1}},
		"fewer":         {func(a *tagAccount) { a.Refused, a.Waiting = 10, 30 }, want{35, 20, 35, 20, false, 1}},
		"still waiting": {func(a *tagAccount) { a.Refused, a.Waiting, a.waited = 10, 4, 1 }, want{40, 20, 40, 20, false, 2}},
		"still waiting for what is reserved": {
			func(a *tagAccount) { a.Refused, a.Waiting, a.waited, a.quota.Reserved = 10, 4, 1, 70 }, want{70, 20, 70, 20, false, 2},
		},
		"no longer":     {func(a *tagAccount) { a.waited = 1 }, usual},
		"a total":       {func(a *tagAccount) { a.Used, a.Refused, a.Waiting, a.quota.Total = 110, 10, 30, 20 }, want{20, 12.5, 20, 12.5, false, 1}},
		"a high one":    {func(a *tagAccount) { a.Used, a.Refused, a.Waiting, a.quota.Total = 110, 10, 30, 40 }, want{21.5, 12.5, 40, 12.5, false, 1}},
		"a shadow":      {func(a *tagAccount) { a.quota.Total, a.quota.Shadow = 20, true }, usual},
		"a block":       {func(a *tagAccount) { a.quota.Blocked = true }, want{0, 20, 0, 20, false, 0}},
		"it is slow":    {func(a *tagAccount) { a.Used, a.Refused, a.Limiting = 290, 10, 100 }, want{95, 95, 95, 57.5, true, 0}},
		"not quite":     {func(a *tagAccount) { a.Used, a.Refused, a.Limiting = 290, 10, 100.1 }, want{95, 95, 95, 57.5, false, 0}},
		"held back":     {func(a *tagAccount) { a.Limiting, a.Held = 50, true }, want{25, 20, 25, 20, true, 0}},
		"a little":      {func(a *tagAccount) { a.Limiting, a.Held = 50.1, true }, usual},
		"by nobody":     {func(a *tagAccount) { a.Held = true }, usual},
		"just in time":  {func(a *tagAccount) { a.marks[0].at = askAt - askEvery*9/10 }, want{50 / 1.8, 40 / 1.8, 50 / 1.8, 20, false, 0}},
		"early":         {func(a *tagAccount) { a.marks[0].at = askAt - askEvery*9/10 + 1 }, want{160. / 6, 140. / 6, 160. / 6, 100 / 4.2, false, 0}},
		"for the first": {func(a *tagAccount) { a.marks = [3]tagMark{begun, begun, begun} }, want{160 / 1.8, 140 / 1.8, 160 / 1.8, 0, false, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			a := anAccount(func(a *tagAccount) {
				a.quota.Total, a.Used, a.Refused = 0, 140, 20
				a.marks = [3]tagMark{{askAt - askEvery, 100, 10}, {askAt - 2*askEvery, 60, 4}, {askAt - 3*askEvery, 0, 0}}
				c.but(a)
			})
			before := a.marks
			a.measure(askAt, askEvery)
			require.InDelta(t, c.demand, a.demand, 1e-6)
			require.InDelta(t, c.recent, a.recent, 1e-6)
			require.InDelta(t, c.wants, a.wants, 1e-6)
			require.InDelta(t, c.uses, a.uses, 1e-6)
			require.Equal(t, c.slow, a.slow)
			require.Equal(t, c.waited, a.waited)
			if askAt-before[0].at >= askEvery*9/10 {
				before = [3]tagMark{{askAt, a.Used, a.Refused}, before[0], before[1]}
			}
			require.Equal(t, before, a.marks, "marks are an interval apart")
		})
	}
}

// A tag is in use when somebody draws, is refused, or waits.
func TestWhenATagIsInUse(t *testing.T) {
	for r, active := range map[tagMark]bool{{used: 5, refused: 3}: false, {used: 6, refused: 3}: true, {used: 5, refused: 4}: true} {
		for waiting := range int64(2) {
			a := tagAccount{TagReport: sharing.TagReport{Used: r.used, Refused: r.refused, Waiting: waiting}, active: 1}
			a.marks[0] = tagMark{used: 5, refused: 3}
			a.measure(askAt, askEvery)
			require.Equal(t, active || waiting > 0, a.active == askAt, "%v %d", r, waiting)
		}
	}
}

// A limiter may report anything. An account has no number below 0 of it, and counts do not go back.
func TestWhatAnAccountTakesOfAReport(t *testing.T) {
	const low = math.MinInt64
	var a tagAccount
	sane := sharing.TagReport{Used: 9, Refused: 8, Waiting: 7, InHand: 6, Promised: 5, Owed: 4, Head: 2, Line: 3, Limiting: 1, Lasts: 1}
	a.take(&sane, false)
	require.Equal(t, sane, a.TagReport)
	a.take(&sharing.TagReport{
		Used: low, Refused: low, Waiting: low, InHand: low, Promised: low, Owed: low, Head: low, Line: low, Limiting: -1,
	}, false)
	require.Equal(t, sharing.TagReport{Used: 9, Refused: 8, Owed: 4}, a.TagReport)
	a.take(&sharing.TagReport{Head: 5, Line: 3, Owed: 2e9}, false)
	require.Equal(t, []int64{5, 5, maxAsk}, []int64{a.Head, a.Line, a.Owed}, "the first caller is one of them")
	a.take(&sharing.TagReport{Owed: 2e9}, true)
	require.Equal(t, []float64{maxAsk, -maxAsk}, []float64{float64(a.Owed), a.credit}, "without the store it is owed to nobody else")

	a.size, a.sizeOf = 5, keepSize-1
	a.take(&sharing.TagReport{Head: 5}, false)
	require.Zero(t, a.sizeOf, "the largest call has come again")

	budgets := limit.Quota{Budgets: make([]limit.Budget, 1)}
	for _, c := range []struct {
		q                  limit.Quota
		had, tokens, in, n int64
	}{{budgets, 3, 5, 7, 8}, {budgets, 3, 5, 6, 3}, {limit.Quota{Total: 1}, 3, 5, 7, 3}, {budgets, 3, maxAsk, 7, maxAsk}} {
		a := tagAccount{quota: c.q, window: 7}
		a.BackSpent = c.had
		a.gives(c.tokens, c.in)
		require.Equal(t, c.n, a.BackSpent, c)
	}
}

// What is spent, and what can be given back, begins again with each window of a budget, and with each other budget.
func TestBudgetsRollOn(t *testing.T) {
	half := time.Date(2026, 3, 4, 0, 30, 0, 0, time.UTC)
	hour, day := limit.Budget{Amount: 9, Per: limit.PeriodHour, Zone: "UTC"}, limit.Budget{Amount: 90, Per: limit.PeriodDay, Zone: "UTC"}
	var a tagAccount
	for i, c := range []struct {
		budgets []limit.Budget
		at      time.Time
		seen    [wire.MaxBudgets]int64
		rolled  bool
	}{
		{[]limit.Budget{hour, day}, half, [3]int64{}, true},
		{[]limit.Budget{hour, day}, half.Add(sec), [3]int64{5, 5}, false},
		{[]limit.Budget{hour, day}, half.Add(time.Hour), [3]int64{0, 5}, true},
		{[]limit.Budget{hour, day}, half, [3]int64{0, 5}, true}, // the store's clock went back
		{[]limit.Budget{day, day}, half, [3]int64{0, 5}, true},  // both have begun at midnight
		{[]limit.Budget{day}, half, [3]int64{5}, true},
		{[]limit.Budget{day}, half, [3]int64{5}, false},
		{nil, half, [3]int64{}, true},
	} {
		a.quota.Budgets, a.BackSpent = c.budgets, 7
		before := a.window
		a.roll(c.at.UnixMicro())
		require.Equal(t, c.rolled, a.window > before, i)
		require.Equal(t, c.rolled, a.BackSpent == 0, i)
		for k := range a.budgets {
			require.Equal(t, c.seen[k], a.budgets[k].seen, "%d: %d", i, k)
		}
		for k, b := range c.budgets {
			start, end := b.Window(c.at)
			require.Equal(t, tagBudget{per: b.Per, start: start.UnixMicro(), end: end.UnixMicro(), amount: b.Amount, seen: c.seen[k]}, a.budgets[k])
			a.budgets[k].seen = 5
		}
	}
}
