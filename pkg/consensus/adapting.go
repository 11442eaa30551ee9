package consensus

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/adapt"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ceilingDocument is the name of the document that says how far the called service's
// refusals have lowered the pool's ceiling.
const ceilingDocument = "ceiling"

// An adapting is what a processor with an adaptive limit knows of that ceiling, and what
// it has to tell of its own calls. It is a part of ceiling.
type adapting struct {
	state adapt.State
	began int64 // Answer.Began when the state was made; 0: not known
	// moved: the state is not what is on record, as for the ramp.
	moved bool
	// foreign: the document on record is none that this release knows. The ceiling is not
	// lowered, and nothing is proposed.
	foreign bool

	lag    time.Duration // of a cut that is made now
	served throttle.Served
	haste  haste
}

// haste is how many syncs refusals have brought forward since a cut, and when the last was.
type haste struct {
	cuts  uint64
	count int
	last  time.Duration
}

const (
	// mostHaste is how many syncs refusals bring forward until the next cut, so that a
	// service that refuses for good does not cost the store more for ever.
	mostHaste = 5
	// calmHaste is how long after the last of them some may be brought forward again.
	calmHaste = 5 * time.Second
)

// cutLag is how long it takes until a cut is known to all who make calls that are
// refused, and its effect can be seen: three times what a processor waits before it asks again at once.
func cutLag(lease time.Duration, live int) time.Duration { return 3 * Interval(lease, live) / 10 }

// ceilingForm is the first word of every body that this release writes and reads.
const ceilingForm = "1"

// ceilingBody returns the document's body. It fails for a state that no step returns.
func ceilingBody(s adapt.State, began int64) ([]byte, error) {
	b := strconv.AppendInt([]byte(ceilingForm+" "), began, 10)
	return s.AppendText(append(b, ' '))
}

// parseCeiling reads what ceilingBody returns, and nothing else.
func parseCeiling(body []byte) (s adapt.State, began int64, err error) {
	form, rest, _ := strings.Cut(string(body), " ")
	word, rest, _ := strings.Cut(rest, " ")
	began, err = strconv.ParseInt(word, 10, 64)
	if form != ceilingForm || err != nil || began < 0 || began > MaxMicros || strconv.FormatInt(began, 10) != word {
		return adapt.State{}, 0, errors.New("consensus: the document " + ceilingDocument + " is none of this release's")
	}
	if s, err = adapt.ParseState(rest); err != nil {
		return adapt.State{}, 0, err
	}
	return s, began, nil
}

// load takes the state from the document.
func (a *adapting) load(body []byte) {
	s, began, err := parseCeiling(body)
	a.state, a.began, a.moved, a.foreign = s, began, false, err != nil
}

// settleCeiling brings the state into the present life of the pool and its clock. In another
// life the ceiling is free; on another clock it goes on from where it stood.
func (c *ceiling) settleCeiling(a *Answer) {
	s := &c.slow
	if !c.limit.Adapts() || s.foreign || s.state == (adapt.State{}) {
		return
	}
	gap := time.Duration(a.Time-s.state.At) * time.Microsecond
	switch {
	case a.Began != 0 && a.Began != s.began && (s.began != 0 || s.state.At < a.Began):
		s.moved = s.moved || !s.state.Free()
		s.state = s.state.Renew(a.Time)
	case s.state.Free():
	case (gap > c.stale() || gap < -c.clamp) && !skip(ruleResume):
		s.state, s.moved = s.state.Resume(a.Time), true
	}
	if a.Began != 0 {
		s.began = a.Began
	}
}

// adaptConfig is the limit in force as the law takes it. What is reserved keeps its rate.
// Of a hard limit it is at least as much as leaves each processor a bucket that is worth a token.
func (c *ceiling) adaptConfig() adapt.Config {
	cfg, q := c.limit.AdaptConfig(), c.quota()
	reserved := float64(c.limit.AdaptiveMin)
	reserved = max(reserved, c.tokenEach())
	if q != c.own() {
		cfg.Max, cfg.Per = q.max, max(q.per, time.Millisecond)
	}
	part := reserved / q.tokens(c.limit.Per)
	cfg.Reserved = int64(max(1, min(part*adapt.Whole, adapt.Whole)))
	return cfg
}

// adaptive is what the called service leaves of the limit in force at now, in tokens per
// period of the configured limit.
func (c *ceiling) adaptive(now time.Duration) float64 {
	whole := c.quota().tokens(c.limit.Per)
	if c.slow.foreign || c.slow.state.Free() {
		return whole
	}
	return whole * (c.adaptConfig().Ceiling(c.slow.state, c.logical(now)) / adapt.Whole)
}

// stepCeiling returns the document after the next step of the law, or nil if none is due.
func (c *ceiling) stepCeiling(now time.Duration) []byte {
	s := &c.slow
	if !c.limit.Adapts() || c.answers == 0 || s.foreign {
		return nil
	}
	t, reports := c.logical(now), c.reported()
	age := time.Duration(t-s.state.At) * time.Microsecond
	if now-c.at > c.clamp { // the store is lost, and nobody makes steps but each for itself; see throttle.Adapting
		if !s.state.Free() && age >= rampStep {
			s.state = c.adaptConfig().Next(s.state, adapt.Step{Now: t, Used: c.used, Offered: c.offers})
		}
		return nil
	}
	if !s.moved && !s.state.Due(t, reports, len(c.others)+1) && (s.state.Free() || age < rampStep) {
		return nil
	}
	used, offered := c.flow()
	next := c.adaptConfig().Next(s.state, adapt.Step{
		Now: t, Lag: s.lag.Microseconds(), Reports: reports, Processors: len(c.others) + 1, Used: used, Offered: offered,
	})
	body, err := ceilingBody(next, s.began)
	if err != nil {
		return nil
	}
	return body
}

// cutDue tells whether the reports ask for a cut, which this processor should propose at once.
func (c *ceiling) cutDue(now time.Duration) bool {
	return c.limit.Adapts() && !c.slow.foreign && c.answers > 0 && c.slow.state.Due(c.logical(now), c.reported(), len(c.others)+1)
}

// reported is what the called service makes of the calls of all processors that make any, by
// their last notes and the newest figures of this one.
func (c *ceiling) reported() (out []adapt.Report) {
	q := c.quota()
	of := q.tokens(time.Second) // of the limit in force, per second
	scale := func(n int64, rate float64) int64 {
		return int64(max(0, min(float64(n)*rate/of, math.MaxInt32*float64(Whole))))
	}
	for _, n := range c.others {
		if rate := n.limit.tokens(time.Second); n.told {
			r := n.served
			r.Accepted, r.Refused, r.Overloaded = scale(r.Accepted, rate), scale(r.Refused, rate), scale(r.Overloaded, rate)
			out = append(out, r)
		}
	}
	if c.slow.served.Active {
		out = append(out, reportOf(c.slow.served, of))
	}
	return out
}

// reportOf is what was served in parts of a rate in tokens per second.
func reportOf(s throttle.Served, of float64) adapt.Report {
	part := func(rate float64) int64 { return int64(max(0, min(rate/of*float64(Whole), float64(maxNoteFlow)))) }
	return adapt.Report{
		Generation: int64(min(s.Cuts, maxNoteCuts)), Accepted: part(s.Accepted), Refused: part(s.Refused), Overloaded: part(s.Overloaded),
	}
}

// tell adds to a note what the called service makes of the processor's calls.
func (c *ceiling) tell(n *note) {
	if c.limit.Adapts() && c.slow.served.Active {
		n.told, n.served = true, reportOf(c.slow.served, n.limit.tokens(time.Second))
	}
}

// Heed takes what the called service makes of the processor's calls, between two requests: refusals that
// the others should know of bring the next request forward.
func (p *Processor) Heed(now time.Duration, s throttle.Served) {
	p.Tick(now)
	c := &p.ceiling
	p.ceiling.slow.served = s
	if p.state != StateHolding || p.urgency == urgencyNow || s.Refused+s.Overloaded <= 0 || s.Cuts != uint64(c.slow.state.Generation) {
		return
	}
	h := &c.slow.haste
	if h.cuts != s.Cuts || now-h.last > calmHaste {
		*h = haste{cuts: s.Cuts}
	}
	if h.count < mostHaste {
		h.count, h.last = h.count+1, now
		p.urgency = urgencyNow
	}
}

// adapts tells whether the limit is adaptive.
func (p *Processor) adapts() bool { return p.ceiling.limit.Adapts() }

// Adapted tells whether the called service's refusals lower the pool's ceiling at now,
// how often they have, and whether the last time is so short ago that it says nothing when a call is
// refused that is granted now; see throttle.Lease.
func (p *Processor) Adapted(now time.Duration) (lowered bool, cuts uint64, settling bool) {
	c := &p.ceiling
	if !c.limit.Adapts() {
		return false, 0, false
	}
	s := c.slow.state
	return c.adaptive(now) < c.unadapted(now, 0), uint64(s.Generation), !s.Counts(c.logical(now))
}

// servedWord begins the word of a note that tells what the called service makes of the
// calls: the number of cuts that the refused ones were granted under, and what was accepted,
// refused and overloaded, to base 36 with dots between them.
const servedWord = "r:"

// maxNoteCuts is the largest number of cuts in a note.
const maxNoteCuts = 78_000_000_000

func appendServed(b []byte, r adapt.Report) []byte {
	b = strconv.AppendInt(append(b, " "+servedWord...), r.Generation, 36)
	for _, n := range []int64{r.Accepted, r.Refused, r.Overloaded} {
		b = strconv.AppendInt(append(b, '.'), n, 36)
	}
	return b
}

// servedIn reads that word; told is false if there is none.
func servedIn(more []string) (r adapt.Report, told, ok bool) {
	for _, w := range more {
		value, found := strings.CutPrefix(w, servedWord)
		if !found {
			continue
		}
		parts := strings.Split(value, ".")
		if len(parts) != 4 {
			return adapt.Report{}, false, false
		}
		for i, f := range []*int64{&r.Generation, &r.Accepted, &r.Refused, &r.Overloaded} {
			top := maxNoteFlow
			if i == 0 {
				top = maxNoteCuts
			}
			var is bool
			if *f, is = numeral(parts[i], 36, top); !is {
				return adapt.Report{}, false, false
			}
		}
		return r, true, true
	}
	return adapt.Report{}, false, true
}
