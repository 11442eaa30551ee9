package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A tag draws from a tag bucket that earns a thousand tokens a second, one in each millisecond. The logical time alone then shows how many the
// tag bucket gives.
const (
	perSecond = 1000
	plenty    = 100_000
)

// draw returns such a draw.
func draw(key uint64, ask int64) driver.Draw {
	return driver.Draw{Key: key, Total: perSecond, Per: time.Second, Burst: plenty, Ask: ask}
}

// pull sends a request with draws and takes the answer, which must be granted.
func (a *proc) pull(draws ...driver.Draw) driver.Answer {
	a.pool.Helper()
	a.draws = draws
	ans := a.drawn(a.request(one(0, 0)))
	require.Equal(a.pool, driver.Granted, ans.Status)
	a.take(ans)
	return ans
}

// drawn sends a request with draws. If the store had to be asked twice, nobody gets them, and the case is over.
func (a *proc) drawn(req driver.Request) (ans driver.Answer) {
	a.pool.Helper()
	attempts := 0
	require.NoError(a.pool, a.pool.call(func(ctx context.Context) (err error) {
		attempts++
		ans, err = a.store.Sync(ctx, req)
		return err
	}))
	if ans.Status == driver.Granted && attempts > 1 && len(ans.Draws) == 0 {
		a.pool.Skip("the store was too slow: a draw was repeated")
	}
	if ans.Status == driver.Granted {
		require.Len(a.pool, ans.Draws, len(req.Draws))
		for i := range req.Draws {
			require.Equal(a.pool, req.Draws[i].Key, ans.Draws[i].Key, "draws are answered in their order")
			require.GreaterOrEqual(a.pool, ans.Draws[i].Tokens, int64(0))
			require.LessOrEqual(a.pool, ans.Draws[i].Tokens, req.Draws[i].Ask)
		}
		require.NoError(a.pool, ans.Check())
	}
	return ans
}

// lead is how far ahead tokens are given out while there are few rows.
func (p *pool) lead() time.Duration { return wire.Interval(p.lease, 1) }

// A tagBucket is a case's view of one: until when, on the logical clock, tokens are given out.
type tagBucket struct {
	*pool
	paid int64
}

// give requires that an answer gives all there is, and no more.
func (c *tagBucket) give(ans driver.Answer) {
	c.Helper()
	earned := max(ans.Time+c.lead().Microseconds()-c.paid, 0) / 1000
	require.Equal(c, earned, ans.Draws[0].Tokens, "%d us of %d are given out: %+v", c.paid-ans.Time, c.lead().Microseconds(), ans.Draws[0])
	c.paid += earned * 1000
	require.Equal(c, c.paid, ans.Draws[0].Paid)
}

// makes draws from a tag bucket for the first time. It gives the earnings of one interval.
func (p *pool) makes(a *proc) *tagBucket {
	p.Helper()
	ans := a.pull(draw(7, plenty))
	c := &tagBucket{pool: p, paid: ans.Time}
	c.give(ans)
	require.Equal(p, p.lead().Milliseconds(), ans.Draws[0].Tokens, "a new tag bucket starts empty")
	return c
}

// ages syncs until some logical time is over since an answer.
func (a *proc) ages(since int64, d time.Duration) driver.Answer {
	a.pool.Helper()
	var ans driver.Answer
	a.pool.eventually("time passes", func() bool {
		ans = a.sync(one(0, 0))
		return ans.Time-since >= d.Microseconds()
	})
	return ans
}

// tagBucketCases are about tag buckets.
var tagBucketCases = []testCase{
	{name: "a tag bucket gives what its total earns, whoever draws", run: func(p *pool) {
		a, b := p.open()
		c := p.makes(a)
		for range 5 {
			ans := b.pull(draw(7, plenty))
			c.give(ans)
			require.Equal(p, driver.LackTotal, ans.Draws[0].Lack)
			require.InDelta(p, 1000, ans.Draws[0].Again.Microseconds(), 1000, "until there is one more")
			c.give(a.pull(draw(7, plenty), draw(8, 1)))
			a.ages(ans.Time, 5*time.Millisecond)
		}
		ans := a.pull(draw(9, 1))
		require.Equal(p, driver.Drawn{Key: 9, Tokens: 1, Paid: ans.Time + 1000}, ans.Draws[0])
	}},
	{name: "no more is saved up than the burst", run: func(p *pool) {
		a, _ := p.open()
		c := p.makes(a)
		a.ages(c.paid, 50*time.Millisecond)
		d := draw(7, plenty)
		d.Burst = 10
		require.Equal(p, 10+p.lead().Milliseconds(), a.pull(d).Draws[0].Tokens)
	}},
	{name: "what is larger than an interval earns is reserved", run: reserved},
	{name: "what is given back can be drawn again", run: backDrawn},
	{name: "what is given back counts only once", run: backTwice},
	{name: "what is owed counts", run: func(p *pool) {
		a, _ := p.open()
		c := p.makes(a)
		d := draw(7, plenty)
		d.Owed = 200
		ans := a.pull(d)
		c.paid += 200_000
		c.give(ans)
		a.ages(c.paid, 100*time.Millisecond)
		c.give(a.pull(draw(7, plenty)))
	}},
	{name: "requests that are late, repeated or replaced draw nothing", run: func(p *pool) {
		a, _ := p.open()
		c := p.makes(a)
		a.draws = []driver.Draw{draw(7, plenty)}
		first := a.request(one(0, 0))
		c.give(a.drawn(first))
		a.ages(a.sync(one(0, 0)).Time, 20*time.Millisecond)
		require.Equal(p, driver.Late, a.send(first).Status)
		a.draws = []driver.Draw{draw(7, plenty)}
		again := a.request(one(0, 0))
		c.give(a.drawn(again))
		ans := a.send(again)
		require.Empty(p, ans.Draws, "a repeat brings none")
		a.take(ans)
		b := a.reborn()
		b.sync(one(0, 0))
		a.draws = []driver.Draw{draw(7, plenty)}
		a.refused(driver.Replaced, 0, 0)
		b.ages(ans.Time, 20*time.Millisecond)
		c.give(b.pull(draw(7, plenty)))
	}},
	{name: "who has an older version of the quotas draws nothing", run: func(p *pool) {
		a, _ := p.open()
		newer, older := draw(7, 1), draw(7, 1)
		older.Version, newer.Version = wire.MaxVersion-1, wire.MaxVersion
		require.EqualValues(p, 1, a.pull(older).Draws[0].Tokens)
		require.EqualValues(p, 1, a.pull(newer).Draws[0].Tokens)
		got := a.pull(older).Draws[0]
		require.Zero(p, got.Tokens)
		require.Equal(p, driver.LackVersion, got.Lack)
		require.EqualValues(p, 1, a.pull(newer).Draws[0].Tokens)
	}},
	{name: "a full table drops tag buckets that are full", run: fullTable},
	{name: "names that go by a pattern make way for each other, and for nobody else", run: manyNames},
	{name: "what names have spent counts when their tag buckets are dropped", run: droppedNames},
	{name: "a name that gets a quota of its own keeps what it has spent", run: namedLater},
	{name: "a budget is for all together", run: budget},
	{name: "budgets that begin at once count the same", run: func(p *pool) {
		a, _ := p.open()
		d := p.budgets(a, 100)
		d.Budgets = append(d.Budgets, d.Budgets[0])
		d.Budgets[1].Amount, d.Budgets[1].End, d.Ask = 1000, d.Budgets[1].End+1e9, 30
		require.Equal(p, []int64{30, 30}, a.pull(d).Draws[0].Spent)
		require.Equal(p, []int64{60, 60}, a.pull(d).Draws[0].Spent)
	}},
	{name: "a store that has forgotten gives nothing until what it gave is void", needs: canForget, run: tagBucketsHeld},
	{name: "what processors have seen spent counts once after a freeze", needs: canForget, run: seenSpent},
	{name: "what is busy is shown to all", run: func(p *pool) {
		a, b := p.open()
		for _, busy := range []string{"x", "\x00\x01 \xff\r\n", strings.Repeat("\x00", wire.MaxBusyBytes), ""} {
			report := one(0, half)
			report.Busy, report.Note = busy, "a note"
			want := driver.RosterRow{ID: "a", Claim: half, Demand: half, PoolSize: 1, Note: "a note", Busy: busy}
			require.Contains(p, timeless(a.sync(report).Roster), want)
			require.Contains(p, timeless(b.sync(one(0, 0)).Roster), want)
		}
	}},
	{name: "operators are shown what tag buckets hold", run: tagBucketsRead},
	{name: "what is spent of a budget can be set", run: spentSet},
	{name: "what is spent can be set of a tag that has a total", run: spentSetOnATotal},
	{name: "a malformed draw is a RequestError and changes nothing", run: malformedDraws},
	{name: "the store tells its own clock", run: func(p *pool) {
		a, _ := p.open()
		before := time.Now()
		first := a.sync(one(0, 0)).Wall
		require.WithinDuration(p, before, time.UnixMicro(first), time.Hour, "it is the clock of this machine")
		ans := a.ages(a.lastTime, 50*time.Millisecond)
		require.GreaterOrEqual(p, ans.Wall-first, int64(10_000))
	}},
}

// reserved draws tokens that take 20 s to earn, so that none is earned yet at the end of the case, on a slow machine too.
func reserved(p *pool) {
	a, b := p.open()
	const tokens, earned = 20_000, 20_000_000 // us
	d := draw(7, tokens)
	d.Ahead = time.Minute
	ans := a.pull(d)
	since := ans.Time
	until := func(paid int64) time.Duration { return time.Duration(paid-ans.Time) * time.Microsecond }
	require.Equal(p, driver.Drawn{Key: 7, Tokens: tokens, From: until(since + earned), Paid: since + earned}, ans.Draws[0], "never on credit")
	ans = b.pull(d)
	require.Equal(p, driver.Drawn{Key: 7, Tokens: tokens, From: until(since + 2*earned), Paid: since + 2*earned}, ans.Draws[0], "after the first")
	d.Ahead = time.Second
	ans = a.pull(d)
	require.Zero(p, ans.Draws[0].Tokens, "too far ahead")
	require.Equal(p, driver.LackTotal, ans.Draws[0].Lack)
	require.Equal(p, until(since+3*earned-d.Ahead.Microseconds()), ans.Draws[0].Again)
	require.Zero(p, b.pull(draw(7, 1)).Draws[0].Tokens, "all that is earned is reserved")
}

func backDrawn(p *pool) {
	a, b := p.open()
	d := p.budgets(a, 100)
	d.Key, d.Ask = 8, 100
	require.EqualValues(p, 100, a.pull(d).Draws[0].Tokens)
	d.Back = 30
	require.EqualValues(p, 30, a.pull(d).Draws[0].Tokens)
	d.Ask, d.Back = 0, 200
	require.Equal(p, []int64{0}, a.pull(d).Draws[0].Spent, "never less than nothing is spent")
	d.Ask, d.Back = 200, 0
	require.EqualValues(p, 100, b.pull(d).Draws[0].Tokens)

	c := p.makes(a)
	d = draw(7, plenty)
	d.Back = 200
	c.give(a.pull(d)) // a total gives nothing again
}

// backTwice: tokens given back are lost if the store cannot know whether the request has counted before.
func backTwice(p *pool) {
	a, _ := p.open()
	d := p.budgets(a, 100)
	d.Ask = 100
	require.EqualValues(p, 100, a.pull(d).Draws[0].Tokens)
	d.Ask, d.Back = 0, 30
	for range 3 { // the answers are lost
		a.draws = []driver.Draw{d}
		require.Equal(p, []int64{70}, a.drawn(a.request(one(0, 0))).Draws[0].Spent)
	}
	clone := a.clone()
	a.sync(one(0, 0))
	clone.draws = []driver.Draw{d}
	require.Equal(p, driver.Cloned, clone.drawn(clone.request(one(0, 0))).Status)
	d.Ask, d.Back = 100, 0
	require.EqualValues(p, 30, p.proc("b").pull(d).Draws[0].Tokens)
}

// hold returns when a store gives tokens again after a freeze for a revision from the future, by an answer of the time of the freeze.
func (p *pool) hold(ans driver.Answer) int64 {
	p.Helper()
	require.Positive(p, ans.Frozen)
	held := 2 * (p.Longest / 4).Microseconds() * 119 / 100
	return ans.Time + ans.Frozen.Microseconds() - wire.Removal(p.Longest).Microseconds() + held
}

func tagBucketsHeld(p *pool) {
	a, _ := p.open()
	c := p.makes(a)
	back := p.budgets(a, 100)
	back.Key, back.Ask = 10, 60
	require.EqualValues(p, 60, a.pull(back).Draws[0].Tokens)
	a.revision += 1000
	back.Ask, back.Back = 1, 20
	for _, d := range a.pull(back, draw(7, plenty), draw(8, 1)).Draws {
		require.Zero(p, d.Tokens)
		require.Equal(p, driver.LackFrozen, d.Lack)
		require.Positive(p, d.Again)
	}
	c.paid = p.hold(a.sync(one(0, 0)))
	since := c.paid
	b := p.proc("b")
	p.eventually("the hold ends", func() bool {
		ans := a.pull(draw(7, plenty), back)
		require.True(p, ans.Time >= since || ans.Draws[0].Lack == driver.LackFrozen)
		if ans.Draws[0].Lack != driver.LackFrozen {
			c.give(ans)
			require.Equal(p, []int64{61}, ans.Draws[1].Spent, "earlier draws are not given back")
			return true
		}
		return false
	})
	ans := b.pull(draw(9, plenty))
	require.Equal(p, p.lead().Milliseconds(), ans.Draws[0].Tokens)
	require.Equal(p, []int64{42}, a.pull(back).Draws[0].Spent, "later ones are")
}
