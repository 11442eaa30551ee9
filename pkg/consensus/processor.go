package consensus

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Processor is the processor's side of the protocol without a clock, I/O or
// goroutines: one incarnation after the other of one ID in one pool. Member
// drives it with a real store and clock, the simulation with its own.
//
// now is the local monotonic time since any fixed moment; it never goes back. A
// Processor is not safe for concurrent use.
//
// Invariant: Held is at most the claim that the store has on record for the
// incarnation, for as long as that claim can be on record.
type Processor struct {
	cfg         ProcessorConfig
	incarnation string
	state       State

	seq        uint64
	last       driver.Ticket // of the answer taken last
	lastTime   int64
	unanswered []driver.Ticket // sent since, the newest request included, at most MaxUnanswered
	recalled   driver.Ticket   // named by the store when it was behind
	history    history
	revision   uint64
	lease      time.Duration

	held        Share
	until       time.Duration // end of the lease, or of a share without consent
	lapses      int           // counts the times that a held share lapsed
	degraded    bool
	degradedEnd time.Duration // end of the degraded hour
	want        Share
	even        Share // what it soon holds if it lacks tokens, by the last answer; see evenShare
	demand      Share // as reported last
	answer      driver.Grant
	split       struct { // the policy's result for the answer and a demand
		wants  []Share
		self   int
		demand Share
	}
	slots   int           // into which the limit is divided; see SetSlots
	spacing time.Duration // of the limit; see SetSpacing
	strict  bool
	issuing bool // the pool issues tokens, as answered
	winding bool // it no longer does, but has no room for shares yet
	reservations
	frozen   time.Duration // local time until which the pool is frozen, as answered
	frozenBy FreezeCause

	sent     sentRequest
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

	legacies []legacy // of dead processes, which the store does not know yet
	tookOver bool     // the store knows of such deaths

	ceiling poolCeiling // of the limit in force
	inUse   Share       // what calls under way use, as observed last
	tags    tagging
	told    Standing // reported to operators
}

// A sentRequest is the newest request, the only one whose answer is taken.
type sentRequest struct {
	driver.Request
	at            time.Duration // when it was first sent
	inUse, wanted Share         // inUse: the share in force, regardless of calls under way
	lapses        int
	open          bool
}

// ProcessorConfig configures a Processor.
type ProcessorConfig struct {
	Pool, ID string
	// Lease is the lease to propose. Defaults to DefaultLease.
	Lease time.Duration
	// Policy defaults to Fair.
	Policy Policy
	// OnStoreLoss defaults to Degrade.
	OnStoreLoss StoreLoss
}

// State is how a processor stands with its pool.
type State string

// The states of a processor; see the diagram in the package documentation.
const (
	StateJoining  State = "joining"    // no answer yet, or restarted
	StateHolding  State = "holding"    // the lease is good
	StateLost     State = "store_lost" // the lease ran out; share 0, or degraded
	StateReplaced State = "replaced"   // another process joined under the same ID
	StateLeft     State = "left"
)

// NewProcessor returns a Processor that is about to join. incarnation is unique
// among all lives of all processes, usually random.
func NewProcessor(cfg ProcessorConfig, incarnation string) *Processor {
	if cfg.Lease == 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.Policy == nil {
		cfg.Policy = Fair
	}
	p := &Processor{cfg: cfg, lease: cfg.Lease, ceiling: poolCeiling{id: cfg.ID}}
	p.restart(incarnation)
	return p
}

// restart begins a new incarnation, which holds and remembers nothing.
func (p *Processor) restart(incarnation string) {
	p.lapse()
	p.incarnation, p.state = incarnation, StateJoining
	p.seq, p.last, p.lastTime, p.unanswered = 0, driver.Ticket{}, 0, nil
	p.recalled, p.history = driver.Ticket{}, history{}
	p.answer, p.split.wants, p.want = driver.Grant{}, nil, Whole
	p.sent = sentRequest{}
	p.ceiling.restart()
	p.issuing, p.winding = false, false
	p.tags.book.forget() // a clone may hold the same tokens
	p.urgency = urgencyNow
}

// Held returns the share that may be used at now.
func (p *Processor) Held(now time.Duration) Share {
	p.Tick(now)
	return p.held
}

// Tick notices that the lease has run out. It is due at Until, and every other
// method does the same first.
func (p *Processor) Tick(now time.Duration) {
	if p.state != StateHolding && p.held == 0 || now < p.until {
		return
	}
	last, degraded := p.held, p.degraded
	p.lapse()
	if p.state == StateHolding {
		p.state = StateLost
	}
	if last == 0 || degraded || p.state != StateLost || p.cfg.OnStoreLoss != Degrade || p.issuing || p.winding {
		return
	}
	// Only a store that was asked on time and failed is lost. A process that was
	// stalled may have been removed long ago.
	patience := min(p.patience(), p.grace())
	asked := p.failures > 0 && p.onTime && now-p.attempt <= patience && now-p.until <= patience
	if !asked {
		return
	}
	p.held = min(last, Whole/Share(max(p.answer.Live, 1)))
	p.degraded, p.degradedEnd = true, now+degradeFor
	p.rest()
}

// lapse ends the share in force without another.
func (p *Processor) lapse() {
	if p.held > 0 {
		p.lapses++
	}
	p.held, p.degraded = 0, false
}

// Void ends the share at once because the local clock cannot be trusted: the machine was suspended.
// The lease for issued tokens ends too: reserved tokens are older than they look. The next request
// follows at once.
func (p *Processor) Void(now time.Duration) {
	p.Tick(now)
	p.tags.book.distrust()
	if p.held > 0 || p.Issuing(now) {
		p.lapse()
		p.issuing, p.winding = false, false // reservations may be long over
		p.urgency = urgencyNow
	}
}

// Request returns the next request. demand is what the processor would use if it could. A smaller
// want takes effect at once, so Held may fall. nonce is drawn at random for this request alone.
// With MaxUnanswered unanswered requests it repeats the newest. A processor that cannot name all
// its requests could not be told from its clone.
func (p *Processor) Request(now time.Duration, nonce uint64, demand Share) driver.Request {
	p.Tick(now)
	p.onTime = p.onTime && now-p.attempt <= p.patience()
	p.demand = min(max(demand, 0), Whole)
	if p.urgency == urgencyNow {
		p.urgentAt = now
	}
	p.hurried = p.urgency != urgencyNone
	p.urgency, p.attempt = urgencyNone, now
	if p.degraded {
		p.rest()
	}
	if len(p.unanswered) == driver.MaxUnanswered {
		p.grantTags(now)
		p.sent.open, p.sent.Recalled = true, p.recalled
		p.sent.Documents = p.ceiling.pauses.withdraw(p.sent.Documents, p.ceiling.docs.Find(pauseDocument))
		return p.sent.Request
	}
	p.choose(now)
	p.seq++
	req := driver.Request{
		Pool: p.cfg.Pool, ID: p.cfg.ID, Incarnation: p.incarnation,
		Seq: p.seq, Nonce: nonce,
		LastSeq: p.last.Seq, LastNonce: p.last.Nonce, LastTime: p.lastTime,
		Unanswered: p.unanswered, Recalled: p.recalled,
		Revision: p.revision, Lease: p.cfg.Lease, Reach: p.reach(now), Outlasts: p.outlasts(),
		Spacing: p.ceiling.paced(p.spacing), SpacingBy: p.ceiling.pacedFor(p.spacing), Strict: p.strict,
		Report: driver.Report{
			InUse: max(p.held, p.inUse), Wanted: p.want, Demand: p.demand, PoolSize: p.answer.Live, Note: p.note(now),
		},
		Dead:      p.deaths(now),
		Documents: p.ceiling.reports(now, uint16(nonce)),
	}
	p.tellTags(now, &req)
	p.unanswered = append(slices.Clip(p.unanswered), driver.Ticket{Seq: p.seq, Nonce: nonce}) // a copy: requests keep theirs
	p.sent = sentRequest{Request: req, at: now, inUse: p.held, wanted: p.want, lapses: p.lapses, open: true}
	return req
}

// Failed reports that the request with this Seq got no answer.
func (p *Processor) Failed(now time.Duration, seq uint64) {
	if seq == p.sent.Seq {
		if p.failures++; p.failures == 1 {
			p.gap = p.attempt - p.answered
		}
		p.load.took(now-p.attempt, false, p.lease, p.answer.Live)
	}
	p.Tick(now)
}

// Take takes the store's answer, unless a newer request was sent since. fresh is
// the incarnation to go on with if this one is closed. The error wraps
// ErrWrongAnswer; the request then counts as failed.
func (p *Processor) Take(now time.Duration, a driver.Answer, fresh string) error {
	p.Tick(now)
	if a.Seq != p.sent.Seq || a.Nonce != p.sent.Nonce || !p.sent.open {
		return nil
	}
	if err := a.Check(); err != nil {
		p.Failed(now, a.Seq)
		return err
	}
	p.sent.open = false
	p.load.took(now-p.attempt, true, p.lease, p.answer.Live)
	p.failures = 0
	switch a.Status {
	case driver.Granted:
		p.granted(now, a)
	case driver.Replaced:
		p.lapse()
		p.state = StateReplaced
	case driver.Behind:
		if !p.history.holds(a.Newest) {
			p.restart(fresh) // another process has sent it
			return nil
		}
		p.recalled, p.urgency = a.Newest, urgencyNow
	default:
		// Late: a request above the newest one was recorded, so another process
		// uses this incarnation.
		p.restart(fresh)
	}
	return nil
}

// granted puts the share of an answer in force.
func (p *Processor) granted(now time.Duration, a driver.Answer) {
	if p.lastTime > 0 {
		p.load.answered(p.sent.at-p.answered, time.Duration(a.Time-p.lastTime)*time.Microsecond, a.Lease)
	}
	p.answered = p.sent.at
	p.last, p.lastTime, p.unanswered, p.recalled = driver.Ticket{Seq: p.sent.Seq, Nonce: p.sent.Nonce}, a.Time, nil, driver.Ticket{}
	p.history.add(p.last)
	p.bequeathed()
	p.revision = max(p.revision, a.Revision)
	p.lease, p.answer, p.split.wants, p.onTime = a.Lease, a.Grant, nil, true
	p.frozen, p.frozenBy = 0, a.FrozenBy
	share := a.Share
	if a.Frozen > 0 {
		p.frozen = now + a.Frozen
		if p.sent.InUse > p.sent.inUse {
			share = min(share, p.sent.inUse) // use by calls under way beyond it is no share
		}
	}
	p.ceiling.asked = p.sent.at
	p.ceiling.take(now, p.sent.Documents, &a)
	p.takeTags(now, &a)

	// The store has the reported share on record as in use. If it lapsed since, the record is too
	// high for this time, and nothing may rest on it.
	broken := p.sent.inUse > 0 && p.lapses != p.sent.lapses
	until := p.sent.at + p.lease
	if broken || until <= now {
		p.urgency = urgencyNow
		if !p.degraded { // which rests on no answer
			p.lapse()
			p.state = StateJoining
		}
		return
	}
	if p.ceiling.readable() != nil {
		if p.degraded {
			p.lapse()
		}
		return
	}
	before := p.held
	p.even = p.evenShare()
	p.takeIssuing(a.Issuing, a.Share)
	p.state, p.degraded = StateHolding, false
	p.held, p.until = share, until
	p.choose(now)
	p.hurry(now, before)
}

// hurry works out how soon the next request goes out after an answer that has changed the
// share in force from before.
func (p *Processor) hurry(now time.Duration, before Share) {
	t := &p.answer
	switch {
	case p.held > before+before/20, !p.hurried && p.held >= p.want:
		p.vain = 0
	case p.hurried:
		p.vain++
	}
	switch {
	case p.ceiling.urgent, p.ceiling.cutDue(now):
		p.urgency = urgencyNow // the store lacks a document, or the ceiling is to be cut
	case p.patient():
	case max(p.held, p.inUse) < max(t.Share, p.sent.InUse):
		p.urgency = urgencyNow // the claim is higher than need be
	case p.issuing: // there are no shares to ask for
	case p.held < p.want && p.unasked(now):
		p.urgency = urgencyNow
	case p.held < p.want && p.hope(now):
		p.urgency = urgencyFast
	case p.demand == Whole && p.held > before+before/20:
		p.growing = now + p.interval()
	}
	if now < p.growing && p.demand == Whole && p.urgency == urgencyNone && !p.patient() {
		p.urgency = urgencyFast // others are giving way, and there may be more to come
	}
}

// Leave ends the incarnation: the share is 0 from now on. The returned request is sent after
// everything that draws has stopped.
func (p *Processor) Leave(now time.Duration) driver.Leave {
	p.Tick(now)
	p.lapse()
	p.state = StateLeft
	p.sent.open = false
	p.seq++
	return driver.Leave{
		Pool: p.cfg.Pool, ID: p.cfg.ID, Incarnation: p.incarnation, Seq: p.seq,
		LastSeq: p.last.Seq, LastNonce: p.last.Nonce, Unanswered: p.unanswered,
	}
}
