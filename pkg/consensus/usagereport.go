package consensus

import (
	"cmp"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An Observation is the activity of a holder, as the next requests report it beside its demand.
type Observation struct {
	// InUse is the share that calls under way use. It may be above the one in force: share still in use is
	// not free for others.
	InUse Share
	// Used and Offered are the amounts used and usable since the last answered request, in 1e-9 of the
	// limit; see limit.Usage.
	Used, Offered int64
	// Served is what the called service makes of the calls; see limit.Served.
	Served limit.Served
	// Lately is the part of the limit that was used in the last seconds. It and the fields below are for
	// operators; see limit.Report.
	Lately    float64
	Waiting   int
	Throttled limit.Reason
	OfTag     bool
	Tag       string
	Hold      limit.Hold
}

// Observe sets what the next requests report. The share in force must not have risen
// since it was observed; see Yield.
func (p *Processor) Observe(o Observation) {
	p.inUse = min(max(o.InUse, 0), Whole)
	p.ceiling.used = min(max(o.Used, 0), maxNoteFlow)
	p.ceiling.offers = min(max(o.Offered, 0), maxNoteFlow)
	p.ceiling.calls.served = o.Served
	p.reported.Used = max(o.Lately, 0)
	p.reported.Waiting, p.reported.Throttled, p.reported.Tag = max(o.Waiting, 0), o.Throttled, ""
	p.reported.Hold = o.Hold
	if o.OfTag && o.Throttled != "" {
		p.reported.Tag = p.tags.toldName(o.Tag)
	}
}

// Yield lowers the share in force as the next Request with this demand would. A holder with calls under way
// yields first, puts the lower share in force, and then observes its use: nothing is added to that any more.
func (p *Processor) Yield(now time.Duration, demand Share) {
	p.Tick(now)
	p.demand = min(max(demand, 0), Whole)
	p.choose(now)
}

// SetLimit sets the processor's configured limit, which must be valid. The zero Config, as before the first
// call, is none: no override and no ramp changes the worth of a share. The next request reports the limit to
// the others, and is due at once if one was sent already.
func (p *Processor) SetLimit(l ceiling.Config) {
	p.ceiling.configure(l)
	if l.Limit.Max > 0 && p.seq > 0 {
		p.urgency = urgencyNow
	}
}

// Apply returns the worth of the share in force at now, in 1e-9 of the configured limit and at most
// limit.MaxShare. It also returns the ceiling of the pool in tokens per Per if that is not the configured
// limit, else 0. Both hold until ahead from now at least: a falling ceiling counts before it has fallen, a
// rising one when it has risen.
func (p *Processor) Apply(now, ahead time.Duration) (share int64, tokens float64) {
	return p.ceiling.apply(&p.core, p.Held(now), now, ahead)
}

// unreadable returns why nothing is renewed though the store answers: this release cannot read the override
// or the pauses of the pool. nil: it can.
func (p *Processor) unreadable() error { return cmp.Or(p.ceiling.readable(), p.pauses.readable()) }
