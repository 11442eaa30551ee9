package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// partLag is the time until calls show the effect of a cut of a Part, which is in force at once.
const partLag = 200 * time.Millisecond

// A Part is the part of its share that one process uses after refusals, by the law of package backoff, at once and by itself. The process
// applies it until the pool knows of the refusals and has made a cut. Without a pool, and while the store is lost, there is no other
// backoff. Times are in microseconds of one clock. The zero Part is the whole. It is not safe for concurrent use.
type Part struct {
	State backoff.State
	// Cuts counts how often the part was lowered.
	Cuts int64
	// Tally counts the calls by response.
	Tally backoff.Tally
}

// Restart makes the part the whole again, because the pool has made a better informed cut.
func (p *Part) Restart(now int64) {
	p.State = backoff.State{}
	p.Tally.Begin(now, false)
}

// Settle starts counting again if the lag of a cut is over, and reports whether it did.
func (p *Part) Settle(now int64) (begun bool) {
	if begun = p.Tally.Settling() && p.State.Counts(now); begun {
		p.Tally.Begin(now, false)
	}
	return begun
}

// Step takes a step. rate is the share in tokens per second. used and offered are the recently used and usable tokens. cut: the part was
// lowered, and calls granted before no longer count.
func (p *Part) Step(c backoff.Config, now int64, rate float64, used, offered int64) (cut bool) {
	before := p.State.Generation
	p.State = c.Next(p.State, backoff.Step{
		Now: now, Lag: partLag.Microseconds(), Used: used, Offered: offered,
		Reports: []backoff.Report{p.Tally.Report(rate, before, now)},
	})
	if cut = p.State.Generation != before; cut {
		p.Cuts++
		p.Tally.Begin(now, true)
	}
	return cut
}

// Of returns the part at a time, from 0 to 1.
func (p *Part) Of(c backoff.Config, now int64) float64 {
	if p.State.Free() {
		return 1
	}
	return c.Ceiling(p.State, now) / backoff.Whole
}
