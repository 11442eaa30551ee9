package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// fullTable fills the table with tag buckets that have budgets, and one that is full and has none.
func fullTable(p *pool) {
	a, _ := p.open()
	small := draw(1, 1)
	small.Burst = 0
	since := a.pull(small).Time
	with := p.budgets(a, 10)
	var draws []driver.Draw
	for key := range uint64(wire.MaxTagBuckets - 1) {
		with.Key = 1000 + key
		if draws = append(draws, with); len(draws) == wire.MaxDraws || key == wire.MaxTagBuckets-2 {
			for _, d := range a.pull(draws...).Draws {
				require.Equal(p, driver.LackNothing, d.Lack)
			}
			draws = nil
		}
	}
	a.ages(since, 100*time.Millisecond)
	other := draw(2, 1)
	other.Burst = plenty
	require.EqualValues(p, 1, a.pull(other).Draws[0].Tokens, "the first one was full")
	require.Equal(p, driver.Drawn{Key: 1, Lack: driver.LackFull}, a.pull(small).Draws[0], "all others hold something")
	with.Key = 1000
	require.Equal(p, []int64{2}, a.pull(with).Draws[0].Spent, "and are kept")
}

const halfHour = 1_800_000_000

// budgets is a draw of one token from a tag bucket without a total and with a budget for an hour that is half over.
func (p *pool) budgets(a *proc, amount int64) driver.Draw {
	p.Helper()
	wall := a.ages(a.sync(one(0, 0)).Time, time.Millisecond).Wall
	b := driver.BudgetDraw{Amount: amount, Start: wall - halfHour, End: wall + halfHour}
	return driver.Draw{Key: 7, Ask: 1, Budgets: []driver.BudgetDraw{b}}
}

func budget(p *pool) {
	a, b := p.open()
	d := p.budgets(a, 100)
	window := d.Budgets[0]
	named := func(start, end, seen int64) driver.Draw {
		d := d
		d.Budgets = []driver.BudgetDraw{{Amount: 100, Start: start, End: end, Seen: seen}}
		return d
	}
	d.Ask = 60
	got := a.pull(d).Draws[0]
	require.Equal(p, driver.Drawn{Key: 7, Tokens: 60, Paid: got.Paid, Spent: []int64{60}}, got)
	got = b.pull(d).Draws[0]
	require.Equal(p, driver.Drawn{Key: 7, Tokens: 40, Paid: got.Paid, Spent: []int64{100}, Lack: driver.LackBudget, Again: got.Again}, got)
	require.InDelta(p, 30*time.Minute, got.Again, float64(time.Minute), "until the window ends")

	back := named(window.Start, window.End, 90)
	back.Back, back.Owed = 30, 5
	require.Equal(p, []int64{100}, b.pull(back).Draws[0].Spent, "75, and 25 more")

	ended, ahead := named(window.Start-5e9, window.Start, 0), named(window.End, window.End+5e9, 0)
	for _, d := range []driver.Draw{ended, ahead} {
		got := a.pull(d).Draws[0]
		require.Zero(p, got.Tokens)
		require.Equal(p, driver.LackWindow, got.Lack)
		require.Equal(p, []int64{0}, got.Spent)
	}
	next := named(window.Start+1, window.End+1, 30)
	require.Equal(p, []int64{90}, a.pull(next).Draws[0].Spent, "30 were seen")
	next.Budgets[0].Seen = 1000
	require.Equal(p, []int64{100}, b.pull(next).Draws[0].Spent, "what is seen counts only when the store may have forgotten")

	soon := p.lead().Milliseconds()
	next.Total, next.Per, next.Ahead, next.Budgets[0].Amount = perSecond, time.Second, time.Minute, 100+soon/2
	for _, ask := range []int64{3 * soon, soon} { // more than the tag bucket has at once, and no more than that
		next.Ask = ask
		got = b.pull(next).Draws[0]
		require.Zero(p, got.Tokens, "a draw that may wait gets all or nothing")
		require.Equal(p, driver.LackBudget, got.Lack)
		require.Equal(p, []int64{100}, got.Spent)
	}
	next.Ask = soon / 2
	require.Equal(p, next.Ask, b.pull(next).Draws[0].Tokens, "less can be had")
}

func seenSpent(p *pool) {
	a, b := p.open()
	d := p.budgets(a, 100)
	require.Equal(p, []int64{1}, a.pull(d).Draws[0].Spent)
	a.revision += 1000
	d.Budgets[0].Seen = 40
	require.Equal(p, []int64{40}, a.pull(d).Draws[0].Spent)
	require.Equal(p, []int64{40}, b.pull(d).Draws[0].Spent)
	d.Budgets[0].Seen = 30
	require.Equal(p, []int64{40}, a.pull(d).Draws[0].Spent)
}
