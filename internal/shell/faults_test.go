package shell

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// drawMode draws what a process's callers are up to.
func (w *world) drawMode() mode {
	switch {
	case w.calm:
		return modeCalm
	case w.r.Float64() < w.plan.busy:
		return modeBusy
	case w.plan.spiky:
		return modeIdle
	default:
		return mode(w.r.IntN(int(modeBusy)))
	}
}

// changeDemand has some process change its demand, again and again; now and then
// all become busy or idle together.
func (w *world) changeDemand() {
	w.after(exponential(w.r, w.plan.demandMean/processors), func() {
		if w.calm {
			return
		}
		if w.r.IntN(10*processors) == 0 {
			m := mode(w.r.IntN(int(modeBusy + 1)))
			for _, p := range w.live {
				p.mode.Store(int32(m))
			}
		} else if p := w.anyone(); p != nil {
			p.mode.Store(int32(w.drawMode()))
		}
		w.changeDemand()
	})
}

// anyone draws a process that runs.
func (w *world) anyone() *process {
	if len(w.live) == 0 {
		return nil
	}
	return w.live[w.r.IntN(len(w.live))]
}

// injectAgain has faults of the kinds from first up to last, those that are on,
// happen for the rest of the run. One in four follows close behind the one before.
func (w *world) injectAgain(first, last fault, mean time.Duration) {
	var on []fault
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
		if w.r.IntN(4) == 0 {
			gap = min(gap, time.Second)
		}
		w.after(exponential(w.r, gap), next)
	}
	next = func() {
		if w.calm {
			return
		}
		if f := on[w.r.IntN(len(on))]; w.inject(f) {
			w.faults[f]++
		}
		set()
	}
	set()
}

// unlessCalm is after for what is not to happen in the second phase.
func (w *world) unlessCalm(d time.Duration, f func()) {
	w.after(d, func() {
		if !w.calm {
			f()
		}
	})
}

// leases draws a time of a few milliseconds up to n leases.
func (w *world) leases(n float64) time.Duration {
	return logUniform(w.r, 10*time.Millisecond, time.Duration(n*float64(w.plan.leases[0])))
}

// inject has one fault happen, where it can.
func (w *world) inject(f fault) (done bool) {
	p := w.anyone()
	if f < faultDown && p == nil {
		return false
	}
	w.tracef("fault: %s", f)
	switch f {
	case faultJoin, faultTwin:
		return w.injectMore(f, p)
	case faultLeave:
		w.end(p, false)
		w.joinLater(w.newID())
	case faultCrash:
		w.end(p, true)
		switch w.r.IntN(3) {
		case 0:
			w.join(p.id)
		case 1:
			w.joinLater(p.id)
		default:
			w.joinLater(w.newID())
		}
	case faultCut:
		way := 1 + w.r.IntN(3)
		p.setCut(way&1 > 0, way&2 > 0)
		w.unlessCalm(w.leases(3), func() { p.setCut(false, false) })
	case faultStep:
		return w.stepClock()
	default:
		for _, s := range w.servers() {
			done = w.injectStore(s, f) || done
		}
		return done
	}
	return true
}

func (w *world) joinLater(id string) {
	w.unlessCalm(exponential(w.r, 8*time.Second), func() { w.join(id) })
}

// injectMore adds a process, which goes again some time later, or the one does
// whose ID it took.
func (w *world) injectMore(f fault, p *process) bool {
	if len(w.live) >= w.plan.processors+5 {
		return false
	}
	id := w.newID()
	if f == faultTwin {
		id = p.id
	}
	q := w.join(id)
	if f == faultTwin && w.r.IntN(2) == 0 {
		q = p
	}
	w.unlessCalm(exponential(w.r, 20*time.Second), func() {
		if slices.Contains(w.live, q) {
			w.end(q, w.r.IntN(3) > 0)
		}
	})
	return true
}

func (w *world) injectStore(s *server, f fault) (done bool) {
	if s.spared() {
		return false
	}
	switch f {
	case faultDown, faultRefuse:
		flag := &s.silent
		if f == faultRefuse {
			flag = &s.refuses
		}
		s.set(func() { *flag = true })
		d := w.leases(4)
		if w.plan.together && w.r.IntN(2) == 0 {
			d = time.Duration((1 + 3*w.r.Float64()) * float64(slices.Max(w.plan.leases))) // all go on without it
		}
		w.unlessCalm(d, func() { s.set(func() { *flag, s.back = false, time.Now() }) })
	case faultHang:
		s.set(func() { s.hung = true })
		w.unlessCalm(w.leases(3), func() { s.resume(w.r) })
	case faultWipe, faultFlush:
		return s.restore(s.backup(true), f == faultFlush, false)
	default:
		// The replica stops following at this moment and takes over later.
		b := s.backup(false)
		w.unlessCalm(logUniform(w.r, time.Millisecond, 40*time.Second), func() { w.takeOver(s, f, b) })
	}
	return true
}

// takeOver has an older copy go on in the place of the record.
func (w *world) takeOver(s *server, f fault, b backup) {
	if f == faultRollback && !w.someoneHasSeen(s, b.revision) {
		f = faultFailover
	}
	if s.spared() || !s.restore(b, f == faultRollback, f == faultRollback) {
		return
	}
	w.tracef("%s, to revision %d", f, b.revision)
	if f == faultRollback {
		w.after(30*time.Second, func() { s.hear(b.lives) })
		return
	}
	if w.r.IntN(2) == 0 { // another machine, and another clock
		d := time.Duration(w.r.Int64N(int64(6*time.Hour))) - 3*time.Hour
		s.set(func() { s.stepped += d })
	}
}

// someoneHasSeen tells whether a process that may yet speak knows that a record of
// this revision is an old one.
func (w *world) someoneHasSeen(s *server, revision uint64) bool {
	return slices.ContainsFunc(w.live, func(p *process) bool { return p.memberOf(s).View().Revision > revision })
}

// stepClock sets the store's clock: by hours, by seconds, or by so little that it
// passes for a pause between two syncs. There is at most one such small step forward
// in a removal time, for it cannot be told from time itself.
func (w *world) stepClock() (done bool) {
	if w.plan.store == storeMemory {
		return false
	}
	d := logUniform(w.r, time.Minute, 5*time.Hour)
	switch w.r.IntN(4) {
	case 0:
		d = logUniform(w.r, time.Second, time.Minute)
	case 1:
		d = time.Duration(w.r.Int64N(int64(wire.Clamp(w.plan.leases[0]))))
	}
	if w.r.IntN(2) == 0 {
		d = -d
	}
	if d > 0 && d <= wire.Clamp(slices.Max(w.plan.leases)) {
		if w.now()-w.lastStep < 2*wire.Removal(driver.MaxLease) {
			return false
		}
		w.lastStep = w.now()
	}
	for _, s := range w.servers() {
		s.set(func() { s.stepped += d })
	}
	return true
}
