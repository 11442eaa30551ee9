package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// byPattern is a draw of one token by a tag that goes by a pattern. A token takes 1,000 s to be earned, and one can be saved up.
func (p *pool) byPattern(name string) driver.Draw {
	return driver.Draw{Key: tagname.Key(name), Pattern: true, Total: 1, Per: 1000 * time.Second, Burst: 1, Ask: 1}
}

// flood draws for so many new names. There is room for each, and most get their token at once. The others are taken for names whose tag buckets
// were dropped before they were full.
func (p *pool) flood(a *proc, kind string, names int, budgets []driver.BudgetDraw) {
	p.Helper()
	var draws []driver.Draw
	served := 0
	for i := range names {
		d := p.byPattern(fmt.Sprint(kind, "/", i))
		d.Budgets = budgets
		if draws = append(draws, d); len(draws) == wire.MaxDraws || i == names-1 {
			for _, got := range a.pull(draws...).Draws {
				require.NotEqual(p, driver.LackFull, got.Lack)
				served += int(got.Tokens)
			}
			draws = nil
		}
	}
	if p.Memory { // a memory store has no freeze, after which nothing is saved up
		require.Greater(p, served*10, names*8)
	}
}

// manyNames makes up twice as many names as there is room for, after and before tags by name draw for the first time.
func manyNames(p *pool) {
	a, b := p.open()
	early := p.budgets(a, 100)
	early.Ask = 60
	require.Equal(p, []int64{60}, a.pull(early).Draws[0].Spent)
	// None of these is full again for a quarter of an hour, but all that was given out is earned.
	p.flood(a, "flood", wire.MaxNames+wire.MaxNames/2, early.Budgets)
	late := early
	late.Key = 8
	require.Equal(p, []int64{60}, b.pull(late).Draws[0].Spent, "a tag by name has a tag bucket, however many names there are")
	got := b.pull(early).Draws[0]
	require.EqualValues(p, 40, got.Tokens)
	require.Equal(p, []int64{100}, got.Spent, "and is counted exactly")
	rate := b.pull(draw(9, plenty))
	require.Equal(p, p.lead().Milliseconds(), rate.Draws[0].Tokens)

	for _, name := range []string{"flood/0", fmt.Sprint("flood/", wire.MaxNames+wire.MaxNames/2-1)} {
		got := a.pull(p.byPattern(name)).Draws[0]
		require.Zero(p, got.Tokens, "who has used its burst gets none again: %s", name)
		require.Equal(p, driver.LackTotal, got.Lack)
	}
	require.LessOrEqual(p, len(p.allTagBuckets()), wire.MaxNames+3)
}

// droppedNames has tag buckets dropped whose names have spent some of a budget.
func droppedNames(p *pool) {
	a, _ := p.open()
	spender := p.budgets(a, 100)
	spender.Key, spender.Pattern, spender.Ask = tagname.Key("free/spender"), true, 60
	require.Equal(p, []int64{60}, a.pull(spender).Draws[0].Spent)
	other := spender
	other.Key, other.Ask = tagname.Key("free/other"), 5
	require.Equal(p, []int64{5}, a.pull(other).Draws[0].Spent)
	p.flood(a, "flood", wire.MaxNames, spender.Budgets)
	p.flood(a, "more", wire.MaxDraws, spender.Budgets)
	for _, tagBucket := range p.allTagBuckets() {
		require.NotEqual(p, spender.Key, tagBucket.Key, "the case needs that the tag bucket is dropped")
	}
	got := a.pull(spender).Draws[0]
	require.EqualValues(p, 40, got.Tokens)
	require.Equal(p, []int64{100}, got.Spent)
	require.Equal(p, driver.LackBudget, got.Lack)
	require.Equal(p, []int64{10}, a.pull(other).Draws[0].Spent, "what others have spent is theirs")
	next := spender
	next.Budgets = []driver.BudgetDraw{{Amount: 100, Start: spender.Budgets[0].Start + 900_000_000, End: spender.Budgets[0].End}}
	require.Equal(p, []int64{60}, a.pull(next).Draws[0].Spent, "another window is another count")
}

// namedLater gives a tag a quota by name after one by a pattern.
func namedLater(p *pool) {
	a, _ := p.open()
	d := p.budgets(a, 100)
	d.Key, d.Pattern, d.Ask = tagname.Key("free/acme"), true, 60
	require.Equal(p, []int64{60}, a.pull(d).Draws[0].Spent)
	d.Pattern, d.Ask = false, 10
	require.Equal(p, []int64{70}, a.pull(d).Draws[0].Spent)
	d.Pattern = true
	require.Equal(p, []int64{80}, a.pull(d).Draws[0].Spent, "one that still goes by the pattern draws from the same tag bucket")
	for _, tagBucket := range p.allTagBuckets() {
		require.Equal(p, d.Key, tagBucket.Key)
		require.EqualValues(p, 80, tagBucket.Spent[0].Tokens)
	}
}

// allTagBuckets returns those of the pool, none if the store cannot read them.
func (p *pool) allTagBuckets() []driver.TagBucket {
	p.Helper()
	r, ok := p.store.(driver.TagBucketReader)
	if !ok {
		return nil
	}
	tagBuckets, err := readTagBuckets(p, r, p.name)
	require.NoError(p, err)
	return tagBuckets
}
