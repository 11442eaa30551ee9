package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// spentSet sets the amount spent of a budget. A store need not be a driver.TagBucketSetter.
func spentSet(p *pool) {
	setter, ok := p.store.(driver.TagBucketSetter)
	if !ok {
		return
	}
	set := func(pool string, s driver.SpentReport) error {
		p.Helper()
		return p.call(func(ctx context.Context) error { return setter.SetSpent(ctx, pool, s) })
	}
	now := time.Now().UnixMicro()
	require.ErrorIs(p, set(p.name, driver.SpentReport{Key: 7, Start: now - halfHour, End: now + halfHour}), driver.ErrNoPool)
	requireRequestError(p, set("", driver.SpentReport{End: 1}), "Pool", "")
	a, b := p.open()
	d := p.budgets(a, 100)
	s := driver.SpentReport{Key: 7, Start: d.Budgets[0].Start, End: d.Budgets[0].End}
	with := func(tokens int64) driver.SpentReport { s := s; s.Tokens = tokens; return s }

	ans := a.sync(one(0, 0))
	require.NoError(p, set(p.name, with(70)), "nobody has drawn from it")
	require.Equal(p, []int64{71}, a.pull(d).Draws[0].Spent)
	after := b.pull(d)
	require.Equal(p, []int64{72}, after.Draws[0].Spent)
	require.Equal(p, ans.Revision+3, after.Revision, "it is a change of the record")
	require.NoError(p, set(p.name, with(70)))
	d.Ask = 60
	require.Equal(p, int64(30), b.pull(d).Draws[0].Tokens, "what is left")
	require.NoError(p, set(p.name, with(10)), "less than before")
	require.Equal(p, int64(60), a.pull(d).Draws[0].Tokens)
	require.NoError(p, set(p.name, with(4*wire.MaxAmount)))
	require.Equal(p, driver.LackBudget, a.pull(d).Draws[0].Lack)
	require.NoError(p, set(p.name, with(0)))

	other := d // tokens given back are taken off
	other.Ask, other.Back = 0, 40
	require.NoError(p, set(p.name, with(50)))
	require.Equal(p, []int64{10}, a.pull(other).Draws[0].Spent)

	tagBuckets, err := readTagBuckets(p, setter, p.name)
	require.NoError(p, err)
	require.Len(p, tagBuckets, 1, "no other tag bucket is made")
	require.Equal(p, []driver.Spent{{Start: s.Start, End: s.End, Tokens: 10}}, tagBuckets[0].Spent)

	refused(p, s, bad{"Tokens": {-1}, "Start": {s.End}}, func(s driver.SpentReport) error { return set(p.name, s) })
	over := driver.SpentReport{Key: 7, Start: s.Start - 10*halfHour, End: s.Start, Tokens: 1}
	requireRequestError(p, set(p.name, over), "Start", "it is over")
	if !p.Deferred {
		requireRequestError(p, set(p.name, driver.SpentReport{Key: 7, Start: s.End, End: s.End + halfHour}), "Start", "it has not begun")
	}
	again, err := readTagBuckets(p, setter, p.name)
	require.NoError(p, err)
	require.Equal(p, tagBuckets, again, "what is refused changes nothing")
}

// spentSetOnATotal sets the amount spent of a tag that has a total too: the total's tokens stay given out.
func spentSetOnATotal(p *pool) {
	setter, ok := p.store.(driver.TagBucketSetter)
	if !ok {
		return
	}
	a, _ := p.open()
	d := p.budgets(a, 1_000_000)
	d.Total, d.Per, d.Burst, d.Ask = perSecond, time.Second, plenty, plenty
	w := driver.SpentReport{Key: 7, Start: d.Budgets[0].Start, End: d.Budgets[0].End, Tokens: 500}
	ans := a.pull(d)
	c := &tagBucket{pool: p, paid: ans.Time}
	c.give(ans)
	require.NoError(p, p.call(func(ctx context.Context) error { return setter.SetSpent(ctx, p.name, w) }))
	ans = a.pull(d)
	c.give(ans)
	require.Equal(p, []int64{500 + ans.Draws[0].Tokens}, ans.Draws[0].Spent)
}

func readTagBuckets(p *pool, reader driver.TagBucketReader, name string) (tagBuckets []driver.TagBucket, err error) {
	err = p.call(func(ctx context.Context) (err error) {
		tagBuckets, err = reader.TagBuckets(ctx, name)
		return err
	})
	return tagBuckets, err
}

// tagBucketsRead reads the tag buckets of a pool. A store need not be a driver.TagBucketReader.
func tagBucketsRead(p *pool) {
	reader, ok := p.store.(driver.TagBucketReader)
	if !ok {
		return
	}
	_, err := readTagBuckets(p, reader, p.name)
	require.ErrorIs(p, err, driver.ErrNoPool)
	_, err = readTagBuckets(p, reader, "")
	requireRequestError(p, err, "Pool", "")
	p.open()
	tagBuckets, err := readTagBuckets(p, reader, p.name)
	require.NoError(p, err)
	require.Empty(p, tagBuckets, "nobody has drawn")

	a := p.proc("a")
	spends, earns := p.budgets(a, 100), draw(1<<63+5, 20)
	spends.Ask, spends.Version, earns.Burst = 30, wire.MaxVersion, 50
	ans := a.pull(earns, spends)
	want := []driver.TagBucket{
		{Key: 7, Version: wire.MaxVersion, Paid: ans.Draws[1].Paid, Full: ans.Draws[1].Paid, Spent: []driver.Spent{
			{Start: spends.Budgets[0].Start, End: spends.Budgets[0].End, Tokens: 30},
		}},
		{Key: 1<<63 + 5, Paid: ans.Draws[0].Paid, Full: ans.Draws[0].Paid + 50_000},
	}
	for range 2 {
		tagBuckets, err = readTagBuckets(p, reader, p.name)
		require.NoError(p, err)
		require.Equal(p, want, tagBuckets)
		tagBuckets[0].Spent[0].Tokens, tagBuckets[1].Paid = 99, 0 // the caller's own
	}
	require.Equal(p, ans.Revision+1, a.sync(one(0, 0)).Revision, "reading changes nothing")
	require.Equal(p, []int64{60}, a.pull(spends).Draws[0].Spent)
}
