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
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A batch is what a processor has drawn and not used yet.
type batch struct {
	tokens      int64
	from, until int64
	old         bool // drawn before a freeze: it is not given back
	reserved    bool // used only while the answer taken last is good
}

// A drawer is a processor that draws from one tag bucket as the protocol says. Time is microseconds.
type drawer struct {
	id      string
	batches []batch
	seq     uint64
	last    Answer
	open    []Ticket
	newest  Request
	sent    int64 // when newest was first sent
	fresh   int64 // until when the answer taken last is good
	at      int64 // when it syncs next
}

// A counterTrial is a pool of drawers, of which answers and requests get lost, and a store that forgets. level is how
// much more was used than the total earns, from whenever it was most.
type counterTrial struct {
	rnd    *rand.Rand
	rec    Record
	kept   *Record
	at     At
	all    []*drawer
	used   int64
	level  float64
	worst  float64
	levels int64 // when level was worked out
}

const (
	trialTotal   = 1000 // per second
	trialBurst   = 50
	trialLargest = 3000
)

// playDrawers plays one schedule of two minutes. It tells whether what was used keeps to what is promised.
func playDrawers(seed uint64) (c *counterTrial, within bool) {
	c = &counterTrial{rnd: rand.New(rand.NewPCG(seed, 7)), at: At{Now: 1_795_000_000_000_000, Identity: "0", Remembers: math.MaxInt64}}
	for i := range 4 {
		c.all = append(c.all, &drawer{id: fmt.Sprint("p", i), at: c.at.Now})
	}
	if seed%3 == 2 {
		c.at.Deferred = true
	}
	start := c.at.Now
	c.levels = start
	deferred := int64(0)
	for now := start; now < start+120_000_000; now += 50_000 {
		c.fault()
		for _, d := range c.all {
			c.use(d, now)
			if now >= d.at {
				c.at.Now = now
				if c.at.Deferred {
					c.at.Now, deferred = deferred, now
				}
				c.sync(d, now)
				d.at = now + 900_000 + c.rnd.Int64N(300_000)
			}
		}
	}
	interval := wire.Interval(DefaultLease, len(c.all)).Seconds()
	allowed := 3*interval + 0.05 // what is drawn ahead, for as long as it is good, to the grain of this test
	if c.at.Deferred {
		allowed += wire.Clamp(DefaultLease).Seconds() // its clock is a step old
	}
	return c, c.worst <= allowed*trialTotal+trialBurst+trialLargest
}

// fault lets the store forget something, seldom.
func (c *counterTrial) fault() {
	switch c.rnd.IntN(1500) {
	case 0:
		c.rec, c.at.Remembers = Record{}, 0
	case 1:
		c.at.Identity += "'"
	case 2, 3:
		rec := c.rec
		rec.Rows = slices.Clone(rec.Rows)
		c.kept = &rec
	case 4:
		if c.kept != nil { // a failover to an older copy
			c.rec = *c.kept
			c.rec.Rows = slices.Clone(c.kept.Rows)
			c.at.Identity += "'"
		}
	}
}

// use uses some of what a drawer has, now and then all of it at once.
func (c *counterTrial) use(d *drawer, now int64) {
	d.batches = slices.DeleteFunc(d.batches, func(l batch) bool { return l.until <= now || l.tokens == 0 })
	if c.rnd.IntN(8) > 0 {
		return
	}
	for i := range d.batches {
		l := &d.batches[i]
		if l.from > now || l.reserved && now >= d.fresh {
			continue
		}
		n := l.tokens
		if c.rnd.IntN(2) == 0 {
			n = c.rnd.Int64N(n + 1)
		}
		l.tokens -= n
		c.used += n
		c.level = max(0, c.level-float64(now-c.levels)*trialTotal/1e6) + float64(n)
		c.levels, c.worst = now, max(c.worst, c.level)
	}
}

// sync sends a request, or the newest one again, and takes the answer if it arrives.
func (c *counterTrial) sync(d *drawer, now int64) {
	if len(d.open) == 0 || c.rnd.IntN(4) > 0 {
		c.next(d, now)
	}
	req := d.newest
	if c.rnd.IntN(10) == 0 {
		return // lost
	}
	before := req.Seq
	ans, _ := c.rec.Sync(&req, c.at)
	if ans.Status == Behind {
		req.Recalled = ans.Newest
		ans, _ = c.rec.Sync(&req, c.at)
	}
	if c.rnd.IntN(10) == 0 || ans.Seq != before {
		return // lost
	}
	if ans.Status != Granted {
		*d = drawer{id: d.id, at: d.at, seq: d.seq + 100} // a process that starts again has nothing
		return
	}
	d.last, d.open = ans, nil
	if ans.Frozen > 0 || c.rec.FreezeUnstamped {
		for i := range d.batches {
			d.batches[i].old = true
		}
		d.batches = slices.DeleteFunc(d.batches, func(l batch) bool { return l.from > now })
	}
	for _, got := range ans.Draws {
		valid := 2 * wire.Interval(ans.Lease, ans.Live).Microseconds()
		from := d.sent + got.From.Microseconds()
		d.batches = append(d.batches, batch{tokens: got.Tokens, from: from, until: from + valid, reserved: got.From > 0})
		d.fresh = d.sent + valid
	}
}

// next makes the next request of a drawer.
func (c *counterTrial) next(d *drawer, now int64) {
	if d.newest.Seq > d.last.Seq {
		d.open = append(d.open, Ticket{d.newest.Seq, d.newest.Nonce})
	}
	if len(d.open) > 20 {
		d.open = d.open[1:]
	}
	d.seq++
	draw := Draw{Key: 7, Total: trialTotal, Per: time.Second, Burst: trialBurst, Ask: c.rnd.Int64N(1200)}
	if c.rnd.IntN(12) == 0 {
		draw.Ask, draw.Ahead = trialLargest, 10*time.Second
	}
	for i := range d.batches {
		if l := &d.batches[i]; !l.old && c.rnd.IntN(3) == 0 {
			draw.Back += l.tokens // which the total never gives again
			l.tokens = 0
		}
	}
	d.newest = Request{
		Pool: "p", ID: d.id, Incarnation: fmt.Sprint(d.seq / 100), Seq: d.seq, Nonce: c.rnd.Uint64(), Lease: DefaultLease,
		LastSeq: d.last.Seq, LastNonce: d.last.Nonce, LastTime: d.last.Time, Revision: d.last.Revision, Unanswered: d.open, Draws: []Draw{draw},
	}
	d.sent = now
}

// TestDrawersKeepToTheTotal: whatever is lost, sent again or forgotten, no more is used in any time than the total allows.
func TestDrawersKeepToTheTotal(t *testing.T) {
	var used int64
	seeds := uint64(testkit.Fewer(300))
	for seed := range seeds {
		c, within := playDrawers(seed)
		require.True(t, within, "seed %d: %.0f tokens more than were earned", seed, c.worst)
		used += c.used
	}
	require.Greater(t, used, int64(seeds*120*trialTotal/4), "they use something")
}
