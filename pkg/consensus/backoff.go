package consensus

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// ownCalls holds what a processor with an adaptive limit reports about its own calls. It is a
// part of poolCeiling.
type ownCalls struct {
	lag    time.Duration // of a cut that is made now
	served limit.Served
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
func (c *poolCeiling) stepBackoff(now time.Duration) (next state.Shared[backoff.State], due bool) {
	if !c.law.Adapts || c.answers == 0 {
		return next, false
	}
	t := c.logical(now)
	if c.lost(now) { // each processor makes steps for itself alone; see limit.Backoff
		c.law.Drift(backoff.Step{Now: t, Used: c.used, Offered: c.offers})
		return next, false
	}
	used, offered := c.flow()
	return c.law.NextBackoff(backoff.Step{
		Now: t, Lag: c.calls.lag.Microseconds(), Reports: c.reported(), Processors: len(c.others) + 1, Used: used, Offered: offered,
	})
}

// cutDue reports whether the reports ask for a cut, which this processor should propose at once.
func (c *poolCeiling) cutDue(now time.Duration) bool {
	return c.law.Adapts && c.answers > 0 && c.law.CutDue(c.logical(now), c.reported())
}

// reported returns how the called service treats the calls of all processors: by the last
// notes of the others, and the newest figures of this one.
func (c *poolCeiling) reported() (out []backoff.Report) {
	of := c.law.Limit().Tokens(time.Second)
	scale := func(n int64, rate float64) int64 {
		return int64(max(0, min(float64(n)*rate/of, math.MaxInt32*float64(Whole))))
	}
	for i := range c.others {
		n := &c.others[i]
		if rate := n.limit.Tokens(time.Second); n.reports {
			r := n.served
			r.Accepted, r.Refused, r.Overloaded = scale(r.Accepted, rate), scale(r.Refused, rate), scale(r.Overloaded, rate)
			out = append(out, r)
		}
	}
	if c.calls.served.Active {
		out = append(out, reportOf(c.calls.served, of))
	}
	return out
}

// reportOf converts s to parts of a rate in tokens per second.
func reportOf(s limit.Served, of float64) backoff.Report {
	part := func(rate float64) int64 { return int64(max(0, min(rate/of*float64(Whole), float64(maxNoteFlow)))) }
	return backoff.Report{
		Generation: int64(min(s.Cuts, maxNoteCuts)), Accepted: part(s.Accepted), Refused: part(s.Refused), Overloaded: part(s.Overloaded),
	}
}

// tell adds to a note how the called service treats this processor's calls.
func (c *poolCeiling) tell(n *note) {
	if c.law.Adapts && c.calls.served.Active {
		n.reports, n.served = true, reportOf(c.calls.served, n.limit.Tokens(time.Second))
	}
}

// Heed records how the called service treats this processor's calls, between two requests.
// Refusals bring the next request forward, so that the others learn of them soon.
func (p *Processor) Heed(now time.Duration, s limit.Served) {
	p.Tick(now)
	c := &p.ceiling
	c.calls.served = s
	if p.state != StateHolding || p.urgency == urgencyNow || s.Refused+s.Overloaded <= 0 || s.Cuts != uint64(c.law.Backoff.State.Generation) {
		return
	}
	h := &c.calls.haste
	if h.cuts != s.Cuts || now-h.last > calmHaste {
		*h = haste{cuts: s.Cuts}
	}
	if h.count < mostHaste {
		h.count, h.last = h.count+1, now
		p.urgency = urgencyNow
	}
}

// adapts reports whether the limit is adaptive.
func (p *Processor) adapts() bool { return p.ceiling.law.Adapts }

// Adapted reports whether the called service's refusals lower the pool's ceiling at now, and
// how often they have. After a cut, settling is true while the refusal of a call granted now says
// nothing about the new ceiling; see throttle.Lease.
func (p *Processor) Adapted(now time.Duration) (lowered bool, cuts uint64, settling bool) {
	c := &p.ceiling
	if !c.law.Adapts {
		return false, 0, false
	}
	t, s := c.logical(now), c.law.Backoff.State
	return c.law.Refused(t), uint64(s.Generation), !s.Counts(t)
}
