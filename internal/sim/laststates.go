package sim

import (
	"math/rand/v2"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// A place is where the processes of one ID leave their last states, one after the other, such as a locked file. A dying process releases it; a
// stopped one does not. A cloned machine has a copy of it.
type place struct {
	holder *process // nil: nobody
	protocol.TakeoverRecord
}

// drawLastStates lets half of the runs keep last states.
func (p *plan) drawLastStates(r *rand.Rand) { p.lastStates = r.IntN(2) == 0 }

// restart starts a process under the ID of one that has died, mostly in the same place.
func (w *world) restart(dead *process) {
	if !w.plan.lastStates || w.rng.lastState.IntN(4) == 0 {
		w.join(dead.id)
		return
	}
	w.joinAt(dead.id, dead.place)
}

// twin starts a second process under an ID in use, in a place of its own or in the same one.
func (w *world) twin(p *process) *process {
	if !w.plan.lastStates || w.rng.lastState.IntN(2) == 0 {
		return w.join(p.id)
	}
	return w.joinAt(p.id, p.place)
}

// inherit lets a process take its place, if possible, before it makes a request.
func (w *world) inherit(p *process) {
	if p.place == nil {
		return
	}
	local := p.clock.read(w.now)
	if p.place.holder == p {
		if p.proc.Inherit(local, nil) {
			p.inherited = nil
		}
		return
	}
	free := p.place.holder == nil
	lastStates := p.place.Inherit(free)
	if len(lastStates) > 0 {
		w.tracef("%s inherits from %v", p, lastStates)
	}
	p.proc.Inherit(local, lastStates)
	if free {
		p.place.holder, p.inherited = p, lastStates
	}
}

// writeLastState writes a process's will before its newest request goes out.
func (w *world) writeLastState(p *process) {
	if p.place != nil && p.place.holder == p {
		p.place.Write(p.inherited, p.proc.LastState(p.holder.Report(0).Debt))
	}
}

// letGo ends a process's hold of its place. keep: it has not reported that it uses and owes nothing any more.
func (w *world) letGo(p *process, keep bool) {
	if p.place == nil || p.place.holder != p {
		return
	}
	p.place.holder = nil
	if !keep {
		p.place.LastStates = nil
	}
}

// copyPlace gives a clone a place of its own, with the last states of the original's.
func (w *world) copyPlace(p, q *process) {
	if p.place == nil {
		return
	}
	q.place = &place{holder: p.place.holder, TakeoverRecord: protocol.TakeoverRecord{LastStates: p.place.Inherit(true)}}
	if q.place.holder == p {
		q.place.holder = q
	}
}
