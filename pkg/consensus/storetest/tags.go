package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// tagCases are about several tags in one pool.
func tagCases() []testCase {
	return []testCase{
		{name: "tags of one request are answered in order, and share one whole", run: func(p *pool) {
			p.open()
			a, b := p.proc("a"), p.proc("b")
			ans := a.sync(tag("z", 0, half), tag("", 0, half/2), tag("m", 0, half))
			require.Equal(p, []driver.Share{half, half / 2, half / 2}, shares(ans))
			require.Zero(p, b.share(0, whole))
		}},
		{name: "a processor's own other tags count", run: func(p *pool) {
			p.open()
			a := p.proc("a")
			a.sync(tag("x", 0, half), tag("y", 0, half))
			ans := a.sync(tag("x", half, whole), tag("y", half, whole))
			require.Equal(p, []driver.Share{half, half}, shares(ans))
			// The first gives up before the second asks, but still uses its share.
			ans = a.sync(tag("x", half, 0), tag("y", half, whole))
			require.Equal(p, []driver.Share{0, half}, shares(ans))
			ans = a.sync(tag("x", 0, 0), tag("y", half, whole))
			require.Equal(p, []driver.Share{0, whole}, shares(ans))
		}},
		{name: "a tag asked for later leaves room to one asked for earlier only if it is free", run: func(p *pool) {
			p.open()
			a := p.proc("a")
			ans := a.sync(tag("x", half, whole), tag("y", half, 0))
			require.Equal(p, []driver.Share{half, 0}, shares(ans), "y is still in use")
		}},
		{name: "a tag that is not named any more is in use no more", run: func(p *pool) {
			p.open()
			a, b := p.proc("a"), p.proc("b")
			a.sync(tag("x", 0, half), tag("y", 0, half))
			require.Zero(p, b.share(0, whole))
			a.sync(tag("x", half, half))
			ans := b.sync(tag("y", 0, whole), tag("x", 0, 0))
			require.Equal(p, []driver.Share{half, 0}, shares(ans))
			require.Equal(p, 1, ans.Tags[0].Live, "a does not hold y any more")
			require.Equal(p, 2, ans.Tags[1].Live)
		}},
		{name: "the roster of a tag holds those who hold the tag", run: func(p *pool) {
			p.open()
			a, b := p.proc("a"), p.proc("b")
			a.sync(tag("x", 0, half/2), tag("y", 0, half/2))
			ans := b.sync(tag("y", 0, half), tag("z", 0, 0))
			require.Equal(p, []driver.RosterRow{
				{ID: "a", Claim: half / 2, Demand: half / 2, PoolSize: 1},
				{ID: "b", Claim: half, Demand: half, PoolSize: 1},
			}, ans.Tags[0].Roster)
			require.Equal(p, []driver.RosterRow{{ID: "b", PoolSize: 1}}, ans.Tags[1].Roster)
			require.Equal(p, 1, ans.Tags[1].Live)
			require.True(p, ans.Tags[1].Agreed)
			require.False(p, ans.Tags[0].Agreed)
		}},
		{name: "as many tags as a request may have", run: func(p *pool) {
			p.open()
			a := p.proc("a")
			var tags []driver.TagReport
			for i := range 64 {
				tags = append(tags, tag(fmt.Sprint("t", 63-i), 0, whole/64))
			}
			for _, share := range shares(a.sync(tags...)) {
				require.Equal(p, whole/64, share)
			}
			require.Zero(p, p.proc("b").share(0, whole)-whole%64)
		}},
	}
}

// shares returns the shares of an answer, in order.
func shares(ans driver.Answer) []driver.Share {
	out := make([]driver.Share, len(ans.Tags))
	for i := range out {
		out[i] = ans.Tags[i].Share
	}
	return out
}

// rosterCases are about what a processor learns of the others.
func rosterCases() []testCase {
	return []testCase{
		{name: "there is consensus when all report the number of live processors", run: consents},
		{name: "the roster is sorted by the bytes of the ID", run: func(p *pool) {
			ids := []string{"10", "9", "B", "_", "a", "a-10", "a-2", "a.1", "~", "é", "🚀"}
			p.inTime(func(p *pool) (time.Time, func()) {
				began := time.Now()
				for i := range ids {
					p.proc(ids[(i*7+3)%len(ids)]).sync(one(0, 0))
				}
				var got []string
				for _, row := range p.proc("9").sync(one(0, 0)).Tags[0].Roster {
					got = append(got, row.ID)
				}
				return began, func() { require.Equal(p, ids, got) }
			})
		}},
		{name: "the roster shows claim, demand and pool size", run: func(p *pool) {
			p.open()
			p.proc("b").sync(driver.TagReport{InUse: 0, Wanted: half, Demand: 7, PoolSize: 3})
			ans := p.proc("a").sync(driver.TagReport{InUse: 5, Wanted: 3, Demand: whole, PoolSize: 1_000_000})
			require.Equal(p, []driver.RosterRow{
				{ID: "a", Claim: 5, Demand: whole, PoolSize: 1_000_000},
				{ID: "b", Claim: half, Demand: 7, PoolSize: 3},
			}, ans.Tags[0].Roster)
		}},
		{name: "pools know nothing of each other", run: func(p *pool) {
			names := []string{"", "*", ".", ">", " ", "/", ":", "{", "}", "{}", "{x}", "\\", "$", "\n", "%00", "ü", "u\u0308", "A", "a", "\xff", "\xfe"}
			for _, suffix := range names {
				q := *p
				q.name = p.name + suffix
				require.Equal(p, 1, q.proc("a").sync(one(0, 0)).Tags[0].Live, "pool %q", q.name)
			}
		}},
	}
}

func consents(p *pool) {
	sizes := func(n int) driver.TagReport { return driver.TagReport{PoolSize: n} }
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
		got := step.by.sync(sizes(step.size)).Tags[0]
		require.Equal(p, step.live, got.Live)
		require.Equal(p, step.max, got.PoolSize)
		require.Equal(p, step.agreed, got.Agreed, "%+v", step)
	}
	a.sync(sizes(2))
	c.leave()
	got := b.sync(sizes(2)).Tags[0]
	require.True(p, got.Agreed, "who has left has no say")
	require.Equal(p, 2, got.Live)
}
