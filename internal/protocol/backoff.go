package protocol

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// ownCalls holds what a processor with an adaptive limit reports about its own calls. It is a
// part of poolCeiling.
type ownCalls struct {
	lag    time.Duration // of a cut that is made now
	served sharing.Served
	haste  haste
}

// haste counts the syncs that refusals have brought forward since a cut.
type haste struct {
	cuts  uint64
	count int
	last  time.Duration
}

const (
	// mostHaste is how many syncs refusals bring forward until the next cut. It bounds the
	// cost to the store when a service keeps refusing.
	mostHaste = 5
	// calmHaste is how long after the last of them refusals may bring syncs forward again.
	calmHaste = 5 * time.Second
)

// stepBackoff returns the next step of the backoff, if one is due.
func (l *poolCeiling) stepBackoff(c *core, now time.Duration) (next state.Shared[backoff.State], due bool) {
	if !l.law.Adapts || c.clock.answers == 0 {
		return next, false
	}
	t := c.clock.logical(now)
	if c.clock.lost(now) { // each processor makes steps for itself alone; see limit.Backoff
		l.law.Drift(backoff.Step{Now: t, Used: l.used, Offered: l.offers})
		return next, false
	}
	used, offered := l.flow(c)
	return l.law.NextBackoff(backoff.Step{
		Now: t, Lag: l.calls.lag.Microseconds(), Reports: l.reported(c), Processors: l.law.Others + 1, Used: used, Offered: offered,
	})
}

// cutDue reports after an answer whether the reports ask for a cut, which this processor should propose at once.
func (l *poolCeiling) cutDue(c *core, now time.Duration) bool {
	return l.law.Adapts && l.law.CutDue(c.clock.logical(now), l.reported(c))
}

// reported returns how the called service treats the calls of all processors: by the last
// notes of the others, and the newest figures of this one.
func (l *poolCeiling) reported(c *core) (out []backoff.Report) {
	of := l.law.Limit().Tokens(time.Second)
	scale := func(n int64, rate float64) int64 {
		return int64(max(0, min(float64(n)*rate/of, math.MaxInt32*float64(driver.Whole))))
	}
	for n := range c.others {
		if n.reports && n.limit.Max > 0 {
			r, rate := n.served, n.limit.Tokens(time.Second)
			r.Accepted, r.Refused, r.Overloaded = scale(r.Accepted, rate), scale(r.Refused, rate), scale(r.Overloaded, rate)
			out = append(out, r)
		}
	}
	if l.calls.served.Active {
		out = append(out, reportOf(l.calls.served, of))
	}
	return out
}

// reportOf converts s to parts of a rate in tokens per second.
func reportOf(s sharing.Served, of float64) backoff.Report {
	part := func(rate float64) int64 {
		return int64(max(0, min(rate/of*float64(driver.Whole), float64(maxNoteFlow))))
	}
	return backoff.Report{
		Generation: int64(min(s.Cuts, maxNoteCuts)), Accepted: part(s.Accepted), Refused: part(s.Refused), Overloaded: part(s.Overloaded),
	}
}

// report adds to a note how the called service treats this processor's calls, if the limit adapts to that.
func (o *ownCalls) report(n *Note, adapts bool) {
	if adapts && o.served.Active {
		n.reports, n.served = true, reportOf(o.served, n.limit.Tokens(time.Second))
	}
}

// hurries reports whether refusals bring the next request forward, a few times until the next cut.
func (o *ownCalls) hurries(now time.Duration, generation int64) bool {
	s, h := &o.served, &o.haste
	if s.Refused+s.Overloaded <= 0 || s.Cuts != uint64(generation) {
		return false
	}
	if h.cuts != s.Cuts || now-h.last > calmHaste {
		*h = haste{cuts: s.Cuts}
	}
	if h.count == mostHaste {
		return false
	}
	h.count, h.last = h.count+1, now
	return true
}

// Obey records how the called service treats this processor's calls, between two requests.
// Refusals bring the next request forward, so that the others learn of them soon.
func (p *Processor) Obey(now time.Duration, s sharing.Served) {
	p.Tick(now)
	p.ceiling.calls.served = s
	if p.state == StateHolding && p.urgency != urgencyNow && p.ceiling.calls.hurries(now, p.ceiling.law.Backoff.State.Generation) {
		p.urgency = urgencyNow
	}
}

// adapted reports whether the called service's refusals lower the pool's ceiling at a logical time, and
// how often they have. After a cut, settling is true while the refusal of a call granted now says
// nothing about the new ceiling; see limit.Lease.
func (l *poolCeiling) adapted(t int64) (lowered bool, cuts uint64, settling bool) {
	if !l.law.Adapts {
		return false, 0, false
	}
	s := l.law.Backoff.State
	return l.law.Refused(t), uint64(s.Generation), !s.Counts(t)
}

// Adapts reports whether the limit follows the called service's answers, and obey has a use.
func (p *Processor) Adapts() bool { return p.ceiling.law.Adapts }
