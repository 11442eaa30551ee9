package throttle

// An Outcome is the called service's response to a call.
type Outcome int

// The outcomes of a call.
const (
	// OutcomeAccepted: the service served the call, or failed it for a reason unrelated to the number of calls.
	OutcomeAccepted Outcome = iota
	// OutcomeRefused: the service received too many calls, from this caller or from all: HTTP 429.
	OutcomeRefused
	// OutcomeOverloaded: the service has too much to do, regardless of the caller: HTTP 503 or 529.
	OutcomeOverloaded
)

// A reporter is a settler that receives the outcome of its call.
type reporter interface {
	report(pos int64, n int, o Outcome)
}

// Report tells the limiter the outcome of the permit's call. It matters only for an adaptive limit ([Limit.Adaptive]), and costs nothing
// elsewhere. Report every call once, accepted ones too: refusals are measured against them. Report and Settle may come in any order. An All
// passes it on to all its limiters. Other limiters, and permits of [NewPermit], ignore it.
func (p Permit) Report(o Outcome) {
	if r, ok := p.by.(reporter); ok {
		r.report(p.pos, p.n, o)
	}
}

// report is called by Permit.Report.
func (p *page) report(pos int64, n int, o Outcome) { p.t.report(n, o, start{pos, never}) }
