package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// deathCases are about processes that are known to be dead, and their claims.
var deathCases = []testCase{
	{name: "what the dead have held is free at once", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		a.share(0, half)
		b.share(0, half)
		got := a.successor(a).share(0, whole)
		return began, func() {
			require.Equal(p, half, got, "as much as the dead one had, and no more")
			require.Equal(p, half, b.share(half, half))
		}
	}},
	{name: "a death may be told again, and of all that have died since", timed: func(p *pool) (time.Time, func()) {
		a, _ := p.open()
		began := time.Now()
		a.share(0, half)
		b := a.reborn() // it does not know, dies as well, and has heard no answer
		b.send(b.request(one(0, half)))
		c := b.successor(a, b)
		c.send(c.request(one(0, half))) // the answer is lost
		got := c.share(0, whole)
		return began, func() { require.Equal(p, whole, got) }
	}},
	{name: "a death is told by one that is in the pool already", timed: func(p *pool) (time.Time, func()) {
		a, _ := p.open()
		began := time.Now()
		a.share(0, whole)
		b := a.reborn()
		before := b.share(0, whole)
		b.dead = []driver.Death{a.death()}
		after := b.share(0, whole)
		return began, func() {
			require.Zero(p, before)
			require.Equal(p, whole, after)
		}
	}},
	{name: "late packets of the dead change nothing", run: func(p *pool) {
		a, _ := p.open()
		a.share(0, whole)
		late := a.request(one(whole, whole))
		farewell := a.farewell(a.seq + 1)
		b := a.successor(a)
		require.Equal(p, whole, b.share(0, whole))
		require.Equal(p, driver.Replaced, a.send(late).Status)
		require.NoError(p, a.store.Leave(p.Context(), farewell))
		ans := b.sync(one(whole, whole))
		require.Equal(p, whole, ans.Share)
		require.Zero(p, ans.Frozen)
		require.Equal(p, 1, ans.Live)
	}},
	{name: "the death of a clone frees nothing", timed: func(p *pool) (time.Time, func()) {
		a, _ := p.open()
		began := time.Now()
		a.share(0, half)
		dies := a.clone()
		a.share(half, half) // the other goes on
		b := a.successor(dies)
		got := b.share(0, whole)
		again := b.share(half, whole) // closed as a clone's, with what its process has sent, too
		b.dead = []driver.Death{a.death()}
		last := b.share(half, whole)
		return began, func() {
			require.Equal(p, []driver.Share{half, half, half}, []driver.Share{got, again, last})
			a.refused(driver.Cloned, half, half)
		}
	}},
	{name: "a death of what is not there, or of another's, changes nothing", timed: func(p *pool) (time.Time, func()) {
		a, b := p.open()
		began := time.Now()
		a.share(0, half)
		b.dead = []driver.Death{{Incarnation: "nobody"}, a.death()} // under another ID
		got := b.share(0, whole)
		return began, func() {
			require.Equal(p, half, got)
			require.Equal(p, half, a.share(half, half))
		}
	}},
	{name: "a malformed death is a RequestError", run: malformedDeath},
}

// death names the death of the process.
func (a *proc) death() driver.Death {
	return driver.Death{
		Incarnation: a.incarnation, Last: driver.Ticket{Seq: a.lastSeq, Nonce: a.lastNonce}, Unanswered: a.unanswered(a.lastSeq, a.seq+1),
	}
}

// successor returns the next incarnation of a's ID, which knows that these are dead.
func (a *proc) successor(dead ...*proc) *proc {
	b := a.reborn()
	for _, d := range dead {
		b.dead = append(b.dead, d.death())
	}
	return b
}
