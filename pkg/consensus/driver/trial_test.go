package driver

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// A trial is a pool in true time: one Record as the store's memory, actors that
// follow the processor's rules, and an oracle that knows what each of them draws
// on at every moment. Schedules read like a story; see schedules_test.go.
type trial struct {
	t      testing.TB
	record *Record
	at     At
	// now is true time; the store's clock has a rate and can be set.
	now       time.Duration
	storeRate float64
	storeTime int64
	written   int64 // the store's time of the newest write, for Deferred stores

	actors []*actor
	nonce  uint64
	forgot bool // the store has forgotten something: claims may add up to more

	// The largest sums seen: of shares that may be drawn on, and of claims on record.
	inUse, claims Share
}

// An actor is one process with one incarnation, honest but not clever.
type actor struct {
	trial           *trial
	id, incarnation string
	rate            float64 // of its local clock, against true time
	lease           time.Duration

	seq        uint64
	last       Answer   // the answer taken last
	answered   []Ticket // all that were
	recalled   Ticket
	unanswered []Ticket
	revision   uint64
	spacing    time.Duration // of the limit, if it can use permits
	strict     bool
	furthest   time.Duration // true time of the last slot that it tells of
	held       Share
	until      time.Duration // true time at which the lease ends on the local clock
	lapses     int
	newest     parcel
}

// A parcel is a request under way, and what its sender must remember of it.
type parcel struct {
	req    Request
	sent   time.Duration
	lapses int
}

// longest is the longest lease of trials, and half a short one.
const longest, short = 10 * time.Second, 4 * time.Second

// remembers is At.Remembers of a store that knows new pools as such.
const remembers = time.Duration(math.MaxInt64)

func newTrial(tb testing.TB) *trial {
	tb.Helper()
	return &trial{t: tb, record: &Record{}, at: At{Identity: "server 1", Longest: longest}, storeRate: 1, storeTime: 1_800_000_000_000_000}
}

// wait lets true time pass.
func (tr *trial) wait(d time.Duration) {
	tr.now += d
	tr.storeTime += micros(time.Duration(float64(d) * tr.storeRate))
	tr.look()
}

// look is the oracle.
func (tr *trial) look() {
	var inUse Share
	for _, a := range tr.actors {
		inUse += a.inForce()
	}
	tr.inUse = max(tr.inUse, inUse)
	if !tr.forgot {
		tr.claims = max(tr.claims, tr.record.Claims())
	}
}

// forgive forgets what the oracle has seen.
func (tr *trial) forgive() { tr.inUse, tr.claims = 0, 0 }

// moment is the At of a step.
func (tr *trial) moment() At {
	at := tr.at
	at.Now = tr.storeTime
	if at.Deferred {
		at.Now = tr.written
	}
	return at
}

// actor is a new process.
func (tr *trial) actor(id string) *actor {
	a := &actor{trial: tr, id: id, incarnation: fmt.Sprint(len(tr.actors)), rate: 1, lease: longest}
	tr.actors = append(tr.actors, a)
	return a
}

// open makes the pool and waits until its freeze is over. Nobody is left in it.
func (tr *trial) open() {
	a := tr.actor("opens the pool")
	for a.sync(0); tr.record.FrozenUntil > tr.record.Clock; a.sync(0) {
		tr.wait(time.Second)
	}
	a.leave()
	tr.wait(time.Second)
}

// inForce is what the actor may draw on at this moment.
func (a *actor) inForce() Share {
	if a.trial.now >= a.until && a.held > 0 {
		a.held = 0
		a.lapses++
	}
	return a.held
}

// ask makes the next request: less is in use at once, more when it is granted.
func (a *actor) ask(want Share) parcel {
	a.held = min(a.inForce(), want)
	return a.askWithout(want)
}

// askWithout makes the next request without a change of what is in use.
func (a *actor) askWithout(want Share) parcel {
	a.seq++
	a.trial.nonce++
	req := Request{
		Report: Report{InUse: a.inForce(), Wanted: want, Demand: want, PoolSize: 1},
		Pool:   "pool", ID: a.id, Incarnation: a.incarnation, Seq: a.seq, Nonce: a.trial.nonce,
		LastSeq: a.last.Seq, LastNonce: a.last.Nonce, LastTime: a.last.Time, Unanswered: a.unanswered, Recalled: a.recalled,
		Revision: a.revision, Lease: a.lease, Spacing: a.spacing, Strict: a.strict, Reach: max(0, a.furthest-a.trial.now),
	}
	a.unanswered = append(slices.Clone(a.unanswered), Ticket{req.Seq, req.Nonce})
	a.newest = parcel{req: req, sent: a.trial.now, lapses: a.lapses}
	a.trial.look()
	return a.newest
}

// deliver lets the store do the step.
func (tr *trial) deliver(p parcel) Answer {
	if err := p.req.Validate(); err != nil {
		tr.t.Fatal(err)
	}
	ans, changed := tr.record.Sync(&p.req, tr.moment())
	if changed {
		tr.written = tr.storeTime
	}
	tr.look()
	return ans
}

// take takes an answer, if it is that to the newest request.
func (a *actor) take(p parcel, ans Answer) {
	if ans.Seq != a.newest.req.Seq || ans.Nonce != a.newest.req.Nonce {
		return
	}
	if ans.Status == Behind && slices.Contains(a.answered, ans.Newest) {
		a.recalled = ans.Newest
		return
	}
	if ans.Status != Granted {
		a.held = 0
		return
	}
	a.inForce()
	a.answered = append(slices.Clip(a.answered), Ticket{ans.Seq, ans.Nonce})
	a.last, a.unanswered, a.recalled, a.revision = ans, nil, Ticket{}, max(a.revision, ans.Revision)
	broken := p.lapses != a.lapses
	if a.held = 0; broken {
		return // what the request reported has lapsed
	}
	a.until = p.sent + time.Duration(float64(ans.Lease)/a.rate)
	a.held = ans.Share
	a.inForce()
	a.trial.look()
}

// sync asks for a share of the limit itself, and takes the answer.
func (a *actor) sync(want Share) Answer {
	p := a.ask(want)
	ans := a.trial.deliver(p)
	a.take(p, ans)
	if a.recalled != (Ticket{}) {
		return a.sync(want)
	}
	return ans
}

// leave stops drawing, and says so.
func (a *actor) leave() {
	a.held = 0
	a.trial.leave(a.farewell())
}

// farewell is the request to leave.
func (a *actor) farewell() Leave {
	a.seq++
	return Leave{
		Pool: "pool", ID: a.id, Incarnation: a.incarnation, Seq: a.seq,
		LastSeq: a.last.Seq, LastNonce: a.last.Nonce, Unanswered: a.unanswered,
	}
}

func (tr *trial) leave(l Leave) {
	if tr.record.Leave(&l, tr.moment()) {
		tr.written = tr.storeTime
	}
	tr.look()
}

// keepBusy lets actors sync every second for a time.
func (tr *trial) keepBusy(d time.Duration, want Share, actors ...*actor) {
	for end := tr.now + d; tr.now < end; tr.wait(time.Second) {
		for _, a := range actors {
			a.sync(want)
		}
	}
}

// wipe empties the store.
func (tr *trial) wipe() {
	tr.record, tr.written, tr.forgot = &Record{}, 0, true
}

// snapshot copies the record; the function it returns puts the copy back.
func (tr *trial) snapshot() func() {
	kept, written := copyRecord(tr.record), tr.written
	return func() {
		tr.record, tr.written, tr.forgot = copyRecord(kept), written, true
	}
}

func copyRecord(r *Record) *Record {
	c := *r
	c.Rows = append([]Row(nil), r.Rows...)
	return &c
}
