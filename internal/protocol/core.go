package protocol

import (
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A core is the state of a Processor that its parts rest on: who it is, its sequence of requests, its lease and share, and the last
// answer. It knows no part. A copy of it is independent.
type core struct {
	Cfg         ProcessorConfig
	incarnation string
	state       State

	sequence
	Lease time.Duration
	holding
	pace

	Answer   driver.Answer      // the last one
	removed  []driver.RosterRow // by the store, between the last two; not logged yet
	notes    []Note             // of its roster, in the same order
	frozen   time.Duration      // local time until which the pool is frozen, as answered
	frozenBy driver.FreezeCause
	clock    poolClock
	docs     pooldoc.Cache // the pool's documents as loaded
	changed  []string      // the names of those that the last answer has changed
	lacked   bool          // the store lacked one of them before that answer
	reported Standing      // to operators
}

// A sequence is a processor's place in the sequence of requests of its incarnation.
type sequence struct {
	seq        uint64
	last       driver.Ticket // of the answer taken last
	lastTime   int64
	unanswered []driver.Ticket // sent since, the newest request included, at most wire.MaxUnanswered
	recalled   driver.Ticket   // named by the store when it was behind
	history    history
	revision   uint64
	sent       request
}

// A request is the newest request, the only one whose answer is taken.
type request struct {
	driver.Request
	note          Note          // in its form for this package
	at            time.Duration // when it was first sent
	inUse, wanted driver.Share  // inUse: the share in force, regardless of calls under way
	lapses        int
	open          bool
	paused        bool // the whole pool, as the part of pauses reports to those after it
}

// A holding is the share that a processor holds, and the one that it could use.
type holding struct {
	held        driver.Share
	until       time.Duration // end of the lease, or of a share without consent
	lapses      int           // counts the times that a held share lapsed
	degraded    bool
	degradedEnd time.Duration // end of the degraded hour
	want        driver.Share
	even        driver.Share    // what it soon holds if it lacks tokens, by the last answer; see evenShare
	demand      driver.Share    // as reported last
	needs       [2]driver.Share // for waiting draws; see gather
	inUse       driver.Share    // what calls under way use, as observed last
	issuing     bool            // the pool issues tokens, as answered
	winding     bool            // it no longer does, but has no room for shares yet
}

// A pace is how often a processor sends requests.
type pace struct {
	attempt  time.Duration // when the newest request was sent
	onTime   bool          // every request since the last answer was sent on time
	failures int           // failed requests since the last answer
	answered time.Duration // when the last answered request was sent
	gap      time.Duration // from that one to the next, which failed
	load     load          // of the store
	urgency  urgency
	urgentAt time.Duration // when the last urgent request was sent
	hurried  bool          // the newest request was sent ahead of its interval
	vain     int           // hurried requests in a row that brought no larger share
	growing  time.Duration // until when a short processor that has just grown looks for more
}

// A poolClock is the pool's logical clock as a processor knows it.
type poolClock struct {
	answers int           // taken by this incarnation
	time    int64         // logical time of the last answer
	at      time.Duration // local time at which it came
	floor   int64         // logical time by the previous answer, when the last one came
	began   int64
	slept   time.Duration
	clamp   time.Duration
}

// take takes the time of an answer.
func (c *poolClock) take(now time.Duration, a *driver.Answer) {
	c.answers++
	if c.floor = c.logical(now); c.answers == 1 || time.Duration(c.floor-a.Time)*time.Microsecond > c.clamp {
		c.floor = 0 // another clock, or a clock that stood still
	}
	c.time, c.at, c.began, c.slept, c.clamp = a.Time, now, a.Epoch, a.Silence, wire.Clamp(a.Lease)
}

// logical returns the logical time: that of the last answer plus the local time since it
// came. It is late by the answer's travel time, so that no ceiling rises too early. On a
// Deferred store it is also late by the age of the previous step. It stands still rather
// than go back when an answer took longer than the previous one.
func (c *poolClock) logical(now time.Duration) int64 {
	return max(c.time+(now-c.at).Microseconds(), c.floor)
}

// lost reports whether there was no answer for longer than one step adds to the clock.
func (c *poolClock) lost(now time.Duration) bool { return now-c.at > c.longest() }

// longest is the longest gap that the clock counts.
func (c *poolClock) longest() time.Duration {
	if c.clamp == 0 {
		return wire.Clamp(driver.DefaultLease)
	}
	return c.clamp
}

// moment is the present, on the pool's clock as well.
func (c *poolClock) moment(now time.Duration) moment {
	m := moment{now: now, clamp: c.longest()}
	// The clock of a new record may not be known before its second step (0). It may have
	// stood still for a processor without an answer for long.
	if c.answers > 0 && c.time > 0 && !c.lost(now) {
		m.logical, m.began, m.slept = c.logical(now), c.began, c.slept
	}
	return m
}

// restart begins a new incarnation, which holds and remembers nothing. The documents stay.
func (c *core) restart(incarnation string) {
	c.lapse()
	c.incarnation, c.state = incarnation, StateJoining
	c.sequence = sequence{revision: c.revision}
	c.Answer, c.notes, c.want, c.clock.answers = driver.Answer{}, nil, driver.Whole, 0
	c.issuing, c.winding = false, false
	c.urgency = urgencyNow
}

// next begins the next request.
func (c *core) next(now time.Duration, nonce uint64) *request {
	c.seq++
	c.sent = request{
		Request: driver.Request{
			Pool: c.Cfg.Pool, ID: c.Cfg.ID, Incarnation: c.incarnation,
			Seq: c.seq, Nonce: nonce,
			LastSeq: c.last.Seq, LastNonce: c.last.Nonce, LastTime: c.lastTime,
			Unanswered: c.unanswered, Recalled: c.recalled,
			Revision: c.revision, Lease: c.Cfg.Lease, Outlasts: c.outlasts(),
			Report:    driver.Report{InUse: max(c.held, c.inUse), Wanted: c.want, Demand: c.demand, PoolSize: c.Answer.Live},
			Documents: c.docs.Reports(),
		},
		note: Note{standing: c.reported, needs: c.needs},
		at:   now, inUse: c.held, wanted: c.want, lapses: c.lapses, open: true,
	}
	s := &c.sent.note.standing
	if s.Slots > 0 {
		s.Used = c.inUse.Fraction()
	}
	if s.Frozen = max(c.frozen-now, 0); s.Frozen > 0 {
		s.FrozenBy = c.frozenBy
	}
	return &c.sent
}

// receive takes the answer to the newest request.
func (c *core) receive(now time.Duration, a *driver.Answer) {
	if c.lastTime > 0 {
		c.load.answered(c.sent.at-c.answered, time.Duration(a.Time-c.lastTime)*time.Microsecond, a.Lease)
	}
	c.answered, c.onTime = c.sent.at, true
	c.last, c.lastTime, c.unanswered, c.recalled = driver.Ticket{Seq: c.sent.Seq, Nonce: c.sent.Nonce}, a.Time, nil, driver.Ticket{}
	c.history.add(c.last)
	c.revision = max(c.revision, a.Revision)
	c.removed = append(c.removed, removedBy(&c.Answer, a)...)
	// Copies of a processor share the notes: they are replaced, never changed.
	if !slices.EqualFunc(c.Answer.Roster, a.Roster, func(was, is driver.RosterRow) bool { return was.Note == is.Note }) {
		c.notes = make([]Note, len(a.Roster))
		for i := range a.Roster {
			c.notes[i] = NoteIn(a.Roster[i].Note)
		}
	}
	c.Lease, c.Answer = a.Lease, *a
	c.frozen, c.frozenBy = 0, a.FrozenBy
	if a.Frozen > 0 {
		c.frozen = now + a.Frozen
	}
	c.clock.take(now, a)
	c.lacked = c.docs.Lost()
	c.changed = c.docs.Take(c.sent.Documents, a.Documents)
}

// removedBy returns the processors that the store has removed between two answers, because they were silent for too long. Others have left.
// Rosters are by rising ID.
func removedBy(was, is *driver.Answer) (removed []driver.RosterRow) {
	more := time.Duration(is.Time-was.Time) * time.Microsecond
	for i := range was.Roster {
		row := &was.Roster[i]
		if more <= row.Left { // cheap, and true of nearly all
			continue
		}
		if _, listed := slices.BinarySearchFunc(is.Roster, row.ID, func(r driver.RosterRow, id string) int { return strings.Compare(r.ID, id) }); !listed {
			r := *row
			r.Silent += more
			removed = append(removed, r)
		}
	}
	return removed
}

// others iterates over the notes of all other live processors.
func (c *core) others(yield func(*Note) bool) {
	for i := range c.notes {
		if c.Answer.Roster[i].ID != c.Cfg.ID && !yield(&c.notes[i]) {
			return
		}
	}
}

// takeIssuing takes from an answer whether tokens are issued.
func (c *core) takeIssuing() {
	c.winding = !c.Answer.Issuing && c.Answer.Share == 0 && (c.issuing || c.winding)
	c.issuing = c.Answer.Issuing
}

// isIssuing reports whether the pool issues tokens at now instead of shares: the store says so, or
// has said so and no share has come since.
func (c *core) isIssuing(now time.Duration) bool {
	c.Tick(now)
	return c.state == StateHolding && (c.issuing || c.winding)
}

// Tick notices that the lease has run out. It is due at Until, and every other method does the same first.
func (c *core) Tick(now time.Duration) {
	if c.state != StateHolding && c.held == 0 || now < c.until {
		return
	}
	last, degraded := c.held, c.degraded
	c.lapse()
	if c.state == StateHolding {
		c.state = StateLost
	}
	if last == 0 || degraded || c.state != StateLost || c.Cfg.OnStoreLoss != Degrade || c.issuing || c.winding {
		return
	}
	// Only a store that was asked on time and failed is lost. A process that was
	// stalled may have been removed long ago.
	patience := min(c.patience(), c.grace())
	asked := c.failures > 0 && c.onTime && now-c.attempt <= patience && now-c.until <= patience
	if !asked {
		return
	}
	c.held = min(last, driver.Whole/driver.Share(max(c.Answer.Live, 1)))
	c.degraded, c.degradedEnd = true, now+degradeFor
	c.rest()
}

// lapse ends the share in force without another.
func (c *core) lapse() {
	if c.held > 0 {
		c.lapses++
	}
	c.held, c.degraded = 0, false
}
