package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The directions of a process's link.
const (
	up   = 0 // to the store
	down = 1 // from it
)

// A process drives a protocol.Processor as consensus.Member does. It makes one request at a time, each with a time limit, and the next
// when the processor says so. A watchdog detects suspension, and demand above the share triggers a poke.
type process struct {
	id          string
	incarnation string // as in the newest request
	proc        *protocol.Processor
	clock       clock
	lease       time.Duration // the pool's, as far as known
	spread      float64
	demand      driver.Share

	// The newest request.
	outstanding bool // within its time limit
	open        bool // its answer has not been taken
	seq, nonce  uint64
	timeout     time.Duration // local
	seen        uint64        // newest revision that the processor knows

	// How far the wall clock is ahead of the monotonic one: now, when the newest request was sent, and when the lease's request was sent.
	lag, sentLag, leaseLag time.Duration

	waking bool
	wakeAt time.Duration
	gen    uint32

	stopped, suspended bool
	haltedAt           time.Duration
	inbox              []*message // messages that came while halted
	left, gone         bool
	cut                [2]time.Duration // no message gets through before; by direction
	newest             [2]time.Duration // when the newest message arrives; by direction

	place     *place               // where it finds and leaves last states; nil: nowhere
	inherited []protocol.LastState // found there, and not reported to the store yet

	limit          throttle.Limit // as configured
	ceiling        float64        // that it applies, in tokens per period
	flow           sharing.Usage  // at the request answered last, which was sent at flowAt
	sentFlow       sharing.Usage
	flowAt, sentAt time.Duration
	ask            *ask           // the order for slots under way
	term           int            // rises when its received slots are lost
	loaded         driver.Version // of the override, as in the newest request
	due            []func()       // came due while it was halted

	drawer drawer
	flight flight        // of a run with calls in flight
	poked  bool          // by its limiter
	synced time.Duration // when the store granted a request of it last
	holder sharing.Holder
	pauses pausedState
	hands  []tagHand // of tags; the first is of draws without one

	// The checks' view of the share in force.
	held     driver.Share
	until    time.Duration // local
	degraded bool          // it is used without the store's consent
	live     int           // processors in the pool, as far as it knows; only with consensus.Degrade
	grounded time.Duration // true time of the step that granted it

	cloned   time.Duration // end of the lease after it was cloned, or made as a clone
	clonedAs string        // its incarnation at that time
	// promised is the claim of that incarnation when the store lost its record in that time; else driver.Whole.
	promised driver.Share
	mirror   *process // the clone that also receives the answer to the request below
	shared   uint64   // nonce of the request that was under way at the cloning
}

// join starts a new process under an ID.
func (w *world) join(id string) *process {
	if !w.plan.lastStates {
		return w.joinAt(id, nil)
	}
	return w.joinAt(id, &place{})
}

// joinAt starts a new process in the place of another one.
func (w *world) joinAt(id string, at *place) *process {
	p := &process{
		id: id, place: at, clock: clock{since: w.now, base: time.Hour, rate: w.plan.rate(w.rng.proc, false)},
		lease: w.plan.leases[w.rng.proc.IntN(len(w.plan.leases))], spread: w.rng.proc.Float64(),
		demand: w.drawDemand(),
	}
	p.incarnation = w.newIncarnation()
	p.proc = protocol.NewProcessor(protocol.ProcessorConfig{
		Pool: "pool", ID: id, Lease: p.lease, Policy: w.plan.policy(), OnStoreLoss: w.plan.loss,
	}, p.incarnation)
	w.equip(p)
	w.prepare(p)
	w.prepareTags(p)
	w.add(p)
	return p
}

// add starts a process.
func (w *world) add(p *process) {
	w.procs = append(w.procs, p)
	w.tracef("%s starts, lease %v, clock %+.2f%%", p, p.lease, float64(p.clock.rate-million)/1e4)
	w.changeDemand(p)
	for t := range p.flight.wanted {
		w.changeCallers(p, t)
	}
	w.turn(p)
}

// kill ends a process without a leave.
func (w *world) kill(p *process) {
	if p.gone {
		return
	}
	w.tracef("%s dies", p)
	w.returnLast(p)
	w.letGo(p, true)
	w.drop(p)
}

// drop removes a process that will never draw again.
func (w *world) drop(p *process) {
	p.gone = true
	p.gen++
	w.loseSlots(p)
	if p.held > 0 {
		p.drawer.heldAt = w.now
	}
	if p.drawer.heldAt != never {
		w.departed = append(w.departed, p.drawer.heldAt)
	}
	for _, m := range p.inbox {
		w.release(m)
	}
	p.inbox = nil
	w.endCallers(p)
	for i, q := range w.procs {
		if q == p {
			w.procs = append(w.procs[:i], w.procs[i+1:]...)
			return
		}
	}
}

func (p *process) halted() bool { return p.stopped || p.suspended }

func (p *process) String() string { return p.id + "/" + p.incarnation }

// turn takes the steps that are due and sets the timer for the next one.
func (w *world) turn(p *process) {
	if p.gone || p.left || p.halted() {
		return
	}
	w.draw(p) // callers draw independently of the loop
	local := p.clock.read(w.now)
	if p.overslept() {
		w.tracef("%s sees that it was suspended", p)
		p.proc.Void(local)
		p.leaseLag = p.lag
		if w.plan.tags != nil {
			w.takeTags(p, p.proc.Orders(local, ahead, epoch).Grants)
		}
	}
	p.proc.Tick(local)
	if p.outstanding && local >= p.timeout {
		p.failed(w, local, p.seq)
	}
	w.poke(p, local)
	if !p.outstanding && p.proc.RationDue(local) {
		p.proc.Ration(local, w.reportTags(p, local))
	}
	if !p.outstanding && p.proc.Next(local, p.spread) <= local {
		w.send(p, local)
	}
	w.touch(p, local)
	due := p.timeout
	if !p.outstanding {
		due = max(p.proc.Next(local, p.spread), local+time.Millisecond)
	}
	if (p.held > 0 || p.drawer.lease.Issuing) && p.until > local {
		due = min(due, p.until)
	}
	if p.moves() || p.degraded && p.hands != nil {
		due = min(due, local+watch)
	}
	w.wake(p, due)
}

// poke tells the processor that a caller waits.
func (w *world) poke(p *process, local time.Duration) {
	if p.poked || w.plan.slots == nil && p.demand > p.held {
		p.poked = false
		p.proc.Poke(local)
	}
}

// wake sets the process's timer to a local time. An earlier timer stays: it sets the next.
func (w *world) wake(p *process, due time.Duration) {
	at := p.clock.when(due)
	if p.waking && p.wakeAt <= at {
		return
	}
	p.gen++
	p.waking, p.wakeAt = true, at
	w.queue.Push(at, event{kind: eventWake, p: p, gen: p.gen})
}

// overslept reports what the watchdog sees at its next check: the wall clock ran while the monotonic one stood still.
func (p *process) overslept() bool { return p.lag-p.leaseLag > p.lease/20 }

// send sends the next request.
func (w *world) send(p *process, local time.Duration) {
	m := w.message(p, messageSync)
	var o protocol.Observation
	if w.plan.noted {
		o = w.observe(p, local)
	}
	o.Demand = p.report()
	if w.plan.slots != nil {
		o = w.observeSlots(p, local)
	}
	w.inherit(p)
	m.req = p.proc.Request(local, w.rng.proc.Uint64(), o)
	w.writeLastState(p)
	if m.req.Incarnation != p.incarnation || m.req.Seq != p.seq {
		p.sentLag = p.lag // a repeat is based on its first sending
	}
	if p.incarnation = m.req.Incarnation; w.plan.noted {
		w.limits.configured[p.incarnation] = perSecond(p.limit)
	}
	p.outstanding, p.open, p.seq, p.nonce = true, true, m.req.Seq, m.req.Nonce
	p.timeout = local + protocol.SyncTimeout(p.lease)
	p.loaded = cmp.Or(reported(m.req.Documents), p.loaded)
	w.notePauseSent(p, &m.req)
	w.touch(p, local) // a lower share is in force from here on
	w.counters.Syncs++
	if w.trace != nil {
		w.tracef("%s sends %d (last %d, seen %d): in use %v, wants %v, demand %v",
			p, m.req.Seq, m.req.LastSeq, m.req.Revision, m.req.InUse, m.req.Wanted, m.req.Demand)
	}
	w.transmit(m, up)
}

// report returns the demand as a throttle computes it: one that is short of its share cannot know how much it would use and reports the
// whole.
func (p *process) report() driver.Share {
	if p.demand > p.held {
		return driver.Whole
	}
	return p.demand
}

func (p *process) failed(w *world, local time.Duration, seq uint64) {
	p.outstanding = false
	p.spread = w.rng.proc.Float64()
	p.proc.Failed(local, seq)
}

// receive handles a message from the store.
func (w *world) receive(m *message) {
	p := m.p
	if q := p.mirror; q != nil && m.kind == messageAnswer && m.ans.Nonce == p.shared {
		p.mirror = nil
		c := w.message(q, messageAnswer)
		c.ans, c.recorded, c.step = m.ans, m.recorded, m.step
		w.receive(c)
	}
	if p.gone || p.left && m.kind != messageLeft {
		w.release(m)
		return
	}
	if p.halted() {
		p.inbox = append(p.inbox, m)
		return
	}
	switch m.kind {
	case messageLeft:
		w.letGo(p, false)
		w.drop(p)
	case messageRefused:
		if p.outstanding && m.req.Seq == p.seq {
			p.failed(w, p.clock.read(w.now), p.seq)
			w.turn(p)
		}
	case messageAnswer:
		w.take(p, m)
	case messageReserved:
		w.receiveSlots(p, m)
	case messageSync, messageLeave, messageReserve: // these go the other way
	}
	w.release(m)
}

// take hands an answer to the processor.
func (w *world) take(p *process, m *message) {
	local := p.clock.read(w.now)
	// At its time limit a request has failed. A client that cancels discards its answer; other clients still deliver it.
	if p.outstanding && local >= p.timeout && !w.plan.lateTaken {
		p.failed(w, local, p.seq)
	}
	newest := p.open && m.ans.Seq == p.seq && m.ans.Nonce == p.nonce
	if !w.plan.lateTaken && (!newest || !p.outstanding) {
		w.turn(p)
		return
	}
	if newest {
		p.outstanding, p.open = false, false
		p.spread = w.rng.proc.Float64()
	}
	fresh := ""
	if s := m.ans.Status; s != driver.Granted && s != driver.Replaced {
		fresh = w.newIncarnation()
	}
	held, until := p.proc.Held(local), p.proc.Until()
	w.noteHeld(p, newest && lacks(&m.ans, p.loaded))
	if err := p.proc.Take(local, m.ans, fresh); err != nil {
		w.violatef(CheckAnswer, "%s: %v", p, err)
		return
	}
	if newest {
		p.leaseLag = p.sentLag
		if m.ans.Status == driver.Granted {
			p.lease, p.seen = m.ans.Lease, max(p.seen, m.ans.Revision)
			p.flow, p.flowAt = p.sentFlow, p.sentAt
		}
	}
	if now := p.proc.Held(local); now != held || p.proc.Until() != until {
		p.grounded = m.recorded
		if w.trace != nil {
			w.tracef("%s takes %d (%s, revision %d, frozen %v %s): holds %v for %v",
				p, m.ans.Seq, m.ans.Status, m.ans.Revision, m.ans.Frozen, m.ans.FrozenBy, now, p.proc.Until()-local)
		}
	} else if w.trace != nil {
		w.tracef("%s takes %d (%s, revision %d, frozen %v): nothing new", p, m.ans.Seq, m.ans.Status, m.ans.Revision, m.ans.Frozen)
	}
	p.pauses.answer = m.step
	p.noteTagStarts(m)
	w.touch(p, local)
	p.pauses.answer = 0
	w.checkClaim(p)
	w.turn(p)
	w.draw(p)
}

// leave ends a process as a clean shutdown does: it abandons the request under way, gives up its tags' tokens, and repeats its leave until
// the store has received it or 10 s have passed. A Member waits for the answers, which may be lost as well.
func (w *world) leave(p *process) {
	local := p.clock.read(w.now)
	if p.outstanding {
		p.failed(w, local, p.seq)
	}
	if p.hands != nil && p.proc.Retire(local, func(time.Duration) []sharing.TagReport { return w.reportTags(p, local) }) {
		w.send(p, local)
	}
	debt := p.holder.Report(0).Debt
	l := p.proc.Leave(local)
	w.touch(p, local)
	w.tracef("%s leaves, %d", p, l.Seq)
	p.left = true
	w.endCallers(p)
	w.loseSlots(p)
	tries := 0
	var tell func()
	tell = func() {
		if p.gone || tries == 15 {
			w.letGo(p, true)
			w.drop(p)
			return
		}
		tries++
		if !p.halted() {
			m := w.message(p, messageLeave)
			m.leave = l
			w.transmit(m, up)
		}
		w.after(600*time.Millisecond, tell)
	}
	switch {
	case debt == 0:
		tell()
	case debt < payDebtFor:
		w.after(slowest(debt), tell)
	default:
		w.letGo(p, false)
		w.drop(p)
	}
}

// payDebtFor is how long a leaving process waits to earn its debt.
const payDebtFor = 4 * time.Second

var _ fmt.Stringer = (*process)(nil)
