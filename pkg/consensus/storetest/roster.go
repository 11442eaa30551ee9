package storetest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// rosterCases are about what a processor learns of the others.
var rosterCases = []testCase{
	{name: "there is consensus when all report the number of live processors", run: consents},
	{name: "the roster is sorted by the bytes of the ID", run: func(p *pool) {
		ids := []string{"10", "9", "B", "_", "a", "a-10", "a-2", "a.1", "~", "é", "🚀"}
		for i := range ids { // on a slow machine the first of them go before the last one comes
			id := ids[(i*7+3)%len(ids)]
			var got []string
			for _, row := range p.proc(id).sync(one(0, 0)).Roster {
				got = append(got, row.ID)
			}
			require.Contains(p, got, id)
			require.Equal(p, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(got, id) }), got)
		}
	}},
	{name: "the roster shows claim, demand and pool size", run: func(p *pool) {
		p.open()
		p.proc("b").sync(driver.Report{InUse: 0, Wanted: half, Demand: 7, PoolSize: 3})
		ans := p.proc("a").sync(driver.Report{InUse: 5, Wanted: 3, Demand: whole, PoolSize: 1_000_000})
		require.Equal(p, []driver.RosterRow{
			{ID: "a", Claim: 5, Demand: whole, PoolSize: 1_000_000},
			{ID: "b", Claim: half, Demand: 7, PoolSize: 3},
		}, timeless(ans.Roster))
	}},
	{name: "pools know nothing of each other", run: func(p *pool) {
		names := []string{"", "*", ".", ">", " ", "/", ":", "{", "}", "{}", "{x}", "\\", "$", "\n", "%00", "ü", "u\u0308", "A", "a", "\xff", "\xfe"}
		for _, suffix := range names {
			q := *p
			q.name = p.name + suffix
			require.Equal(p, 1, q.proc("a").sync(one(0, 0)).Live, "pool %q", q.name)
		}
	}},
}

func consents(p *pool) {
	sizes := func(n int) driver.Report { return driver.Report{PoolSize: n} }
	a, b, c := p.proc("a"), p.proc("b"), p.proc("c")
	for _, step := range []struct {
		by     *proc
		size   int
		live   int
		agreed bool
		max    int
	}{
		{by: a, size: 0, live: 1, agreed: false, max: 0},
		{by: a, size: 1, live: 1, agreed: true, max: 1},
		{by: b, size: 0, live: 2, agreed: false, max: 1},
		{by: b, size: 2, live: 2, agreed: false, max: 2},
		{by: a, size: 2, live: 2, agreed: true, max: 2},
		{by: c, size: 3, live: 3, agreed: false, max: 3},
		{by: b, size: 3, live: 3, agreed: false, max: 3},
		{by: a, size: 3, live: 3, agreed: true, max: 3},
		{by: b, size: 4, live: 3, agreed: false, max: 4},
		{by: c, size: 4, live: 3, agreed: false, max: 4},
		{by: a, size: 4, live: 3, agreed: false, max: 4},
	} {
		got := step.by.sync(sizes(step.size)).Grant
		require.Equal(p, step.live, got.Live)
		require.Equal(p, step.max, got.PoolSize)
		require.Equal(p, step.agreed, got.Agreed, "%+v", step)
	}
	a.sync(sizes(2))
	c.leave()
	got := b.sync(sizes(2)).Grant
	require.True(p, got.Agreed, "who has left has no say")
	require.Equal(p, 2, got.Live)
}

// timeless returns a roster without silences, which depend on the machine.
func timeless(roster []driver.RosterRow) []driver.RosterRow {
	roster = slices.Clone(roster)
	for i := range roster {
		roster[i].Silent, roster[i].Left = 0, 0
	}
	return roster
}
