package throttle

import "time"

// An Outcome is the called service's response to a call.
type Outcome int

// The outcomes of a call.
const (
	// Accepted: the service served the call, or failed it for a reason unrelated to the number of calls.
	Accepted Outcome = iota
	// Refused: the service received too many calls, from this caller or from all: HTTP 429.
	Refused
	// Overloaded: the service has too much to do, regardless of the caller: HTTP 503 or 529.
	Overloaded
)

// A reporter is a settler that receives the outcome of its call.
type reporter interface {
	report(pos int64, n int, o Outcome)
}

// Report tells the limiter the outcome of the permit's call. It matters only for an adaptive limit (Limit.Adaptive), and costs nothing
// elsewhere. Report every call once, accepted ones too: refusals are measured against them. Report and Settle may come in any order. An All
// passes it on to all its limiters. Other limiters, and permits of NewPermit, ignore it.
func (p Permit) Report(o Outcome) {
	if r, ok := p.by.(reporter); ok {
		r.report(p.pos, p.n, o)
	}
}

// Report is Permit.Report for a call whose permit is not at hand, such as one of a handler behind a wrapper. The n tokens were granted at
// granted; the zero Time is now. Do not report a call both here and by its permit. With quotas it is a call without a tag; see ReportFor.
func (t *Throttle) Report(n int, granted time.Time, o Outcome) {
	if t.tags != nil {
		t.tags.report(n, o, t.grantedAt(granted), t.tags.other.tags)
		return
	}
	t.report(n, o, t.grantedAt(granted))
}

// ReportFor is Report for a call whose tokens were drawn for these tags, in the order of ForTags. Without quotas it is
// Report.
func (t *Throttle) ReportFor(n int, granted time.Time, o Outcome, tags ...string) {
	if l, ok := t.ForTags(tags...).(*tagView); ok {
		t.tags.report(n, o, t.grantedAt(granted), l.tags)
		return
	}
	t.Report(n, granted, o)
}

// report is called by Permit.Report.
func (p *page) report(pos int64, n int, o Outcome) { p.t.report(n, o, grantedFrom(pos)) }

func (g *bundle) report(_ int64, _ int, o Outcome) {
	for _, p := range g.permits {
		at, ok := p.by.(*page)
		if !ok {
			p.Report(o)
			continue
		}
		if tags := g.tagsOf(at.t); len(tags) > 0 {
			tags[0].set.report(p.n, o, grantedFrom(p.pos), tags)
			continue
		}
		at.report(p.pos, p.n, o)
	}
}

// tagsOf returns the tags for which the tokens of a Throttle were drawn.
func (g *bundle) tagsOf(t *Throttle) (tags []*tag) {
	if t.backoff == nil {
		return nil
	}
	for _, p := range g.children {
		if own, ok := p.native.(stockSource); ok && own.t == t {
			tags = append(tags, own.tag)
		}
	}
	return tags
}
