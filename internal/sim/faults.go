package sim

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// faultsOf injects those of the faults from first up to last that are on, for the rest of the run. One in four follows soon after the
// previous one, because two together break protocols.
func (w *world) faultsOf(first, last Fault, mean time.Duration) {
	var on []Fault
	for f := first; f < last; f++ {
		if w.plan.faults[f] {
			on = append(on, f)
		}
	}
	if len(on) == 0 {
		return
	}
	var next func()
	set := func() {
		gap := mean
		if w.rng.fault.IntN(4) == 0 {
			gap = min(gap, time.Second)
		}
		w.after(exponential(w.rng.fault, gap), next)
	}
	next = func() {
		if !w.calm {
			w.inject(on[w.rng.fault.IntN(len(on))])
			set()
		}
	}
	set()
}

// leases draws a time from 10 ms to n leases.
func (w *world) leases(n float64) time.Duration {
	return logUniform(w.rng.fault, 10*time.Millisecond, time.Duration(n*float64(w.plan.leases[0])))
}

// inject injects one fault if possible.
func (w *world) inject(f Fault) {
	switch f {
	case FaultJoin, FaultTwin, FaultClone:
		w.injectMore(f)
	case FaultDown, FaultHang, FaultWipe, FaultFlush, FaultFailover, FaultRollback, FaultIdentity, FaultStep, FaultRates:
		w.injectStore(f)
	default:
		if p := w.anyone(); p != nil {
			w.meet(f, p)
			w.tracef("fault %s: %s", f, p)
			w.injectProcess(f, p)
		}
	}
}

// anyone draws a process that has not left.
func (w *world) anyone() *process {
	if len(w.procs) == 0 {
		return nil
	}
	p := w.procs[w.rng.fault.IntN(len(w.procs))]
	if p.left {
		return nil
	}
	return p
}

func (w *world) injectProcess(f Fault, p *process) {
	switch f {
	case FaultLeave:
		if p.halted() {
			return
		}
		w.leave(p)
		w.joinLater()
	case FaultCrash:
		w.kill(p)
		switch w.rng.fault.IntN(3) {
		case 0:
			w.restart(p)
		case 1:
			w.replaceLater(func() { w.restart(p) })
		default:
			w.joinLater()
		}
	case FaultStall:
		w.halt(p, w.leases(3), false)
	case FaultSuspend:
		w.halt(p, w.leases(3), true)
	case FaultCutUp, FaultCutDown, FaultCutBoth:
		until := w.now + w.leases(3)
		if f != FaultCutDown {
			p.cut[up] = max(p.cut[up], until)
		}
		if f != FaultCutUp {
			p.cut[down] = max(p.cut[down], until)
		}
	default:
	}
}

// replaceLater keeps the pool from dying out.
func (w *world) replaceLater(start func()) {
	w.after(exponential(w.rng.fault, 8*time.Second), func() {
		if !w.calm {
			start()
		}
	})
}

// joinLater starts a new processor later.
func (w *world) joinLater() {
	id := w.newID()
	w.replaceLater(func() { w.join(id) })
}

// injectMore adds a process. A surplus process leaves some time later.
func (w *world) injectMore(f Fault) {
	if len(w.procs) >= w.plan.processors+5 {
		return
	}
	if f == FaultJoin {
		w.meet(f, nil)
		w.dieLater(w.join(w.newID()))
		return
	}
	p := w.anyone()
	if p == nil || f == FaultClone && p.halted() {
		return
	}
	w.meet(f, p)
	w.tracef("fault %s: %s", f, p)
	var q *process
	if f == FaultTwin {
		q = w.twin(p)
	} else {
		q = w.clone(p)
	}
	if w.rng.fault.IntN(2) == 0 {
		q = p
	}
	w.dieLater(q)
}

func (w *world) dieLater(p *process) {
	w.after(exponential(w.rng.fault, 20*time.Second), func() {
		if p.gone || p.left || w.calm {
			return
		}
		if w.rng.fault.IntN(3) == 0 && !p.halted() {
			w.leave(p)
		} else {
			w.kill(p)
		}
	})
}

// clone starts a copy of a running machine. The copy has the same state and clock. A request under way is answered to both, or to the
// original.
func (w *world) clone(p *process) *process {
	q := *p
	machine := *p.proc
	q.proc = &machine
	q.inbox, q.mirror = nil, nil
	q.ask, q.due, q.flow = nil, nil, sharing.Usage{}
	q.waking, q.gen = false, 0
	lease := max(p.lease, w.store.rec.Lease) // which the answer under way may bring
	p.cloned, p.clonedAs, p.promised = w.now+slowest(lease), p.incarnation, driver.Whole
	q.cloned, q.clonedAs, q.promised = p.cloned, p.clonedAs, p.promised
	q.clock.set(w.now, w.plan.rate(w.rng.proc, false), false)
	if p.outstanding && w.rng.fault.IntN(2) == 0 {
		p.mirror, p.shared = &q, p.nonce
	}
	w.copyPlace(p, &q)
	w.noteCloned(p)
	q.copyHands()
	w.equip(&q)
	w.add(&q)
	return &q
}

func (w *world) injectStore(f Fault) {
	s := &w.store
	if s.kind == storeMemory && f != FaultHang && f != FaultStep && f != FaultRates {
		return
	}
	if f != FaultStep && f != FaultRates && w.spared() {
		return
	}
	switch f {
	case FaultDown:
		w.meet(f, nil)
		d := w.leases(4)
		w.tracef("fault %s for %v", f, d)
		s.takeDown(w, d, w.rng.fault.IntN(2) == 0)
	case FaultHang:
		if s.hung {
			return
		}
		w.meet(f, nil)
		d := w.leases(3)
		if w.rng.fault.IntN(8) == 0 {
			d = logUniform(w.rng.fault, time.Second, time.Minute)
		}
		w.tracef("fault %s for %v", f, d)
		s.hang(w, d)
	case FaultStep:
		w.stepClock()
	case FaultRates:
		w.meet(f, nil)
		s.clock.set(w.now, w.plan.rate(w.rng.proc, true), false)
		for _, p := range w.procs {
			p.clock.set(w.now, w.plan.rate(w.rng.proc, false), p.suspended)
			w.turn(p)
		}
	case FaultFailover, FaultRollback:
		// The replica stops following at this moment and takes over later.
		copied, written := s.copied(), s.written
		life := s.lives
		w.after(logUniform(w.rng.fault, time.Millisecond, 40*time.Second), func() {
			if !w.calm && s.lives == life && !w.spared() {
				w.takeOver(f, copied, written)
			}
		})
	default:
		w.takeOver(f, driver.Record{}, 0)
	}
}

// takeOver brings the store back with another record, or under another identity, after a time of silence.
func (w *world) takeOver(f Fault, rec driver.Record, written int64) {
	s := &w.store
	if f == FaultRollback && !w.someoneHasSeen(rec.Revision) {
		f = FaultFailover
	}
	w.meet(f, nil)
	w.tracef("fault %s, to revision %d", f, rec.Revision)
	switch f {
	case FaultFlush, FaultRollback:
		s.restart(w, rec, written)
		if f == FaultRollback {
			s.deaf = true
			life := s.lives
			w.after(30*time.Second, func() {
				if s.deaf && s.lives == life {
					s.deaf, s.back = false, w.now
					s.newIdentity()
				}
			})
		}
		return
	case FaultIdentity:
		s.newIdentity()
	default:
		s.restart(w, rec, written)
		s.newIdentity()
	}
	if w.rng.fault.IntN(2) == 0 {
		// Another machine, and another clock.
		s.step(time.Duration(w.rng.fault.Int64N(int64(6*time.Hour))) - 3*time.Hour)
		s.clock.set(w.now, w.plan.rate(w.rng.proc, true), false)
	}
	if w.rng.fault.IntN(2) == 0 {
		s.takeDown(w, logUniform(w.rng.fault, 10*time.Millisecond, 8*time.Second), w.rng.fault.IntN(2) == 0)
	}
}

// someoneHasSeen reports whether a process that may still contact the store knows that a record of this revision is old.
func (w *world) someoneHasSeen(revision uint64) bool {
	for _, p := range w.procs {
		if !p.left && p.seen > revision {
			return true
		}
	}
	return false
}

// stepClock steps the store's clock: by hours, by seconds, or by so little that it looks like a pause between two syncs. Such a small
// forward step is indistinguishable from passing time; there is at most one per removal time.
func (w *world) stepClock() {
	r := w.rng.fault
	d := logUniform(r, time.Minute, 5*time.Hour)
	switch r.IntN(4) {
	case 0:
		d = logUniform(r, time.Second, time.Minute)
	case 1:
		d = time.Duration(r.Int64N(int64(wire.Clamp(w.plan.leases[0]))))
	}
	if r.IntN(2) == 0 {
		d = -d
	}
	if d > 0 && d <= wire.Clamp(slices.Max(w.plan.leases)) {
		if w.now-w.stepped < slowest(wire.Removal(driver.MaxLease)) {
			return
		}
		w.stepped = w.now
	}
	if d > 0 && w.plan.permits {
		w.steps = append(w.steps, w.now)
	}
	if d > 0 {
		w.tags.steps = append(w.tags.steps, w.now)
	}
	w.meet(FaultStep, nil)
	w.tracef("fault step of the store's clock by %v", d)
	w.store.step(d)
}

// halt stops a process or suspends its machine, and continues it after d.
func (w *world) halt(p *process, d time.Duration, suspend bool) {
	if p.gone || p.halted() {
		return
	}
	p.stopped, p.suspended, p.haltedAt = !suspend, suspend, w.now
	rate := p.clock.rate
	if suspend {
		p.clock.set(w.now, rate, true)
	}
	w.tracef("%s halts for %v (suspended %v)", p, d, suspend)
	w.after(d, func() { w.goOn(p) })
}

// goOn continues a halted process: its timers and the messages that came in the meantime race.
func (w *world) goOn(p *process) {
	if p.gone || !p.halted() {
		return
	}
	w.tracef("%s goes on", p)
	if p.suspended {
		p.clock.set(w.now, p.clock.rate, false)
		p.lag += time.Duration(int64(w.now-p.haltedAt) * p.clock.rate / million)
	}
	p.stopped, p.suspended = false, false
	inbox, due := p.inbox, p.due
	p.inbox, p.due = nil, nil
	// The loop is late by up to the watchdog's interval when nothing else wakes it.
	if p.overslept() {
		w.wake(p, p.clock.read(w.now)+time.Duration(w.rng.proc.Int64N(int64(100*time.Millisecond))))
	} else if w.rng.proc.IntN(2) == 0 {
		w.turn(p)
	}
	for _, f := range due {
		f()
	}
	for _, m := range inbox {
		w.receive(m)
	}
	p.waking = false // a timer that came due in the meantime is over
	if !p.overslept() {
		w.turn(p)
	} else {
		w.wake(p, p.clock.read(w.now)+time.Duration(w.rng.proc.Int64N(int64(100*time.Millisecond))))
	}
}
