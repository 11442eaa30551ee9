package driver

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A chaos is a random schedule: honest actors, a network that loses, delays and
// repeats, a store that forgets, clocks that leap and run apart.
type chaos struct {
	*trial
	rng    *rand.Rand
	live   []*actor
	pauses map[*actor]time.Duration // true time until which an actor is silent
	sure   map[*actor]bool          // its next request and the answer are not lost
	mail   []letter
	faults bool // the store may forget
	copies []func()

	granted, refused, frozen, asked int
}

// A letter is something that arrives later.
type letter struct {
	due    time.Duration
	arrive func()
}

func newChaos(tb testing.TB, seed uint64) *chaos {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &chaos{trial: newTrial(tb), rng: rng, pauses: map[*actor]time.Duration{}, sure: map[*actor]bool{}, faults: rng.IntN(3) > 0}
	c.at.Deferred = rng.IntN(2) == 0
	c.storeRate = c.rate()
	for range 2 + rng.IntN(5) {
		c.join("")
	}
	return c
}

// rate is that of a clock which is at most 8.33 % off.
func (c *chaos) rate() float64 { return 1 + 0.0833*(2*c.rng.Float64()-1) }

func (c *chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d))) }

// join starts a process, under an ID of its own unless one is given.
func (c *chaos) join(id string) *actor {
	a := c.actor(cmp.Or(id, fmt.Sprint("p", len(c.actors))))
	a.rate = c.rate()
	if c.rng.IntN(4) == 0 {
		a.lease = short
	}
	c.live = append(c.live, a)
	return a
}

// end ends a process as far as it syncs: it may draw until its lease is over.
func (c *chaos) end(a *actor) {
	c.live = slices.DeleteFunc(c.live, func(b *actor) bool { return a == b })
}

// post lets something arrive now, later, twice or never.
func (c *chaos) post(arrive func()) {
	switch c.rng.IntN(12) {
	case 0:
	case 1:
		c.mail = append(c.mail, letter{c.now + c.upTo(3*time.Second), arrive})
	case 2:
		c.mail = append(c.mail, letter{c.now + c.upTo(40*time.Second), arrive})
	case 3:
		arrive()
		c.mail = append(c.mail, letter{c.now + c.upTo(20*time.Second), arrive})
	default:
		arrive()
	}
}

// sync sends a request, whose answer comes if the network lets it.
func (c *chaos) sync(a *actor) {
	p := a.ask(c.want())
	if c.rng.IntN(8) == 0 && !c.sure[a] {
		a.newest.req.Seq = 0 // the process gave up waiting
	}
	post := c.post
	if c.sure[a] {
		delete(c.sure, a)
		post = func(arrive func()) { arrive() }
	}
	post(func() {
		before := copyRecord(c.record)
		ans := c.deliver(p)
		c.requireSound(before, &p.req, ans)
		post(func() { c.take(a, p, ans) })
	})
}

func (c *chaos) want() Share {
	switch c.rng.IntN(4) {
	case 0:
		return Whole
	case 1:
		return Share(c.rng.Int64N(int64(Whole) + 1))
	default:
		return Whole / Share(len(c.live)+1)
	}
}

func (c *chaos) take(a *actor, p parcel, ans Answer) {
	a.take(p, ans)
	switch {
	case ans.Status == Granted:
		c.granted++
		if ans.Frozen > 0 {
			c.frozen++
		}
	case ans.Status == Behind && a.recalled == ans.Newest:
		c.asked++
	case slices.Contains(c.live, a) && ans.Seq == a.newest.req.Seq:
		c.refused++
		c.end(a)
		if ans.Status != Replaced {
			c.join(a.id)
		}
	}
}

// requireSound requires what holds after every step.
func (c *chaos) requireSound(before *Record, req *Request, ans Answer) {
	after := c.record
	_, err := after.AppendBinary(nil)
	require.NoError(c.t, err)
	if after.Revision == before.Revision {
		require.Equal(c.t, before, after, "a refusal or a repeat changes nothing")
		return
	}
	switch ans.Status {
	case Cloned:
		return
	case Behind:
		require.GreaterOrEqual(c.t, after.Clock, before.Clock)
		require.True(c.t, after.FreezeUnstamped || after.FrozenUntil > after.Clock || c.at.Identity == "")
		i, ok := after.find(RowKey{req.ID, req.Incarnation})
		require.True(c.t, ok)
		require.GreaterOrEqual(c.t, after.Rows[i].Claim, req.InUse, "facts count")
		return
	case Replaced:
		require.GreaterOrEqual(c.t, after.Clock, before.Clock)
		require.LessOrEqual(c.t, after.Claims(), before.Claims(), "time alone frees claims")
		return
	case Granted, Late, Removed:
	}
	require.Equal(c.t, Granted, ans.Status)
	require.GreaterOrEqual(c.t, after.Revision, before.Revision)
	require.GreaterOrEqual(c.t, after.Revision, req.Revision)
	require.GreaterOrEqual(c.t, after.Clock, before.Clock)
	var facts Share
	for _, row := range after.Rows {
		require.Equal(c.t, max(row.InUse, row.Answered), row.Claim)
		if row.ID == req.ID && row.Incarnation == req.Incarnation {
			facts += row.InUse
		} else {
			facts += row.Claim
		}
	}
	require.LessOrEqual(c.t, after.Claims(), max(Whole, facts), "an answer made claims add up to too much")
}

// step lets some time pass and something happen.
func (c *chaos) step() {
	c.wait(c.upTo(700 * time.Millisecond))
	c.arrivals()
	if len(c.live) == 0 {
		c.join("")
	}
	a := c.live[c.rng.IntN(len(c.live))]
	switch n := c.rng.IntN(100); {
	case n < 2:
		c.join(a.id) // beside the old process, which does not know
	case n < 4:
		c.join("")
	case n < 6 && len(c.live) > 2:
		c.end(a) // crash
	case n < 8 && len(c.live) > 2 && c.now >= c.pauses[a]:
		c.end(a)
		a.held = 0
		bye := a.farewell()
		a.newest.req.Seq = 0
		c.post(func() { c.leave(bye) })
	case n < 11:
		c.pauses[a] = max(c.pauses[a], c.now+c.upTo(25*time.Second))
	case n < 13:
		c.storeTime += micros(Clamp(longest)) + c.rng.Int64N(micros(time.Hour))
	case n < 14:
		c.storeTime -= c.rng.Int64N(micros(time.Hour))
	case n == 14:
		c.clone(a)
	case n < 17 && c.faults:
		c.forget()
	default:
		if c.now >= c.pauses[a] {
			c.sync(a)
		}
	}
}

// arrivals lets the letters that are due arrive; they may be answered by others.
func (c *chaos) arrivals() {
	due := slices.DeleteFunc(slices.Clone(c.mail), func(l letter) bool { return l.due > c.now })
	c.mail = slices.DeleteFunc(c.mail, func(l letter) bool { return l.due <= c.now })
	for _, l := range due {
		l.arrive()
	}
}

// clone copies a process without its share, as a snapshot of its machine that is
// started one lease later does. The store cannot tell the copies apart while the
// network keeps the answers from one and loses the requests of the other.
func (c *chaos) clone(a *actor) {
	twin := c.twin(a)
	twin.newest.req.Seq, twin.until = 0, 0
	c.live = append(c.live, twin)
	c.pauses[twin] = c.now + longest*11/10
	c.sure[a], c.sure[twin] = true, true
}

// forget is a restart of the store, with all, some or none of its memory.
func (c *chaos) forget() {
	switch c.rng.IntN(4) {
	case 0:
		c.wipe()
	case 1:
		c.at.Identity += "'"
	case 2:
		c.copies = append(c.copies, c.snapshot())
	default:
		if len(c.copies) > 0 {
			c.copies[c.rng.IntN(len(c.copies))]()
			c.at.Identity += "'"
		}
	}
}

func TestHonestSharesNeverAddUpToMoreThanTheWhole(t *testing.T) {
	seeds, steps := race.Fewer(200), 400
	var granted, refused, frozen, asked, full int
	for seed := range uint64(seeds) {
		c := newChaos(t, seed)
		for range steps {
			c.step()
			require.LessOrEqual(t, c.inUse, Whole, "seed %d: shares in use", seed)
		}
		granted, refused, frozen, asked = granted+c.granted, refused+c.refused, frozen+c.frozen, asked+c.asked
		if c.inUse > Whole*9/10 {
			full++
		}
	}
	// The test would show nothing if nothing happened.
	t.Logf("%d granted, %d refused, %d while frozen, %d asked, %d of %d seeds used the whole", granted, refused, frozen, asked, full, seeds)
	require.Positive(t, asked)
	require.Greater(t, granted, seeds*steps/10)
	require.Greater(t, refused, seeds)
	require.Greater(t, frozen, seeds)
	require.Greater(t, full, seeds*3/4)
}
