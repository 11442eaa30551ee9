package storetest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// tillsRead reads the tills of a pool. A store need not be a driver.TillReader.
func tillsRead(p *pool) {
	reader, ok := p.store.(driver.TillReader)
	if !ok {
		return
	}
	read := func(pool string) (tills []driver.Till, err error) {
		p.Helper()
		err = p.call(func(ctx context.Context) (err error) {
			tills, err = reader.Tills(ctx, pool)
			return err
		})
		return tills, err
	}
	_, err := read(p.name)
	require.ErrorIs(p, err, driver.ErrNoPool)
	var bad *driver.RequestError
	_, err = read("")
	require.ErrorAs(p, err, &bad)
	p.open()
	tills, err := read(p.name)
	require.NoError(p, err)
	require.Empty(p, tills, "nobody has drawn")

	a := p.proc("a")
	spends, earns := p.budgets(a, 100), draw(1<<63+5, 20)
	spends.Ask, spends.Version, earns.Burst = 30, driver.MaxVersion, 50
	ans := a.pull(earns, spends)
	want := []driver.Till{
		{Key: 7, Version: driver.MaxVersion, Paid: ans.Draws[1].Paid, Full: ans.Draws[1].Paid, Spent: []driver.Spent{
			{Start: spends.Budgets[0].Start, End: spends.Budgets[0].End, Tokens: 30},
		}},
		{Key: 1<<63 + 5, Paid: ans.Draws[0].Paid, Full: ans.Draws[0].Paid + 50_000},
	}
	for range 2 {
		tills, err = read(p.name)
		require.NoError(p, err)
		require.Equal(p, want, tills)
		tills[0].Spent[0].Tokens, tills[1].Paid = 99, 0 // the caller's own
	}
	require.Equal(p, ans.Revision+1, a.sync(one(0, 0)).Revision, "reading changes nothing")
	require.Equal(p, []int64{60}, a.pull(spends).Draws[0].Spent)
}
