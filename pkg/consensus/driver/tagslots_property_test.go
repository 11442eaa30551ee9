package driver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// slotTotals are the totals of the tags of a slotTrial, whose keys are their places.
var slotTotals = [...]int64{1, 5, 12}

// A slotUser is a process that makes calls with tags as the protocol says. Time is microseconds.
type slotUser struct {
	id, incarnation string
	lease           time.Duration
	seq             uint64
	last            Answer
	open            []Ticket
	sent            []Ticket // all that it has sent
	recalled        Ticket
	newest          Request
	sentAt          int64
	answer          *Answer // to newest, on its way
	arrives         int64
	next            int64 // when it syncs
	until           int64 // when its lease ends
	retired         bool  // it syncs no more, and its calls run on until then

	// held is how many slots it may use, running how many calls are under way, granted the newest answer.
	held, running, granted [len(slotTotals)]int64
}

// A slotTrial is a pool of such processes, of which requests and answers get lost and which die, and a store that forgets.
type slotTrial struct {
	t      *testing.T
	rnd    *rand.Rand
	rec    Record
	kept   *Record
	at     At
	now    int64
	wrote  int64
	all    []*slotUser
	births int
	clones bool // processes are cloned: of these only the claims are promised
	seen   map[string]int
}

// TestSlotsOfTagsKeepToTheTotal: whatever is lost, repeated, killed, replaced or forgotten, no step lifts the claims of a tag above its total, and
// no more slots of a tag are used than its total at any moment.
func TestSlotsOfTagsKeepToTheTotal(t *testing.T) {
	seen := map[string]int{}
	seeds := testkit.Fewer(200)
	for seed := range uint64(seeds) {
		newSlotTrial(t, seed, seen).play(90 * time.Second)
	}
	t.Logf("%v", seen)
	if seeds < 200 {
		return // not all of it comes in so few
	}
	for _, what := range []string{
		"granted", "behind", "replaced", "removed", "cloned", "late", "repeated", "lost", "killed", "dead", "left", "zombie", "wiped", "restarted",
		"rolled back", "frozen", "full", "above the grant",
	} {
		require.Positive(t, seen[what], "nothing was %s", what)
	}
}

func newSlotTrial(t *testing.T, seed uint64, seen map[string]int) *slotTrial {
	c := &slotTrial{
		t: t, rnd: rand.New(rand.NewPCG(seed, 11)), at: At{Identity: "0", Remembers: math.MaxInt64, Deferred: seed%3 == 2},
		now: 1_795_000_000_000_000, clones: seed%4 == 3, seen: seen,
	}
	for i := range 4 {
		c.start(fmt.Sprint("p", i))
	}
	return c
}

// start starts a process.
func (c *slotTrial) start(id string) *slotUser {
	c.births++
	u := &slotUser{id: id, incarnation: fmt.Sprint(c.births), next: c.now + c.rnd.Int64N(1_000_000), lease: DefaultLease}
	if c.rnd.IntN(3) == 0 {
		u.lease = 3 * time.Second
	}
	c.all = append(c.all, u)
	return u
}

func (c *slotTrial) play(d time.Duration) {
	for end := c.now + d.Microseconds(); c.now < end; c.now += 50_000 {
		c.fault()
		for _, u := range slices.Clone(c.all) {
			c.use(u)
			c.take(u)
			if !u.retired && c.now >= u.next {
				c.send(u)
				u.next = c.now + 700_000 + c.rnd.Int64N(600_000)
			}
		}
		c.requireTotals()
	}
}

// requireTotals fails if more slots of a tag are used than its total.
func (c *slotTrial) requireTotals() {
	if c.clones {
		return
	}
	for key, total := range slotTotals {
		sum := int64(0)
		for _, u := range c.all {
			sum += max(u.held[key], u.running[key])
		}
		require.LessOrEqual(c.t, sum, total, "tag %d at %d", key, c.now)
		if sum == total {
			c.seen["full"]++
		}
	}
}

// use begins and ends calls, and ends all of them with the lease.
func (c *slotTrial) use(u *slotUser) {
	for key := range slotTotals {
		if c.now >= u.until {
			u.held[key], u.running[key], u.granted[key] = 0, 0, 0
		}
		switch c.rnd.IntN(30) {
		case 0:
			u.running[key] = c.rnd.Int64N(u.running[key] + 1)
		case 1:
			u.running[key] = max(u.running[key], u.held[key])
		}
		u.held[key] = max(u.running[key], min(u.held[key], u.granted[key]))
		if u.held[key] > u.granted[key] && !u.retired {
			c.seen["above the grant"]++
		}
	}
	if u.retired && c.now >= u.until {
		c.all = slices.DeleteFunc(c.all, func(o *slotUser) bool { return o == u })
	}
}

// send sends a request, or the newest one again. The answer is lost or takes its time.
func (c *slotTrial) send(u *slotUser) {
	if len(u.open) == 0 || c.rnd.IntN(5) > 0 {
		c.ask(u)
	}
	if c.rnd.IntN(10) == 0 {
		c.seen["lost"]++
		return
	}
	ans := c.sync(&u.newest)
	u.answer, u.arrives = &ans, c.now+c.rnd.Int64N(400_000)
	if c.rnd.IntN(10) == 0 {
		u.answer = nil
		c.seen["lost"]++
	}
}

// ask makes the next request. The process gives up what it does not want before it says so.
func (c *slotTrial) ask(u *slotUser) {
	if u.newest.Seq > u.last.Seq {
		u.open = append(u.open, Ticket{u.newest.Seq, u.newest.Nonce})
	}
	u.open = u.open[max(0, len(u.open)-20):]
	u.seq++
	u.newest = Request{
		Pool: "p", ID: u.id, Incarnation: u.incarnation, Seq: u.seq, Nonce: c.rnd.Uint64(), Lease: u.lease, LastSeq: u.last.Seq,
		LastNonce: u.last.Nonce, LastTime: u.last.Time, Revision: u.last.Revision, Unanswered: slices.Clone(u.open), Dead: u.newest.Dead,
	}
	if u.recalled.Seq < u.last.Seq {
		u.newest.Recalled = u.recalled
	}
	u.sent, u.sentAt = append(u.sent, Ticket{u.seq, u.newest.Nonce}), c.now
	for key, total := range slotTotals {
		want := c.rnd.Int64N(total + 2)
		u.held[key] = max(u.running[key], min(u.held[key], want))
		if s := (TagSlots{Key: uint64(key), InUse: u.held[key], Wanted: want, Demand: want, Total: total}); s.InUse+s.Demand > 0 {
			u.newest.TagSlots = append(u.newest.TagSlots, s)
		}
	}
}

// sync makes one step of the store, and requires that it lifts no claim above the total.
func (c *slotTrial) sync(req *Request) Answer {
	require.NoError(c.t, req.Validate())
	before := c.rec
	before.Rows = slices.Clone(before.Rows)
	ans, changed := c.rec.Sync(req, c.moment())
	if changed {
		c.wrote = c.now
		requireTagClaims(c.t, &before, &c.rec, req, &ans)
	} else if ans.Status == Granted {
		c.seen["repeated"]++
	}
	c.seen[ans.Status.String()]++
	if ans.Frozen > 0 {
		c.seen["frozen"]++
	}
	return ans
}

// moment is the At of a step.
func (c *slotTrial) moment() At {
	at := c.at
	if at.Now = c.now; at.Deferred {
		at.Now = c.wrote
	}
	return at
}

// take takes the answer to the newest request when it arrives.
func (c *slotTrial) take(u *slotUser) {
	ans := u.answer
	if ans == nil || c.now < u.arrives {
		return
	}
	if u.answer = nil; ans.Seq != u.newest.Seq || u.retired {
		return
	}
	switch {
	case ans.Status == Granted:
		if c.now >= u.until && u.newest.TagSlots != nil && slices.ContainsFunc(u.newest.TagSlots, func(s TagSlots) bool { return s.InUse > 0 }) {
			u.last, u.open = *ans, nil // what it had reported is not held any more: nothing rests on the answer
			return
		}
		u.last, u.open, u.recalled, u.newest.Dead = *ans, nil, Ticket{}, nil
		if u.until = u.sentAt + ans.Lease.Microseconds(); c.now >= u.until {
			return
		}
		u.granted = [len(slotTotals)]int64{}
		for _, g := range ans.TagSlots {
			u.granted[g.Key] = g.Granted
		}
		for key := range slotTotals {
			u.held[key] = max(u.running[key], u.granted[key])
		}
	case ans.Status == Behind && slices.Contains(u.sent, ans.Newest):
		u.recalled = ans.Newest
	case ans.Status != Late:
		u.retired = true
		if ans.Status != Replaced {
			c.start(u.id)
		}
	}
}

// fault lets a process or the store fail, seldom.
func (c *slotTrial) fault() {
	i := c.rnd.IntN(len(c.all))
	u := c.all[i]
	switch c.rnd.IntN(900) {
	case 0:
		c.rec, c.at.Remembers, c.wrote = Record{}, 0, 0
		c.seen["wiped"]++
	case 1:
		c.at.Identity += "'"
		c.seen["restarted"]++
	case 2, 3:
		rec := c.rec
		rec.Rows = slices.Clone(rec.Rows)
		c.kept = &rec
	case 4:
		if c.kept != nil { // a failover to an older copy
			c.rec = *c.kept
			c.rec.Rows = slices.Clone(c.kept.Rows)
			c.at.Identity += "'"
			c.seen["rolled back"]++
		}
	case 5, 6, 7, 8:
		c.kill(i)
	case 9, 10, 11:
		if !u.retired { // another process comes under its ID, and it does not know
			c.start(u.id)
			u.next += c.rnd.Int64N(12_000_000)
			c.seen["zombie"]++
		}
	case 12, 13, 14:
		if u.running == [len(slotTotals)]int64{} && !u.retired {
			l := Leave{Pool: "p", ID: u.id, Incarnation: u.incarnation, Seq: u.seq + 1, LastSeq: u.last.Seq, LastNonce: u.last.Nonce}
			l.Unanswered = append(slices.Clone(u.open), Ticket{u.newest.Seq, u.newest.Nonce})
			if l.Unanswered[len(l.Unanswered)-1].Seq > l.LastSeq && c.rec.Leave(&l, c.moment()) {
				c.wrote = c.now
			}
			c.all = slices.Delete(c.all, i, i+1)
			c.start(u.id)
			c.seen["left"]++
		}
	case 15, 16:
		if c.clones {
			twin := *u
			twin.open, twin.sent = slices.Clone(u.open), slices.Clone(u.sent)
			c.all = append(c.all, &twin)
		}
	}
}

// kill ends a process with its calls, and starts the next one under its ID, which may know that it is dead.
func (c *slotTrial) kill(i int) {
	u := c.all[i]
	c.all = slices.Delete(c.all, i, i+1)
	c.seen["killed"]++
	if u.retired {
		return
	}
	next := c.start(u.id)
	if c.rnd.IntN(2) == 0 || c.clones {
		return
	}
	d := Death{Incarnation: u.incarnation, Last: Ticket{u.last.Seq, u.last.Nonce}}
	for _, t := range u.sent {
		if t.Seq > u.last.Seq && len(d.Unanswered) < 32 {
			d.Unanswered = append(d.Unanswered, t)
		}
	}
	next.newest.Dead = []Death{d}
	c.seen["dead"]++
}

// requireTagClaims fails if a step has lifted the claims of a tag above its total, or those of another row.
func requireTagClaims(t *testing.T, before, after *Record, req *Request, ans *Answer) {
	t.Helper()
	own := RowKey{req.ID, req.Incarnation}
	for i := range after.Rows {
		row := &after.Rows[i]
		if j, ok := before.find(row.RowKey); row.RowKey != own {
			require.True(t, ok)
			require.True(t, len(row.TagClaims) == 0 || slices.Equal(before.Rows[j].TagClaims, row.TagClaims), "a step lifts no claim of another")
		}
	}
	for _, s := range req.TagSlots {
		others, all := int64(0), int64(0)
		for i := range after.Rows {
			if k, ok := findTagClaim(after.Rows[i].TagClaims, s.Key); ok {
				all += after.Rows[i].TagClaims[k].Claim()
				if after.Rows[i].RowKey != own {
					others += after.Rows[i].TagClaims[k].Claim()
				}
			}
		}
		if ans.Status == Granted && s.Total > 0 {
			require.LessOrEqual(t, all, max(s.Total, others+s.InUse), "an answer never lifts the claims of a tag above its total")
		}
		if i, ok := after.find(own); ok && (ans.Status == Granted || ans.Status == Behind) {
			k, ok := findTagClaim(after.Rows[i].TagClaims, s.Key)
			require.True(t, ok && after.Rows[i].TagClaims[k].Claim() >= s.InUse || s.InUse == 0, "facts count")
		}
	}
	require.Len(t, ans.TagSlots, map[bool]int{true: len(req.TagSlots)}[ans.Status == Granted])
	for i, g := range ans.TagSlots {
		limit := req.TagSlots[i].Wanted
		if ans.Frozen > 0 || after.FreezeUnstamped {
			limit = req.TagSlots[i].InUse
		}
		require.Equal(t, req.TagSlots[i].Key, g.Key)
		require.LessOrEqual(t, g.Granted, limit)
	}
}
