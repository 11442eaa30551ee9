package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// This file handles refusals of one tag's calls by the service, in a Throttle with an adaptive limit and quotas. A tag that makes more than
// half of the refused calls here (fairtags.Blame) gets a rate of its own (ceiling.Single). Its calls then no longer count for the limit,
// neither here nor in the pool. They count again when it no longer makes most of the refusals. Each Throttle considers only its own calls.
// So where one is refused for a reason of its own, such as a wrong key, the tag is slow there and nowhere else.

// A tagBackoff is the state of an adaptive Throttle for the calls of one tag. The tag's lock guards it.
type tagBackoff struct {
	single ceiling.Single
	from   start // when single began to count
	blame  fairtags.Blame
	era    int // of tagBlame, in which blame was counted
	// pressed: before the last step callers lacked tokens because of it. held is when that was last so, or when the tag was cut.
	pressed bool
	held    int64
	stepped int64 // when the last step was made
	// gone: the tag is no longer known, and never slow. Limiters of it may still be in use.
	gone bool
}

// A tagBlame counts refused calls that are not yet attributed to one tag alone. The Throttle's lock guards it.
type tagBlame struct {
	all fairtags.Blame
	era int
	// held counts refusals of calls that may still turn out to be one tag's business.
	held backoff.Totals
	// After the first cut of a tag the others' refusals count only for calls granted after its lag.
	until int64
	from  start
}

// forget starts over: the limit, or a tag, has been cut.
func (b *tagBlame) forget() {
	b.all, b.held = fairtags.Blame{}, backoff.Totals{}
	b.era++
}

// cutLag is how long the cut of a tag takes to show in the calls of others.
const cutLag = int64(200 * time.Millisecond)

// forgetAfter is how long a tag must make calls without being held back before it is free again.
const forgetAfter = int64(30 * time.Second)

// settled reports whether the lag of the last cut of a tag is over.
func (b *tagBlame) settled(t *rateLimiter, now int64) bool {
	if b.until != 0 && now >= b.until {
		b.until, b.from = 0, t.startAt(now)
	}
	return b.until == 0
}

// singleConfig returns the configuration of a tag's own ceiling. The tag's lock is held.
func (g *tag) singleConfig() ceiling.SingleConfig {
	l, q := g.t.limit, g.quota()
	c := ceiling.SingleConfig{Limit: ceiling.Rate{Max: int64(l.Max), Per: l.Per}, Reserved: g.grant.Reserved, Most: l.Rate()}
	if s := g.set; !s.pooled {
		c.Reserved = float64(q.Reserved) / q.Per.Seconds() * s.part
	}
	if q.Total > 0 && !q.Shadow {
		total, per, _ := q.Enforced()
		c.Most = min(c.Most, float64(total)/per.Seconds())
	}
	return c
}

// counts books calls of the tag, and reports whether they include a refusal that counts. The tag's lock is held.
func (g *tag) counts(now int64, calls backoff.Totals, granted start) (refused bool) {
	b := g.slow
	if b.single.Settle(now / 1000) {
		b.from = g.t.startAt(now)
	}
	return b.single.Tally.Count(now/1000, calls, b.from.before(granted))
}

// isSlow reports whether the tag is held below a rate of its own.
func (g *tag) isSlow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.slow.single.Free()
}

// report books the outcome of a call of n tokens of these tags. The lock is not held.
func (s *tagSet) report(n int, o Outcome, granted start, tags []*tag) {
	t := s.t
	if t.backoff == nil {
		return
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	if calls := t.noteReport(n, o); calls != (backoff.Totals{}) {
		t.bookReport(now, s.attribute(now, calls, granted, tags), granted)
	}
}

// attribute books calls of tags, and returns the calls that concern every tag. The Throttle's lock is held.
func (s *tagSet) attribute(now int64, calls backoff.Totals, granted start, tags []*tag) backoff.Totals {
	s.blame.settled(s.t, now) // whatever became of the call
	var room [maxTagsOfDraw]*tag
	of, slow := room[:0], false
	for _, g := range tags {
		if g.isSlow() {
			of, slow = append(of, g), true
		}
	}
	if !slow { // else it is a call of the slow ones alone
		of = tags
	}
	refused := false
	for _, g := range of {
		g.mu.Lock()
		refused = g.counts(now, calls, granted) || refused
		g.mu.Unlock()
	}
	rest := calls
	if slow {
		rest.Accepted = 0
	}
	n := calls.Refused + calls.Overloaded
	if n == 0 {
		return rest
	}
	rest.Refused, rest.Overloaded = 0, 0
	if !refused || !s.says(now, granted) {
		return rest
	}
	verdict, worst := s.judge(now, float64(n), of)
	switch {
	case verdict == fairtags.Everybody:
		rest = backoff.Totals{Accepted: rest.Accepted, Refused: calls.Refused, Overloaded: calls.Overloaded}.Plus(s.blame.held)
		s.blame.held = backoff.Totals{}
	case slow:
		for _, g := range of {
			g.cut(now)
		}
	case verdict == fairtags.Undecided:
		s.blame.held = s.blame.held.Plus(backoff.Totals{Refused: calls.Refused, Overloaded: calls.Overloaded})
	case worst.cut(now):
		s.blame.forget()
		s.blame.until = now + cutLag
		s.t.dismiss(now)
	}
	return rest
}

// says reports whether the refusal of a call is evidence: the call was granted after the last cut of anything had its effect.
func (s *tagSet) says(now int64, granted start) bool {
	return s.blame.settled(s.t, now) && s.blame.from.before(granted) && s.t.concerns(granted)
}

// judge decides who caused a refused call of n tokens. Of several culprits, worst is the tag with the largest part of its calls refused; in
// a tie, the first one.
func (s *tagSet) judge(now int64, n float64, tags []*tag) (verdict fairtags.Verdict, worst *tag) {
	all, most := &s.blame, -1.0
	all.all.Add(now, n)
	for _, g := range tags {
		g.mu.Lock()
		if g.slow.era != all.era {
			g.slow.era, g.slow.blame = all.era, fairtags.Blame{}
		}
		g.slow.blame.Add(now, n)
		part := g.slow.single.Refused(g.singleConfig(), now/1000)
		switch v := g.slow.blame.Judge(now, &all.all); {
		case v == fairtags.Culprit && part > most:
			verdict, worst, most = v, g, part
		case v == fairtags.Undecided && verdict == fairtags.Everybody:
			verdict = v
		}
		g.mu.Unlock()
	}
	return verdict, worst
}

// cut makes a step after a refused call of the tag, and reports whether the tag was cut.
func (g *tag) cut(now int64) (cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b, c := g.slow, g.singleConfig()
	if b.gone {
		return false
	}
	if cut = b.single.Refuse(c, now/1000); cut {
		b.from, b.held, b.stepped = g.t.startAt(now), now, now
	}
	g.rebound(now, c)
	return cut
}

// stepSlow updates how much the tag may use. The nil tagBackoff has nothing to update. The tag's lock is held.
func (g *tag) stepSlow(now int64) {
	if g.slow == nil || g.slow.single.Free() {
		return
	}
	waiting := int64(0)
	if w := g.queue.First; w != nil {
		waiting = int64(w.Least)
	}
	c := g.singleConfig()
	if g.slow.single.Settle(now / 1000) {
		g.slow.from = g.t.startAt(now)
	}
	b := g.slow
	if gap := now - b.stepped; gap > 2*int64(planEvery) {
		b.held += gap // nobody looked
	}
	b.stepped = now
	if b.pressed = g.tagBucket.Pressed(now, waiting); b.pressed || !b.single.Tally.Active(now/1000) {
		b.held = now // a tag without calls has not shown that nothing holds it
	}
	if b.single.Step(c, now/1000, b.pressed); now-b.held >= forgetAfter {
		b.single.Forget()
	}
	g.rebound(now, c)
	g.retime(now)
}

// rebound puts the tag's present rate in force.
func (g *tag) rebound(now int64, c ceiling.SingleConfig) {
	g.tagBucket.SetBound(now, g.slow.single.Rate(c, now/1000))
	g.changed(now)
}

// limiting returns how much the tag may use here after the time ahead, in tokens per second; 0: nothing holds it. The tag's lock is held.
func (g *tag) limiting(now int64, ahead time.Duration) float64 {
	if g.slow == nil || g.slow.single.Free() {
		return 0
	}
	return g.slow.single.Rate(g.singleConfig(), (now+int64(ahead))/1000)
}
