package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// whole is the whole limit, half is half of it.
const whole, half = driver.Whole, driver.Whole / 2

// joinCases are about the first sync of a pool.
var joinCases = []testCase{
	{name: "the first processor of an open pool gets what it wants", run: func(p *pool) {
		a, _ := p.open()
		ans := a.sync(one(0, whole))
		require.Equal(p, whole, ans.Share)
		require.Zero(p, ans.Frozen)
		require.Equal(p, driver.FreezeNone, ans.FrozenBy)
	}},
	{name: "a new pool is frozen for the longest removal time", run: newPoolFreezes},
	{name: "the first lease is the pool's", run: func(p *pool) {
		a, b := p.proc("a"), p.proc("b")
		b.lease = a.lease / 2
		require.Equal(p, a.lease, a.sync(one(0, 0)).Lease)
		require.Equal(p, a.lease, b.sync(one(0, 0)).Lease, "another lease does not count")
		a.leave()
		require.Equal(p, a.lease, b.sync(one(0, 0)).Lease, "nor does it later")
	}},
}

func newPoolFreezes(p *pool) {
	a := p.proc("a")
	sent := time.Now()
	first := a.sync(one(0, whole))
	if p.Memory || p.KnowsNew && first.Frozen == 0 {
		require.Zero(p, first.Frozen)
		require.Equal(p, driver.FreezeNone, first.FrozenBy)
		require.Equal(p, whole, first.Share)
		return
	}
	p.requireFrozen(first, driver.FreezeNewRecord)
	require.Zero(p, first.Share, "a share grew in a frozen pool")
	b := p.proc("b")
	p.eventually("the freeze ends", func() bool {
		return a.share(0, half) == half
	})
	require.GreaterOrEqual(p, time.Since(sent), nearly(wire.Removal(p.Longest)), "the freeze was too short")
	ans := b.sync(one(0, whole))
	require.Equal(p, half, ans.Share)
	require.Zero(p, ans.Frozen)
	require.Equal(p, driver.FreezeNone, ans.FrozenBy)
}

// requireFrozen requires that the pool is frozen for no longer than it should be.
func (p *pool) requireFrozen(ans driver.Answer, cause driver.FreezeCause) {
	p.Helper()
	require.Positive(p, ans.Frozen, "the pool is not frozen")
	require.LessOrEqual(p, ans.Frozen, wire.Removal(p.Longest))
	require.Equal(p, cause, ans.FrozenBy)
}

// nearly allows for a store's clock that runs faster than this process's.
func nearly(d time.Duration) time.Duration { return d - d/20 }

// roomCases are about facts, room and claims.
var roomCases = []testCase{
	{name: "a claim leaves no room for others", run: func(p *pool) {
		a, b := p.open()
		require.Equal(p, whole*3/4, a.share(0, whole*3/4))
		require.Equal(p, whole/4, b.share(0, whole))
		require.Equal(p, whole*3/4, a.share(whole*3/4, whole), "there is no more room")
		require.Equal(p, whole/4, b.share(whole/4, whole))
	}},
	{name: "an answered share is a claim before it is used", run: func(p *pool) {
		a, b := p.open()
		require.Equal(p, whole, a.share(0, whole))
		require.Zero(p, b.share(0, whole))
	}},
	{name: "a share that nobody wants any more is answered lower", run: func(p *pool) {
		a, _ := p.open()
		a.share(0, whole)
		require.Equal(p, half, a.share(whole, half))
		require.Zero(p, a.share(half, 0))
	}},
	{name: "a claim falls only once less is in use", run: func(p *pool) {
		a, b := p.open()
		require.Equal(p, whole, a.share(0, whole))
		ans := a.sync(one(whole, half))
		require.Equal(p, half, ans.Share)
		require.Equal(p, whole, ans.Roster[0].Claim, "the whole is still in use")
		require.Zero(p, b.share(0, whole))
		require.Equal(p, half, a.share(half, half))
		require.Equal(p, half, b.share(0, whole))
	}},
	{name: "what is in use is the claim, whatever was answered", run: func(p *pool) {
		a, b := p.open()
		require.Equal(p, half, b.share(0, half))
		require.Equal(p, half, a.share(0, whole))
		// a uses more than it was answered: the store does not argue with facts.
		ans := a.sync(one(whole*3/4, whole))
		require.Equal(p, half, ans.Share, "it is told to use less")
		require.Equal(p, whole*3/4, ans.Roster[0].Claim, "but what is in use counts")
		require.Equal(p, whole/4, b.share(half, half), "also against those who do no wrong")
		require.Equal(p, half, b.sync(one(half, half)).Roster[1].Claim)
	}},
	{name: "room is never below nothing", run: func(p *pool) {
		a, b := p.open()
		c := p.proc("c")
		a.share(whole, whole)
		b.share(whole, whole)
		require.Zero(p, c.share(0, whole))
		require.Zero(p, a.share(whole, whole))
		require.Equal(p, whole, a.sync(one(whole, 0)).Roster[1].Claim)
	}},
	{name: "the smallest share counts", run: func(p *pool) {
		a, b := p.open()
		c := p.proc("c")
		require.Equal(p, whole-1, a.share(0, whole-1))
		require.Equal(p, driver.Share(1), b.share(0, whole))
		require.Zero(p, c.share(0, 1))
	}},
	{name: "a leave frees the claim at once", run: func(p *pool) {
		a, b := p.open()
		require.Equal(p, whole, a.share(0, whole))
		require.Zero(p, b.share(0, whole))
		a.leave()
		ans := b.sync(one(0, whole))
		require.Equal(p, whole, ans.Share)
		require.Equal(p, 1, ans.Live)
		require.Len(p, ans.Roster, 1)
	}},
}
