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
		t.reportAt(n, granted, o, t.tags.other.tags)
		return
	}
	t.reportAt(n, granted, o, nil)
}

// ReportFor is Report for a call whose tokens were drawn for these tags, in the order of ForTags. Without quotas it is
// Report.
func (t *Throttle) ReportFor(n int, granted time.Time, o Outcome, tags ...string) {
	if l, ok := t.ForTags(tags...).(*tagView); ok {
		t.reportAt(n, granted, o, l.tags)
		return
	}
	t.Report(n, granted, o)
}

func (t *Throttle) reportAt(n int, granted time.Time, o Outcome, tags []*tag) {
	if t.backoff == nil || n <= 0 {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	at := now
	if !granted.IsZero() {
		at = min(int64(granted.Sub(t.gate.Base)), now)
	}
	t.reported(now, n, o, func(s start) bool { return at >= s.time }, tags)
}

func (p *page) report(pos int64, n int, o Outcome) { p.reportFor(pos, n, o, nil) }

// reportFor is report for a draw of tags.
func (p *page) reportFor(pos int64, n int, o Outcome, tags []*tag) {
	t := p.t
	if t.backoff == nil {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	t.reported(t.gate.Now(), n, o, func(s start) bool { return pos >= s.position }, tags)
}

func (g *bundle) report(_ int64, _ int, o Outcome) {
	for _, p := range g.permits {
		if at, ok := p.by.(*page); ok {
			at.reportFor(p.pos, p.n, o, g.tagsOf(at.t))
			continue
		}
		p.Report(o)
	}
}

// tagsOf returns the tags for which the tokens of a Throttle were drawn.
func (g *bundle) tagsOf(t *Throttle) (tags []*tag) {
	if t.backoff == nil || t.tags == nil {
		return nil
	}
	for _, p := range g.children {
		if own, ok := p.native.(stockSource); ok && own.t == t {
			tags = append(tags, own.tag)
		}
	}
	return tags
}
