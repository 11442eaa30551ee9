package ceiling

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// partLag is how long calls take to show the effect of a cut of a Part, which is itself in
// force at once.
const partLag = 200 * time.Millisecond

// A Part is what one process uses of its share after refusals, by the law of package backoff,
// at once and by itself. It goes by that until the pool knows of the refusals and has made
// a cut. Without a pool, and while the store is lost, that is all there is. Times are in
// microseconds of one clock. The zero Part is the whole. It is not safe for concurrent use.
type Part struct {
	State backoff.State
	// Cuts counts how often the part was lowered.
	Cuts int64
	// Tally counts the calls by what became of them.
	Tally backoff.Tally
}

// Restart makes the part the whole again: the pool has made a cut, and knows better.
func (p *Part) Restart(now int64) {
	p.State = backoff.State{}
	p.Tally.Begin(now, false)
}

// Settle begins to count anew if the lag of a cut is over, and tells whether it has.
func (p *Part) Settle(now int64) (begun bool) {
	if begun = p.Tally.Settling() && p.State.Counts(now); begun {
		p.Tally.Begin(now, false)
	}
	return begun
}

// Step makes a step. rate is the share in tokens per second; used and offered are what was
// used of what it could have, lately. cut: the part was lowered, and calls that were granted
// before do not count any more.
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
