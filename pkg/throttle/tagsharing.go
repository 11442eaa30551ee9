package throttle

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/tagbucket"
	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// ReportTags implements Holder.
func (t rateHolder) ReportTags(keep time.Duration) []sharing.TagReport {
	if t.tags == nil {
		return nil
	}
	now := t.gate.Now()
	var list []sharing.TagReport
	for _, g := range t.tags.all() {
		if r, reported := g.report(now, keep); reported {
			list = append(list, r)
		}
	}
	return list
}

// report describes the tag's activity; told is false if the tag is idle and holds no tokens.
func (g *tag) report(now int64, keep time.Duration) (r sharing.TagReport, reported bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refused, waiting := g.lacked()
	full := keep
	r = sharing.TagReport{
		Tag: g.name, Again: g.again, Used: g.used.Load(), Refused: refused, Waiting: waiting,
		Limiting: g.limiting(now, keep), // by the end of the next interval
		Under:    g.under.Load(),
	}
	r.Held = r.Limiting > 0 && g.slow.pressed
	if g.quota().Total > 0 && (r.Used != g.reported.Used || r.Waiting > 0) {
		keep /= 4 // later draws use the oldest tokens first, and a total gets nothing back so late
	}
	g.tagBucket.Report(now, int64(keep), &r)
	g.line(full, &r)
	reported = r.Used != g.reported.Used || r.Refused != g.reported.Refused || r.Waiting > 0 || r.Back > 0 || r.BackSpent > 0 || r.Owed > 0 ||
		r.InHand > 0 || r.Promised > 0
	if g.reported = r; reported {
		g.again = false
	}
	return r, reported
}

// line reports which callers wait for tokens of the tag's quota, and not for the end of a pause or for the called service. The duration
// keep is nearly the time until the next report. A call behind the first starts to wait for the limit only when it has the tag's tokens. If
// the limit earns its cost too late, these lapse. The first call starts earlier; see waitqueue.Attempt. With equal answers to that, all
// processors take turns of one size at the tag's total.
func (g *tag) line(keep time.Duration, r *sharing.TagReport) {
	if _, paused := g.set.pauseOf(g.name); paused {
		return
	}
	r.Promised = min(g.promised, r.InHand)
	r.InHand -= r.Promised
	hand := r.InHand
	covers := g.grant.Coming + int64(math.Ceil(g.grant.Rate*keep.Seconds()*4/3))
	sum, rest := int64(0), g.grant.Coming // rest covers whole calls only: part of a call lapses before the other part comes
	for w := range g.queue.All() {
		switch n := int64(w.Least); {
		case r.Head == 0 && n <= hand: // it has been woken
			hand -= n
			continue
		case r.Head == 0 && r.Limiting > 0 && w != g.queue.First:
			return
		case r.Head == 0:
			r.InHand, r.Head, r.Line = hand, n, g.grant.Coming
			fallthrough
		case sum < max(covers, 1) && (sum == 0 || g.t.earnsWithin(w.Least, keep)):
			if sum += n; n <= rest {
				rest -= n
				continue
			}
			r.Line += n
			rest = 0
		default:
			r.More = true
			return
		}
	}
}

// GrantTags implements Holder. A closed limiter takes tokens too, and gives them up with its last report.
func (t rateHolder) GrantTags(grants []sharing.TagGrant) {
	if t.tags == nil {
		return
	}
	s, now := t.tags, t.gate.Now()
	s.plan.mu.Lock()
	defer s.plan.mu.Unlock()
	named := make(map[string]sharing.TagGrant, len(grants))
	for _, e := range grants {
		named[e.Tag] = e
		if _, configured := s.configured(e.Tag); configured || e.Batch.Tokens > 0 {
			s.view(e.Tag, true) // it may not have been in use yet; a tag that matches a pattern is made by its first user
		}
	}
	tags := s.all()
	all := make([]sharing.TagGrant, len(tags))
	for i, g := range tags {
		e, ok := named[g.name]
		if ok {
			g.put(now, e)
		} else {
			g.mu.Lock()
			e = g.grant
			g.mu.Unlock()
			e.Rate = 0
		}
		all[i] = e
	}
	s.putRates(now, s.t.perSecond(now), tags, all)
}

// put takes a grant of the pool.
func (g *tag) put(now int64, e sharing.TagGrant) {
	at := func(t time.Time, never int64) int64 {
		if t.IsZero() {
			return never
		}
		return g.t.gate.At(t)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tagBucket.Grant(e, at(e.Batch.From, 0), at(e.Batch.Until, never), at(e.Again, 0))
	g.review(now)
	if w := g.queue.First; w != nil {
		w.Attempt.Wake() // it may learn when more comes
	}
	g.retime(now)
	g.changed(now)
}

// A TagStatus describes one tag of a Throttle.
type TagStatus struct {
	// Tag is the tag; empty for all tags without a quota of their own, and for draws without a tag.
	Tag string
	// Used and Refused count tokens since the Throttle was made: granted less given back, and refused. Waiting is how many are
	// waited for at present.
	Used, Refused, Waiting int64
	// Demand is how many tokens per second it asked for here in the last second or two, and Use how many it used. Quota is the one in
	// force, with its defaults filled in; its Budgets must not be changed.
	Demand, Use float64
	Quota       Quota
	// InHand is how many tokens of its quota can be drawn now; -1: any number.
	InHand int64
	// Rate is how many tokens per second the tag should get here while others lack tokens. Target is how many it may use over the whole
	// pool. 0: not known yet, or it gets nothing. By names what holds Target there: "demand", "reserved", "total", "limiting", "class" or
	// "limit"; or the Reason for which it gets nothing, such as "pause", "frozen" or "budget".
	Rate, Target float64
	By           string
	// Limiting is the most that the tag may use here, in tokens per second, because the called service refuses its calls; 0: nothing limits
	// it. See Limit.Adaptive.
	Limiting float64
	// Cost is the average cost of the tag's recent calls, in tokens; 0: there is less than one call per second, which is too little to
	// tell. It is for people to look at.
	Cost float64
	// Spent and Budget are the used and the allowed tokens of the budget window that ends first; 0 without budgets.
	Spent, Budget int64
	// Shadowed counts tokens that were granted although the quota would have refused them; see Quota.Shadow.
	Shadowed int64
}

// configured returns the quota that a tag has by its name.
func (s *tagSet) configured(name string) (Quota, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	q, ok := s.quotas.Tags[name]
	return q, ok
}

// statusOf returns the status of the limit with that of its tags. The nil tagSet has none.
func (s *tagSet) statusOf(t *rateLimiter) Status {
	st := t.status()
	if s != nil {
		st.Tags = s.status()
		s.mu.RLock()
		defer s.mu.RUnlock()
		st.TagsGone.Used, st.TagsGone.Refused = s.gone.used, s.gone.refused
	}
	return st
}

// status returns the status of all tags that were in use: at most as many as are known.
func (s *tagSet) status() []TagStatus {
	var list []TagStatus
	stopped := s.stopped()
	for _, g := range s.all() {
		st := g.status()
		if r := g.stoppedBy(stopped); r != "" {
			st.Target, st.By = 0, string(r)
		}
		if st.Used != 0 || st.Refused > 0 || st.Waiting > 0 || st.Spent > 0 {
			list = append(list, st)
		}
	}
	return list
}

// stopped returns why the limit grants nothing at all, such as a pause; empty: it grants.
func (s *tagSet) stopped() Reason {
	if s.t.limit.Max == 0 {
		return ""
	}
	s.t.gate.Lock()
	defer s.t.gate.Unlock()
	switch r := s.t.reason(s.t.gate.Now(), s.t.bucket.Units(1)); r { //nolint:exhaustive // the others hold some callers back, or for a moment
	case ReasonPause, ReasonNoShare, ReasonFrozen, ReasonStoreLost, ReasonReplaced, ReasonUnreadable, ReasonClosed:
		return r
	}
	return ""
}

// stoppedBy returns why nothing at all is granted for the tag, given why the limit grants nothing; empty: it is granted tokens.
func (g *tag) stoppedBy(all Reason) Reason {
	if all != "" {
		return all
	}
	if _, held := g.set.pauseOf(g.name); held {
		return ReasonPause
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch _, why, _ := g.tagBucket.Due(g.t.gate.Now(), 1); why { //nolint:exhaustive // as above
	case ReasonNoShare, ReasonFrozen, ReasonStoreLost, ReasonBudget:
		return why
	}
	return ""
}

// capped names the total as the reason where the plan says that the tag's demand is met in full. The plan sees no demand above the total,
// and knows no total of a tag that matches a pattern.
func (g *tag) capped(st *TagStatus) {
	switch {
	case st.Quota.Shadow:
		return
	case st.Quota.Blocked:
		st.Target, st.By = 0, fairtags.ByTotal
		return
	case st.Quota.Total == 0:
		return
	}
	total := float64(st.Quota.Total) / st.Quota.Per.Seconds()
	st.Target = min(st.Target, total)
	held := g.hold()
	holds := held.reason == ReasonQuota && (held.callers > 0 || held.refused > 0)
	if st.By == fairtags.ByDemand && (holds || st.Demand >= 0.99*total) {
		st.Target, st.By = total, fairtags.ByTotal
	}
}

func (g *tag) status() TagStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.t.gate.Now()
	st := TagStatus{
		Tag: g.name, Used: g.used.Load(), Refused: g.refused.Load(), Waiting: g.waiting.Load(),
		Demand: g.demand, Use: g.use, Quota: *g.quota(),
		InHand: g.tagBucket.AtHand(now), Rate: g.grant.Rate, Target: g.grant.Target, By: g.grant.By, Shadowed: g.tagBucket.Shadowed(),
		Limiting: g.limiting(now, 0),
	}
	if st.Limiting > 0 && g.slow.pressed && st.By == fairtags.ByDemand {
		st.By = fairtags.ByLimiting // here; elsewhere it may have all that it asks for
	}
	if st.InHand == tagbucket.Endless {
		st.InHand = -1
	}
	st.Cost, _ = g.average.Cost()
	g.capped(&st)
	st.Spent, st.Budget = g.tagBucket.Spent(now)
	return st
}
