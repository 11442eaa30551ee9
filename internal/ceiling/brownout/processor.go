package brownout

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// Times in milliseconds, for a lease of ten seconds.
const (
	interval = 1000     // between two syncs
	fast     = 100      // between two urgent ones
	spread   = 3 * fast // the lag of a cut of the pool
	tick     = 100      // between two steps of a processor's own law
	urgent   = 5        // the maximum of syncs brought forward in one generation
)

// A processor draws tokens at its share of the ceiling, and is always busy.
type processor struct {
	*run

	id     int
	tokens float64

	pool    side         // by the pool's law, as far as known
	own     ceiling.Part // by its own law, as a part of that
	begun   int          // counts the restarts of own's counting
	version int
	others  []note

	syncing            bool
	nextSync, lastSync int
	urged              int
}

// A side is one processor's view of the pool's law, and its counts for it.
type side struct {
	state backoff.State
	tally backoff.Tally
	// counting is the generation whose refusals are counted; -1: none, because the lag is not over.
	counting int64
}

// A note is a processor's report to the others.
type note struct {
	report backoff.Report
	active bool
}

// A store keeps the document and the notes.
type store struct {
	state   backoff.State
	version int
	notes   []note
}

func newProcessor(r *run, id int) *processor {
	return &processor{run: r, id: id, tokens: r.rng.Float64(), nextSync: r.rng.IntN(interval), lastSync: -interval}
}

// one is the whole for a processor's own law, independent of its share.
var one = backoff.Config{Max: 1, Per: time.Second, Reserved: backoff.Whole / 100}

// leased returns the processor's share of the pool, per second, and rate the part of it that it uses.
func (p *processor) leased() float64 {
	return float64(p.Limit) / float64(p.Processors) * p.config().Ceiling(p.pool.state, p.micros()) / backoff.Whole
}

func (p *processor) rate() float64 {
	return p.leased() * p.own.Of(one, p.micros())
}

func (p *processor) tick() {
	now := p.micros()
	if p.own.Settle(now) {
		p.begun++
	}
	if p.pool.count(now) {
		p.urged = 0
	}
	p.tokens = min(p.tokens+p.rate()/1000, 1)
	if p.tokens >= 1 {
		p.tokens--
		p.draw()
	}
	if p.Way != Fixed && p.now%tick == p.id%tick {
		p.step()
	}
	if p.Way == Shared && !p.syncing && p.now >= p.nextSync {
		p.sync()
	}
}

// draw makes one call.
func (p *processor) draw() {
	pool, own := p.pool.counting, p.begun
	var answered func(ok bool)
	answered = func(ok bool) {
		if !ok && p.Way == Fixed {
			p.in(1000, func() { p.call(answered) })
			return
		}
		p.own.Tally.Count(p.micros(), calls(ok), own == p.begun)
		if p.pool.tally.Count(p.micros(), calls(ok), pool == p.pool.counting && pool >= 0) && p.urged < urgent {
			p.urged++
			p.hurry()
		}
	}
	p.call(answered)
}

// count starts counting for a generation when the lag of its cut is over.
func (s *side) count(now int64) (begun bool) {
	switch {
	case !s.state.Counts(now):
		s.counting = -1
	case s.counting != s.state.Generation:
		s.counting = s.state.Generation
		s.tally.Begin(now, false)
		return true
	}
	return false
}

// calls returns the totals of one call.
func calls(ok bool) backoff.Totals {
	if ok {
		return backoff.Totals{Accepted: 1}
	}
	return backoff.Totals{Refused: 1}
}

// hurry brings the next sync forward.
func (p *processor) hurry() { p.nextSync = min(p.nextSync, max(p.now+1, p.lastSync+fast)) }

// step takes a step of the processor's own law.
func (p *processor) step() {
	if p.own.Step(one, p.micros(), p.leased(), 1, 1) {
		p.begun++
	}
}

// note returns the processor's report to the others.
func (p *processor) note() note {
	now := p.micros()
	return note{p.pool.tally.Report(float64(p.Limit), p.pool.counting, now), p.pool.tally.Active(now)}
}

// reports returns the reports of all active processors, including its own newest.
func (p *processor) reports(own note) (out []backoff.Report) {
	for i, n := range p.others {
		if i != p.id && n.active {
			out = append(out, n.report)
		}
	}
	return append(out, own.report)
}

// sync reports to the store and the others, takes a step of the pool's law if one is due, and receives the answer.
func (p *processor) sync() {
	p.syncing, p.lastSync = true, p.now
	p.nextSync = p.now + interval - p.rng.IntN(interval/20)
	own := p.note()
	version, next, proposed := p.version, backoff.State{}, false
	now, reports := p.micros(), p.reports(own)
	if p.pool.state.Due(now, reports, p.Processors) || !p.pool.state.Free() && now-p.pool.state.At >= 900_000 {
		next, proposed = p.config().Next(p.pool.state, backoff.Step{
			Now: now, Lag: spread * 1000, Reports: reports, Processors: p.Processors, Used: 1, Offered: 1,
		}), true
	}
	p.in(p.way(), func() {
		s := &p.store
		s.notes[p.id] = own
		if proposed && version == s.version {
			s.state, s.version = next, s.version+1
		}
		state, version, notes := s.state, s.version, slices.Clone(s.notes)
		p.in(p.way(), func() { p.take(state, version, notes) })
	})
}

// take processes the answer to a sync.
func (p *processor) take(state backoff.State, version int, notes []note) {
	p.syncing = false
	if state.Generation != p.pool.state.Generation {
		p.own.Restart(p.micros()) // the pool knows now
		p.begun++
	}
	p.pool.state, p.version, p.others = state, version, notes
	if state.Due(p.micros(), p.reports(p.note()), p.Processors) {
		p.hurry()
	}
}
