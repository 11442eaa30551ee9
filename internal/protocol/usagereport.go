package protocol

import (
	"cmp"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An Observation is the activity of a holder, as a request reports it.
type Observation struct {
	// Demand is the share that it would use if it could.
	Demand driver.Share
	// Needs are the smallest and the largest share that waiting draws need which an even share can never grant; 0: there are none.
	Needs [2]driver.Share
	// InUse is the share that calls under way use. It may be above the one in force: share still in use is
	// not free for others.
	InUse driver.Share
	// Used and Offered are the amounts used and usable since the last answered request, in 1e-9 of the
	// limit; see sharing.Usage.
	Used, Offered int64
	// Served is what the called service makes of the calls; see sharing.Served.
	Served sharing.Served
	// Lately is the part of the limit that was used in the last seconds. It and the fields below are for
	// operators; see sharing.Report.
	Lately    float64
	Waiting   int
	Throttled limit.Reason
	OfTag     bool
	Tag       string
	Hold      sharing.Hold
	// Announced is the limit that the called service announced to it; see sharing.Report.
	Announced int64
}

// observe sets what the next request reports.
func (p *Processor) observe(o *Observation) {
	p.demand, p.inUse = min(max(o.Demand, 0), driver.Whole), min(max(o.InUse, 0), driver.Whole)
	for i, n := range o.Needs {
		p.needs[i] = min(max(n, 0), driver.Whole)
	}
	p.ceiling.used = min(max(o.Used, 0), maxNoteFlow)
	p.ceiling.offers = min(max(o.Offered, 0), maxNoteFlow)
	p.ceiling.calls.served = o.Served
	p.ceiling.announced = min(max(o.Announced, 0), maxNoteTokens)
	p.reported.Used = max(o.Lately, 0)
	p.reported.Waiting, p.reported.Throttled, p.reported.Tag = max(o.Waiting, 0), o.Throttled, ""
	p.reported.Pattern = ""
	p.reported.Hold = o.Hold
	if o.OfTag && o.Throttled != "" {
		p.reported.Tag, p.reported.Pattern = p.tags.reportedName(o.Tag), p.tags.reportedPattern(o.Tag)
	}
}

// Yield lowers the share in force as the next Request with this demand would. A holder with calls under way
// yields first, puts the lower share in force, and then observes its use. Nothing is added to that any more.
// Its reports on tags come first: tokens given back have left its hands.
func (p *Processor) Yield(now time.Duration, demand driver.Share, tags []sharing.TagReport) {
	p.Tick(now)
	p.reportTags(now, tags)
	p.demand = min(max(demand, 0), driver.Whole)
	p.choose(now)
}

// unreadable returns why nothing is renewed though the store answers: this release cannot read the override
// or the pauses of the pool. nil: it can.
func (p *Processor) unreadable() error { return cmp.Or(p.ceiling.readable(), p.Pauses.readable()) }
