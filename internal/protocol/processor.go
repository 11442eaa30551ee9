package protocol

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"

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
	core
	split split // of the limit, by the policy

	Takeover takeover
	Pauses   pausing
	ceiling  poolCeiling // of the limit in force
	permits  reservations
	tags     tagging
	files    filing
}

// A part is what a processor does besides sharing: it adds to each request, and takes what the answer says about it. It knows the core,
// and no other part. It is a value in Processor: a copy of it is independent.
type part interface {
	// restart begins a new incarnation.
	restart()
	// report fills in its part of the next request.
	report(c *core, now time.Duration, req *request)
	// take takes its part of the answer to the newest request, and returns how soon the next one should go out. The core has taken
	// both: the request is c.sent.
	take(c *core, now time.Duration, a *driver.Answer) urgency
}

// parts returns the parts, each after those whose report it reads.
func (p *Processor) parts() [6]part {
	return [...]part{&p.Takeover, &p.Pauses, &p.ceiling, &p.permits, &p.tags, &p.files}
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
		cfg.Lease = driver.DefaultLease
	}
	if cfg.Policy == nil {
		cfg.Policy = Fair
	}
	p := &Processor{core: core{Cfg: cfg, Lease: cfg.Lease}}
	p.restart(incarnation)
	return p
}

// Configure sets the terms of the limiter, which must be valid. The zero Terms, as before the first call, are no limit: no override and
// no ramp changes the worth of a share. With a Spacing of wire.MinSpacing the processor neither asks for issued tokens nor prevents them. With
// more Slots than sharing.ExactSlots the limit is divided as any other: nobody would miss a fraction of a slot per processor then. The next
// request reports the terms to the others, and is due at once if one was sent already.
func (p *Processor) Configure(t sharing.Terms) {
	p.ceiling.configure(&t)
	p.permits.strict = t.Strict
	p.tags.configure(&t)
	p.load.fixed = p.tags.on // tokens of tags are drawn for a usual interval
	p.split, p.reported.Slots = split{}, max(t.Slots, 0)
	if t.Slots <= sharing.ExactSlots {
		p.split.slots = p.reported.Slots
	}
	// A pool that is to issue tokens must learn it before it gives out shares.
	issued := t.Spacing > 0 && (t.Strict || t.Spacing > p.Interval()/100)
	if p.seq > 0 && (t.Ceiling.Limit.Max > 0 || issued || p.tags.slots.most > 0) {
		p.urgency = urgencyNow
	}
}

// restart begins a new incarnation, which holds and remembers nothing.
func (p *Processor) restart(incarnation string) {
	p.core.restart(incarnation)
	p.split.wants = nil
	for _, part := range p.parts() {
		part.restart()
	}
}

// Held returns the share that may be used at now.
func (p *Processor) Held(now time.Duration) driver.Share {
	p.Tick(now)
	return p.held
}

// Void ends the share at once because the local clock cannot be trusted: the machine was suspended.
// The lease for issued tokens ends too: reserved tokens are older than they look. The next request
// follows at once.
func (p *Processor) Void(now time.Duration) {
	p.Tick(now)
	p.tags.book.distrust()
	if p.held > 0 || p.isIssuing(now) {
		p.lapse()
		p.issuing, p.winding = false, false // reservations may be long over
		p.urgency = urgencyNow
	}
}

// Request returns the next request. A smaller demand takes effect at once, so Held may fall. The share in
// force must not have risen since o was observed; see Yield. nonce is drawn at random for this request alone.
// With wire.MaxUnanswered unanswered requests it repeats the newest. A processor that cannot name all
// its requests would look like its clone.
func (p *Processor) Request(now time.Duration, nonce uint64, o Observation) driver.Request {
	p.Tick(now)
	p.onTime = p.onTime && now-p.attempt <= p.patience()
	p.observe(&o)
	if p.urgency == urgencyNow {
		p.urgentAt = now
	}
	p.hurried = p.urgency != urgencyNone
	p.urgency, p.attempt = urgencyNone, now
	if p.degraded {
		p.rest()
	}
	if len(p.unanswered) == wire.MaxUnanswered {
		p.tags.ration(&p.core, now)
		p.tags.takeParts(&p.core, now)
		p.sent.open, p.sent.Recalled = true, p.recalled
		p.sent.Documents = p.Pauses.withdraw(p.sent.Documents, p.docs.Find(pauseDocument))
		return p.sent.Request
	}
	p.choose(now)
	req := p.next(now, nonce)
	for _, part := range p.parts() {
		part.report(&p.core, now, req)
	}
	req.Note = req.note.String()
	p.unanswered = append(slices.Clip(p.unanswered), driver.Ticket{Seq: p.seq, Nonce: nonce}) // a copy: requests keep theirs
	return req.Request
}

// Failed reports that the request with this Seq got no answer.
func (p *Processor) Failed(now time.Duration, seq uint64) {
	if seq == p.sent.Seq {
		if p.failures++; p.failures == 1 {
			p.gap = p.attempt - p.answered
		}
		p.load.took(now-p.attempt, false, p.Lease, p.Answer.Live)
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
	p.load.took(now-p.attempt, true, p.Lease, p.Answer.Live)
	p.failures = 0
	switch a.Status {
	case driver.Granted:
		p.granted(now, &a)
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
func (p *Processor) granted(now time.Duration, a *driver.Answer) {
	whole := p.split.inWhole(a.Share)
	p.split.wants, p.split.part = nil, whole < a.Share
	a.Share = whole
	p.receive(now, a)
	due := urgencyNone
	if p.split.part && !p.patient() {
		due = urgencyFast
	}
	for _, part := range p.parts() {
		due = max(due, part.take(&p.core, now, &p.Answer))
	}
	p.tags.most = p.rateInForce(now)
	share := a.Share
	if a.Frozen > 0 && p.sent.InUse > p.sent.inUse {
		share = min(share, p.sent.inUse) // use by calls under way beyond it is no share
	}

	// The store has the reported share on record as in use. If it lapsed since, the record is too
	// high for this time, and nothing may rest on it.
	broken := p.lapses != p.sent.lapses
	until := p.sent.at + p.Lease
	if broken || until <= now {
		p.urgency = urgencyNow
		if !p.degraded { // which rests on no answer
			p.lapse()
			p.state = StateJoining
		}
		return
	}
	if p.unreadable() != nil {
		if p.degraded {
			p.lapse()
		}
		return
	}
	before := p.held
	p.even = p.evenShare()
	p.takeIssuing()
	p.state, p.degraded = StateHolding, false
	p.held, p.until = share, until
	p.choose(now)
	due = max(due, p.tags.grantSlots(&p.core, now, p.patient()))
	p.hurry(now, before, due)
}

// hurry works out how soon the next request goes out, after an answer that has changed the
// share in force from before. The parts need it as soon as due says.
func (p *Processor) hurry(now time.Duration, before driver.Share, due urgency) {
	t := &p.Answer
	p.urgency = max(p.urgency, due)
	switch {
	case p.held > before+before/20, !p.hurried && p.held >= p.want:
		p.vain = 0
	case p.hurried:
		p.vain++
	}
	switch {
	case due == urgencyNow:
	case p.patient():
	case max(p.held, p.inUse) < max(t.Share, p.sent.InUse):
		p.urgency = urgencyNow // the claim is higher than need be
	case p.issuing: // there are no shares to ask for
	case p.held < p.want && p.unasked(now):
		p.urgency = urgencyNow
	case p.held < p.want && p.hope(now):
		p.urgency = urgencyFast
	case p.demand == driver.Whole && p.held > before+before/20:
		p.growing = now + p.Interval()
	}
	if now < p.growing && p.demand == driver.Whole && p.urgency == urgencyNone && !p.patient() {
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
		Pool: p.Cfg.Pool, ID: p.Cfg.ID, Incarnation: p.incarnation, Seq: p.seq,
		LastSeq: p.last.Seq, LastNonce: p.last.Nonce, Unanswered: p.unanswered,
	}
}
