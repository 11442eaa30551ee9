package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func canForget(h *Harness) bool   { return !h.Memory }
func canWipe(h *Harness) bool     { return h.Wipe != nil && !h.Memory }
func canRestart(h *Harness) bool  { return h.Restart != nil && !h.Memory }
func canSnapshot(h *Harness) bool { return h.Snapshot != nil && !h.Memory }

// serverCases are those in which something happens to the whole server.
var serverCases = []testCase{
	{name: "a wiped store freezes, and takes what is in use as it is told", needs: canWipe, run: wiped},
	{name: "the documents of a wiped store are given back", needs: canWipe, run: wipedDocuments},
	{name: "another server freezes", needs: canRestart, run: restarted},
}

// forgetCases are those in which the store has forgotten something of one pool.
var forgetCases = []testCase{
	{name: "an older record freezes", needs: canSnapshot, run: rolledBack},
	{name: "a lost row freezes", needs: canSnapshot, run: lostRow},
	{name: "a row older than the last answer freezes", needs: canSnapshot, run: olderRow},
	{name: "a revision from the future freezes", needs: canForget, run: future},
}

func wiped(p *pool) {
	a, b := p.open()
	a.share(0, whole)
	held := a.sync(one(whole, whole))
	p.Wipe(p)

	sent := time.Now()
	ans := b.sync(one(0, whole))
	p.requireFrozen(ans, driver.FreezeNewRecord)
	require.Zero(p, ans.Share, "a may still draw")
	ans = a.sync(one(whole, whole))
	p.requireFrozen(ans, driver.FreezeRollback)
	require.Zero(p, ans.Epoch, "the pool is older than the record")
	require.Equal(p, whole, ans.Share, "what is in use may go on")
	require.Greater(p, ans.Revision, held.Revision)
	a.leave()
	p.thaws(sent, b)
	require.Equal(p, whole, b.share(0, whole))

	another := *p
	another.name += " 2"
	c := another.proc("c")
	req := c.request(one(0, whole))
	req.Outlasts = wire.MaxOutlasts
	ans = c.send(req)
	p.requireFrozen(ans, driver.FreezeNewRecord)
	require.Zero(p, ans.Share, "somebody may go on without the store")
}

// thaws waits until the pool is not frozen any more, and requires that this takes
// a removal time, during which b gets nothing.
func (p *pool) thaws(since time.Time, b *proc) {
	p.Helper()
	p.eventually("the freeze ends", func() bool {
		ans := b.sync(one(0, 0))
		if ans.Frozen == 0 {
			require.Equal(p, driver.FreezeNone, ans.FrozenBy)
		}
		return ans.Frozen == 0
	})
	require.GreaterOrEqual(p, time.Since(since), nearly(wire.Removal(p.Longest)), "the freeze was too short")
}

func restarted(p *pool) {
	a, b := p.open()
	a.share(0, half)
	b.share(0, half)
	p.Restart(p)

	sent := time.Now()
	ans := a.sync(one(half, half))
	p.requireFrozen(ans, driver.FreezeIdentity)
	require.Equal(p, half, ans.Share)
	b.leave()
	ans = a.sync(one(half, whole))
	p.requireFrozen(ans, driver.FreezeIdentity)
	require.Equal(p, half, ans.Share, "a share grew in a frozen pool")
	c := p.proc("c")
	require.Zero(p, c.share(0, half))
	a.share(half/2, 0)
	require.Zero(p, a.share(0, half), "a share that was given up does not come back")
	a.leave()
	p.thaws(sent, c)
	require.Equal(p, whole, c.share(0, whole))
}

func rolledBack(p *pool) {
	a, b := p.open()
	a.share(0, half)
	b.share(0, half)
	restore := p.Snapshot(p, p.name)
	a.share(half, 0)
	a.share(0, 0)
	require.Equal(p, whole, b.share(half, whole))
	held := b.sync(one(whole, whole))
	restore()

	sent := time.Now()
	ans := b.sync(one(whole, whole))
	p.requireFrozen(ans, driver.FreezeRollback)
	require.Greater(p, ans.Revision, held.Revision)
	require.Equal(p, half, ans.Share, "the room that the record shows counts")
	require.Equal(p, half, ans.Roster[0].Claim, "the older record")
	require.Equal(p, whole, ans.Roster[1].Claim, "the fact")
	c := p.proc("c")
	require.Zero(p, c.share(0, whole))
	p.thaws(sent, c)
}

func lostRow(p *pool) {
	a, b := p.open()
	a.share(0, half)
	restore := p.Snapshot(p, p.name)
	require.Equal(p, half, b.share(0, half))
	restore()
	// The record grows past what b has seen before b comes back.
	for range 4 {
		require.Zero(p, a.sync(one(half, half)).Frozen)
	}
	require.Equal(p, whole, a.share(half, whole), "nobody has noticed yet")
	require.Equal(p, half, a.share(half, half))

	sent := time.Now()
	ans := b.sync(one(half, half))
	p.requireFrozen(ans, driver.FreezeLostRow)
	require.Equal(p, half, ans.Share)
	require.Equal(p, half, a.share(half, whole))
	c := p.proc("c")
	require.Zero(p, c.share(0, whole))
	p.thaws(sent, c)
}

func olderRow(p *pool) {
	a, b := p.open()
	a.share(0, half)
	b.share(0, 0)
	restore := p.Snapshot(p, p.name)
	require.Equal(p, half, b.share(0, half))
	restore()
	for range 4 {
		a.sync(one(half, half))
	}
	sent := time.Now()
	ans := b.sync(one(half, whole))
	p.requireFrozen(ans, driver.FreezeLostRow)
	require.Equal(p, half, ans.Share)
	p.thaws(sent, p.proc("c"))
}

func future(p *pool) {
	a, _ := p.open()
	seen := a.sync(one(0, half))
	a.revision += 1000
	sent := time.Now()
	ans := a.sync(one(half, whole))
	p.requireFrozen(ans, driver.FreezeRollback)
	require.Equal(p, seen.Revision+1001, ans.Revision)
	require.Zero(p, ans.Epoch, "the pool is older than the record")
	require.Equal(p, half, ans.Share)
	// Another gap in memory does not shorten the freeze.
	left := ans.Frozen
	a.revision += 1000
	again := a.sync(one(half, whole))
	require.GreaterOrEqual(p, again.Frozen, left)
	p.thaws(sent, a)
}
