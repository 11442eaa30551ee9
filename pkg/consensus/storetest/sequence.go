package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// sequenceCases are about requests that are late, repeated, cloned or replaced.
var sequenceCases = []testCase{
	{name: "a request older than the newest recorded changes nothing", run: func(p *pool) {
		a, _ := p.open()
		a.share(0, half)
		late := a.request(one(0, whole))
		newest := a.sync(one(half, half))
		require.Equal(p, driver.Late, a.send(late).Status)
		ans := a.sync(one(half, half))
		require.Equal(p, newest.Revision+1, ans.Revision)
		require.Equal(p, half, ans.Roster[0].Claim)
	}},
	{name: "the same request again gets the same answer", run: repeats},
	{name: "a repeat of a request that is not the newest is late", run: func(p *pool) {
		a, _ := p.open()
		old := a.request(one(0, half))
		a.take(a.send(old))
		a.share(half, half)
		require.Equal(p, driver.Late, a.send(old).Status)
	}},
	{name: "a lost answer is no clone", run: func(p *pool) {
		a, _ := p.open()
		a.send(a.request(one(0, half))) // the very first answer, too
		require.Equal(p, half, a.share(0, half))
		for range 3 {
			a.send(a.request(one(half, half)))
		}
		require.Equal(p, half, a.share(half, half))
		a.request(one(half, half)) // and a request that never arrived
		a.request(one(half, half))
		require.Equal(p, half, a.share(half, half))
	}},
	{name: "another request under the same number is a clone's", run: func(p *pool) {
		clones(p, func(a, b *proc) driver.Request {
			req := b.request(one(half, half))
			a.sync(one(half, half))
			return req
		})
	}},
	{name: "a request that remembers another answer is a clone's", run: func(p *pool) {
		clones(p, func(a, b *proc) driver.Request {
			a.sync(one(half, half))
			a.sync(one(half, half)) // the answer that b remembers can be nobody's any more
			b.seq += 2
			return b.request(one(half, half))
		})
	}},
	{name: "a request that remembers another nonce is a clone's", run: func(p *pool) {
		clones(p, func(a, b *proc) driver.Request {
			a.sync(one(half, half))
			b.seq, b.lastSeq, b.lastNonce = a.seq, a.lastSeq, a.lastNonce^1
			return b.request(one(half, half))
		})
	}},
	{name: "a request of one that has not sent the newest is a clone's", run: func(p *pool) {
		clones(p, func(a, b *proc) driver.Request {
			a.send(a.request(one(half, half))) // both remember the answer before it
			b.request(one(half, half))         // lost
			return b.request(one(half, half))
		})
	}},
	{name: "a processor goes on from a lost request, or a lost answer", run: func(p *pool) {
		a, _ := p.open()
		for range 3 { // before its first answer, and after
			a.send(a.request(one(0, half)))
			a.request(one(0, half))
			a.send(a.request(one(0, half)))
			a.sync(one(0, half))
		}
	}},
	{name: "a processor goes on from as many unanswered requests as it can name", run: func(p *pool) {
		a, _ := p.open()
		for range 2 { // before its first answer, and after
			a.send(a.request(one(0, half)))
			for range wire.MaxUnanswered - 1 {
				a.request(one(0, half))
			}
			a.sync(one(0, half))
		}
	}},
	{name: "a newer incarnation replaces the older ones, whose claims stay", run: replaces},
	{name: "a replaced incarnation may go on when the newer one is gone", run: func(p *pool) {
		a, _ := p.open()
		a.share(0, half)
		b := a.reborn()
		b.share(0, 0)
		a.refused(driver.Replaced, half, half)
		b.leave()
		a.refused(driver.Removed, half, half)
		require.Equal(p, half, a.reborn().share(0, whole), "the claim of a stays")
	}},
	{name: "a processor that left gets no answers, late packets included", run: leaves},
	{name: "a leave older than the newest request is late", run: func(p *pool) {
		a, b := p.open()
		a.share(0, whole)
		a.share(whole, whole)
		a.sendLeave(1)
		a.sendLeave(2)
		require.Zero(p, b.share(0, whole))
		require.Equal(p, whole, a.share(whole, whole))
	}},
	{name: "a leave of what is not there is no error", run: func(p *pool) {
		a, b := p.proc("a"), p.proc("b")
		a.leave() // not even the pool is there
		p.open()
		a.leave()
		b.share(0, half)
		b.reborn().leave()
		b.leave()
		b.leave()
		require.Equal(p, whole, p.proc("c").share(0, whole))
	}},
}

func repeats(p *pool) {
	a, b := p.open()
	a.share(0, half)
	req := a.request(one(half, whole))
	first := a.send(req)
	require.Equal(p, whole, first.Share)
	again := a.send(req)
	if p.Deferred {
		again.Time = first.Time // the time of the step may have become known since
	}
	require.Equal(p, first, again)

	before := b.sync(one(0, whole))
	require.Zero(p, before.Share)
	a.take(a.send(req))
	after := b.sync(one(0, 0))
	require.Equal(p, before.Revision+1, after.Revision, "a repeat changes nothing")
	require.Equal(p, whole, a.share(whole, whole))
}

// clones gives a processor half of the limit and copies its process. forge may send requests from either. Then the copy sends the request
// that forge returns.
func clones(p *pool, forge func(a, b *proc) driver.Request) {
	a, other := p.open()
	a.share(0, half)
	b := a.clone()
	require.Equal(p, driver.Cloned, b.send(forge(a, b)).Status)
	a.refused(driver.Cloned, half, half)
	b.seq = a.seq + 10
	b.refused(driver.Cloned, half, half)
	a.leave() // neither can speak for the other
	ans := other.sync(one(0, whole))
	require.Equal(p, half, ans.Share, "both may still draw on the claim")
	require.Equal(p, 1, ans.Live)
	require.Zero(p, a.reborn().share(0, whole), "a new incarnation is another matter")
	p.eventually("the claim ends one removal time later", func() bool {
		return other.share(half, whole) == whole
	})
}

func replaces(p *pool) {
	a, _ := p.open()
	sent := time.Now()
	require.Equal(p, half, a.share(0, half))
	b := a.reborn()
	ans := b.sync(one(0, whole))
	require.Equal(p, half, ans.Share, "the process of the first may still draw")
	require.Equal(p, 1, ans.Live)
	require.Equal(p, []driver.RosterRow{{ID: "a", Claim: half, Demand: whole, PoolSize: 1}}, timeless(ans.Roster))
	a.refused(driver.Replaced, half, half)
	a.leave() // it has no say any more

	c := b.reborn()
	require.Zero(p, c.share(0, whole), "every earlier one counts")
	b.refused(driver.Replaced, half, half)
	p.eventually("the claims end one removal time later", func() bool {
		a.refused(driver.Replaced, half, half) // asking does not keep the row
		return c.share(0, whole) == whole
	})
	require.GreaterOrEqual(p, time.Since(sent), nearly(wire.Removal(p.lease)), "too early")
}

func leaves(p *pool) {
	a, b := p.open()
	a.share(0, half)
	late := a.request(one(half, whole))
	a.leave()
	require.Equal(p, driver.Removed, a.send(late).Status)
	a.refused(driver.Removed, half, half)
	require.Equal(p, whole, b.share(0, whole))
	b.leave()

	c := a.reborn()
	require.Equal(p, half, c.share(0, half), "another incarnation may join at once")
	require.Equal(p, driver.Replaced, a.send(late).Status)
	require.Equal(p, half, c.share(half, half))
}

// silenceCases are about the pool's clock, and rows that are silent for too long.
var silenceCases = []testCase{
	{name: "a silent row goes after the removal time, not before", run: silent},
	{name: "a claim that is synced stays", run: func(p *pool) {
		a, b := p.open()
		a.share(0, whole)
		start := b.sync(one(0, whole)).Time
		p.eventually("two removal times pass", func() bool {
			require.Equal(p, whole, a.share(whole, whole))
			ans := b.sync(one(0, whole))
			require.Zero(p, ans.Share)
			return ans.Time-start > 2*wire.Removal(p.lease).Microseconds()
		})
	}},
	{name: "the clock follows the store's, and a leap counts as no time", run: clock},
}

func silent(p *pool) {
	a, b := p.open()
	sent := time.Now()
	last := a.sync(one(0, whole))
	var now int64
	p.eventually("the claim ends", func() bool {
		ans := b.sync(one(0, whole))
		if ans.Share == 0 {
			require.Equal(p, 2, ans.Live)
			now = ans.Time
			return false
		}
		require.Equal(p, whole, ans.Share)
		require.Equal(p, 1, ans.Live)
		require.Greater(p, ans.Time-last.Time, wire.Removal(p.lease).Microseconds(), "on the pool's clock")
		return true
	})
	require.GreaterOrEqual(p, time.Since(sent), nearly(wire.Removal(p.lease)), "in real time")
	slack := int64(0)
	if p.Deferred {
		slack = wire.Clamp(p.lease).Microseconds() // stamped by the step after it
	}
	require.LessOrEqual(p, now-last.Time, wire.Removal(p.lease).Microseconds()+slack, "it stayed too long")
	a.refused(driver.Removed, whole, whole)
	require.Zero(p, a.reborn().share(0, whole))
}

func clock(p *pool) {
	a, _ := p.open()
	clamp := wire.Clamp(p.lease).Microseconds()
	a.sync(one(0, 0))
	// Time passes, in small steps: as much as here, less what steps left out.
	sent := time.Now()
	start := a.sync(one(0, 0)).Time
	last := start
	p.eventually("a removal time passes", func() bool {
		now := a.sync(one(0, 0)).Time
		require.GreaterOrEqual(p, now, last, "the clock never runs backwards")
		require.LessOrEqual(p, now-last, clamp, "it never leaps further than the clamp")
		last = now
		return last-start > wire.Removal(p.lease).Microseconds()
	})
	require.LessOrEqual(p, time.Duration(last-start)*time.Microsecond, time.Since(sent)*21/20+time.Duration(clamp)*time.Microsecond)

	// A gap beyond the clamp counts as no time at all.
	leap := func() int64 {
		pause(wire.Clamp(p.lease) + wire.Clamp(p.lease)/2)
		now := a.sync(one(0, 0)).Time
		delta := now - last
		last = now
		return delta
	}
	if p.Deferred {
		leap() // this one is about the step before the pause
	}
	require.Zero(p, leap())
	require.Zero(p, leap())
}

// pause lets real time pass on the server: there is nothing to poll, and asking
// would end the pause.
func pause(d time.Duration) {
	<-time.After(d)
}

// nonce draws a nonce that no float64 holds exactly.
func nonce() uint64 { return rand.Uint64() | 1<<63 | 1 }
