package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// This file is what a Throttle with an adaptive limit does about refusals. What it is
// told goes to its sharer, which lowers the ceiling of the whole pool (Flow.Served). That
// takes a moment, and one processor alone is not believed where there are others. So a
// Throttle also goes by the same law for itself, at once: it uses a part of its share. That is
// all there is without a pool, and while the store is lost. When the pool has made a cut, it
// knows better, and this Throttle begins anew (Lease.Cuts).
//
// While tokens are issued one by one only the pool's law holds.

// A slowing is what an adaptive Throttle knows of refusals. It is guarded by the
// Throttle's lock.
type slowing struct {
	config ceiling.Config
	leased Lease // as the sharer has leased it
	pooled bool  // by a sharer that moves the pool's ceiling
	pool   lane
	own    lane

	state   backoff.State // of the Throttle's own law
	cuts    int64         // by it
	told    backoff.Totals
	flow    Flow // when it was looked at last whether the share is used
	at      int64
	used    int64 // of offered, as of then
	offered int64
	timer   Timer
	stepped bool // the timer is set
}

// A lane is what is counted for one of the two laws.
type lane struct {
	window backoff.Window
	totals backoff.Totals
	// Refusals count of calls that were granted from here on: a position in granted, and a
	// time. settling: of none, for the lag of a cut is not over.
	mark, since int64
	settling    bool
}

// begin begins to count anew.
func (l *lane) begin(t *Throttle, now int64, settling bool) {
	l.mark, l.since, l.settling = t.bucket.Granted(), now, settling
	l.window.Start(now/1000, l.totals)
}

// count counts a call. It tells whether that was a refusal that counts.
func (l *lane) count(now int64, n int, o Outcome, fresh bool) (refused bool) {
	refused = o != Accepted && fresh && !l.settling
	switch {
	case o == Accepted:
		l.totals.Accepted += int64(n)
	case !refused:
		return false
	case o == Overloaded:
		l.totals.Overloaded += int64(n)
	default:
		l.totals.Refused += int64(n)
	}
	l.window.Add(now/1000, l.totals)
	return refused
}

// Times of a Throttle's own law.
const (
	// slowEvery is the time between two steps while the part is not the whole.
	slowEvery = 100 * time.Millisecond
	// slowLook is how often it is looked whether the share is used.
	slowLook = 500 * time.Millisecond
	// slowLag is how long calls take to show the effect of a cut; the cut itself is in force at once.
	slowLag = 200 * time.Millisecond
)

// beginSlowing prepares an adaptive limit.
func (t *Throttle) beginSlowing() {
	if !t.limit.Adapts() {
		return
	}
	_, static := t.sharer.(*Static)
	s := &slowing{config: t.limit.CeilingConfig(), pooled: t.sharer != nil && !static}
	t.slow = s
	s.timer = t.gate.AfterFunc(centuries, t.onSlow)
}

// reported books what became of a call. fresh tells whether it was granted since a lane
// began to count. The lock is held.
func (t *Throttle) reported(now int64, n int, o Outcome, fresh func(*lane) bool) {
	s := t.slow
	if t.gate.Closed.Load() {
		return
	}
	switch o {
	case Accepted:
		s.told.Accepted += int64(n)
	case Refused:
		s.told.Refused += int64(n)
	case Overloaded:
		s.told.Overloaded += int64(n)
	default:
		return // no outcome that this release knows
	}
	if s.pool.count(now, n, o, fresh(&s.pool)) && t.sharer != nil {
		t.sharer.Poke()
	}
	if s.own.count(now, n, o, fresh(&s.own)) && !t.issuing() {
		t.slowStep(now)
	}
}

// lower is what a lease comes to by the Throttle's own law. The lock is held.
func (t *Throttle) lower(now int64, l Lease) Lease {
	s := t.slow
	if s == nil {
		return l
	}
	cut, settled := l.Cuts != s.leased.Cuts, s.pool.settling && !l.Settling
	s.leased = l
	if cut { // the pool has, and knows better
		s.state = backoff.State{}
		s.own.begin(t, now, false)
	}
	if cut || settled {
		s.pool.begin(t, now, l.Settling)
	}
	return t.lowered(now)
}

// lowered is the lease in force at now. The lock is held.
func (t *Throttle) lowered(now int64) Lease {
	s := t.slow
	l := s.leased
	if s.state.Free() || l.Issuing {
		return l
	}
	part := t.slowConfig().Ceiling(s.state, now/1000) / backoff.Whole
	l.Share = int64(float64(l.Share) * part)
	l.Adapted = l.Adapted || part < 1
	if !s.pooled {
		if l.Ceiling == 0 {
			l.Ceiling = float64(t.limit.Max)
		}
		l.Ceiling *= part
	}
	return l
}

// slowConfig is what the Throttle's own law is about: its share, whatever that is. What is
// reserved is a part of the pool's ceiling, and of a hard limit a bucket that holds a token.
func (t *Throttle) slowConfig() backoff.Config {
	of, least := t.slow.leased.Ceiling, 0.0
	if of <= 0 {
		of = float64(t.limit.Max)
	}
	if t.limit.Hard {
		least = float64(t.bucket.Units(1)) / float64(t.bucket.HardUnits()) / (float64(t.slow.leased.Share) / float64(WholeShare))
	}
	return t.slow.config.Part(of, least)
}

// slowStep makes a step of the Throttle's own law. The lock is held.
func (t *Throttle) slowStep(now int64) {
	s := t.slow
	if s.own.settling && s.state.Counts(now/1000) {
		s.own.begin(t, now, false)
	}
	if d := time.Duration(now - s.at); d >= slowLook {
		flow := t.usageAt(now)
		s.used, s.offered = flow.Since(s.flow, d, t.limit.Max, t.limit.Per)
		s.flow, s.at = flow, now
	}
	rate := t.limit.Rate() * float64(s.leased.Share) / float64(WholeShare)
	if rate <= 0 {
		return
	}
	before := s.state.Generation
	s.state = t.slowConfig().Next(s.state, backoff.Step{
		Now: now / 1000, Lag: slowLag.Microseconds(), Used: s.used, Offered: s.offered,
		Reports: []backoff.Report{s.own.window.Report(rate, s.state.Generation, now/1000)},
	})
	if s.state.Generation != before {
		s.cuts++
		s.own.begin(t, now, true)
		s.flow, s.at, s.used, s.offered = t.usageAt(now), now, 1, 1 // until it is known
	}
	t.put(now, t.lowered(now))
	if !s.state.Free() && !s.stepped {
		s.stepped = true
		s.timer.Reset(slowEvery)
	}
}

// onSlow makes the next step, as long as the part is not the whole.
func (t *Throttle) onSlow() {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.slow.stepped = false
	if t.gate.Closed.Load() || t.slow.state.Free() {
		return
	}
	t.slowStep(t.gate.Now())
	if s := t.slow; !s.state.Free() && !s.stepped {
		s.stepped = true
		s.timer.Reset(slowEvery)
	}
}

// stop ends the steps.
func (s *slowing) stop() {
	if s != nil {
		s.timer.Stop()
	}
}

// served returns what was told. The lock is held.
func (t *Throttle) served(now int64) Served {
	s := t.slow
	if s == nil {
		return Served{}
	}
	if !s.pool.window.Active(now / 1000) {
		return Served{Cuts: s.leased.Cuts}
	}
	const unit = backoff.Whole / 1e6 // a Report's numbers are then millionths of a token per second
	r := s.pool.window.Report(unit, 0, now/1000)
	rate := func(n int64) float64 { return float64(n) * unit / backoff.Whole }
	return Served{Cuts: s.leased.Cuts, Accepted: rate(r.Accepted), Refused: rate(r.Refused), Overloaded: rate(r.Overloaded), Active: true}
}

// An Adapting is how a Throttle with an adaptive limit stands with the called service; the zero
// value for another limit.
type Adapting struct {
	// Part is what the Throttle uses of its share, 0 to 1: less than 1 after refusals that
	// the pool does not know of yet, or does not hold against all. Lease.Share has it in it.
	Part float64
	// Cuts counts how often the Throttle has lowered it by itself, and Lease.Cuts how often
	// the pool has lowered its ceiling.
	Cuts int64
	// Accepted, Refused and Overloaded count the tokens of the calls that were reported.
	Accepted, Refused, Overloaded int64
}

// adapting returns how the Throttle stands with the service. The lock is held.
func (t *Throttle) adapting(now int64) Adapting {
	s := t.slow
	if s == nil {
		return Adapting{}
	}
	a := Adapting{Part: 1, Cuts: s.cuts, Accepted: s.told.Accepted, Refused: s.told.Refused, Overloaded: s.told.Overloaded}
	if !s.state.Free() && !s.leased.Issuing {
		a.Part = t.slowConfig().Ceiling(s.state, now/1000) / backoff.Whole
	}
	return a
}
