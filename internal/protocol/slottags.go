package protocol

import (
	"cmp"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A slotTags is what a tagging does for a limit on calls in flight. There are two divisions. The pool's slots are divided by the tags' demands as
// a rate is, a slot for a token per second. The total of each tag is divided by the store, which counts the slots of the tag at each processor
// (driver.TagSlots); the limiter's reports say how many it asks for. It is a value: a copy of it shares nothing that changes.
//
// Invariant: the limiter begins no call of a tag beyond what the store counts here of the tag. For that, what a report says is in use has
// taken effect before the request is made, and an answer takes effect before the lease that it brings.
type slotTags struct {
	most     int                    // how many calls the pool may have in flight; 0: it is a limit of tokens, and nothing here is used
	tags     []slotTag              // as in the limiter's last report
	sent     []slotTag              // those of the newest request, by rising key
	named    bool                   // it asked the store for slots of them
	outdated bool                   // its totals are not those in force: its answer has changed the quotas
	settled  time.Duration          // when all others will have reported what they used without asking the store
	grants   []sharing.TagSlotGrant // that the limiter has not received
}

// A slotTag is the limiter's report on one tag, and the pool's answer to it.
type slotTag struct {
	sharing.TagSlotReport

	key    uint64  // in the store
	term   uint64  // in the terms of the policy
	rate   float64 // how many of the pool's slots it asks for
	answer driver.TagGrant
}

// slotPer is the period of quotas of slots, so that rates per second are numbers of slots.
const slotPer = time.Second

// slotQuotas returns quotas, which are its own, without what only quotas of tokens have.
func slotQuotas(q limit.Quotas) limit.Quotas {
	ofSlots := func(q limit.Quota) limit.Quota {
		q.Per, q.Budgets, q.Hard = slotPer, nil, false
		return q
	}
	for name, own := range q.Tags {
		q.Tags[name] = ofSlots(own)
	}
	for i := range q.Match {
		q.Match[i].Quota = ofSlots(q.Match[i].Quota)
	}
	q.Other = ofSlots(q.Other)
	return q
}

// allKnowQuotas reports whether all other processors know quotas of calls in flight. One that reports no limit yet is about to get its limiter.
func (c *core) allKnowQuotas() bool {
	for i := range c.Answer.Roster {
		row := &c.Answer.Roster[i]
		if row.ID != c.Cfg.ID && quotaSumOf(row.Busy) == 0 && reportedLimitOf(&c.notes[i]) != (reportedLimit{}) {
			return false
		}
	}
	return true
}

// SlotPlace returns what a limiter needs to know for its report on slots of tags; see sharing.SlotTagHolder.
func (p *Processor) SlotPlace() (turn int64, rank, live int) {
	rank, _ = slices.BinarySearchFunc(p.Answer.Roster, p.Cfg.ID, func(r driver.RosterRow, id string) int { return cmp.Compare(r.ID, id) })
	return p.turn(), rank, max(len(p.Answer.Roster), 1)
}

// ReportSlots takes the reports of a limiter on calls in flight on its tags, before Yield.
func (p *Processor) ReportSlots(now time.Duration, reports []sharing.TagSlotReport) {
	p.Tick(now)
	if p.tags.slots.most > 0 {
		p.tags.observeSlots(reports)
		p.split.wants = nil
	}
}

// observeSlots takes the limiter's reports on its tags.
func (t *tagging) observeSlots(reports []sharing.TagSlotReport) {
	number := func(n int64) int64 { return min(max(n, 0), wire.MaxTokens) }
	tags := make([]slotTag, len(reports))
	for i, r := range reports {
		r.Running, r.Demand, r.Waiting = number(r.Running), number(max(r.Demand, r.Running)), number(r.Waiting)
		r.Total, r.InUse, r.Wanted = number(r.Total), number(r.InUse), number(r.Wanted)
		quota, pattern := t.book.find(r.Tag)
		g := slotTag{TagSlotReport: r, key: tagname.Key(r.Tag)}
		g.term = termKeyOf(r.Tag, g.key, pattern, &t.book.quotas)
		if quota.Blocked && !quota.Shadow {
			g.Demand = r.Running
		}
		tags[i] = g
	}
	slices.SortStableFunc(tags, func(a, b slotTag) int { return cmp.Compare(a.key, b.key) })
	t.slots.tags = tags
	t.own, t.most = t.slotBusy(tags, func(g *slotTag) int64 { return g.InUse }), float64(t.slots.most)
}

// slotBusy returns what tags ask for of the pool's slots: each its demand, but no more than it may have here of its total. Nobody could use
// the rest.
func (t *tagging) slotBusy(tags []slotTag, has func(*slotTag) int64) []busyTag {
	rates := make([]busyTag, len(t.policy.terms))
	for i := range tags {
		g := &tags[i]
		switch g.rate = float64(g.Demand); {
		case g.Under:
			g.rate = 0 // another tag asks for the same slots
		case g.Total > 0:
			g.rate = float64(min(g.Demand, max(has(g), g.Running)))
		}
		b := &rates[t.policy.index[g.term]]
		b.rate, b.used = b.rate+g.rate, b.used+min(float64(g.Running), g.rate)
		b.limited = b.limited || g.Total > 0
	}
	return t.policy.keyed(rates)
}

// reportSlots puts what the processor uses and wants of the tags' totals into the next request.
func (t *tagging) reportSlots(c *core, req *request) {
	s := &t.slots
	s.sent, s.named, s.outdated = t.takeParts(c, req.at), t.policy.capable, false
	if !s.named {
		return
	}
	req.TagSlots = s.ask(c.seq)
	if slices.ContainsFunc(req.Documents, func(d driver.DocumentReport) bool { return d.Name == quotaDocument }) {
		req.TagSlotsBy = quotaDocument
	}
}

// takeParts returns the reported tags. If the store is not asked for slots of them, each gets its part of its total here, and has it in use.
func (t *tagging) takeParts(c *core, now time.Duration) []slotTag {
	s := &t.slots
	tags := slices.Clone(s.tags)
	if !t.alone(c) {
		return tags
	}
	s.grants, s.settled = nil, now+c.Lease
	parts := t.slotParts(tags)
	for i := range tags {
		g := &tags[i]
		out := sharing.TagSlotGrant{Tag: g.Tag, Part: parts[i]}
		t.policy.guaranteedSlots(g.term, &out)
		if g.Total > 0 {
			out.Bound, out.Granted = true, g.part(c.held)
			g.InUse = max(g.InUse, out.Granted)
		}
		s.grants = append(s.grants, out)
	}
	return tags
}

// part is how many slots of the tag's total go with a share of the pool.
func (g *slotTag) part(share driver.Share) int64 {
	return int64(sharing.SlotsOf(int64(share), int(g.Total)))
}

// ask returns what a request asks of the totals. If there are too many tags, those in use come first, and the others take turns.
func (s *slotTags) ask(seq uint64) (asks []driver.TagSlots) {
	for i := range s.sent {
		g := &s.sent[i]
		if g.InUse == 0 && (g.Demand == 0 || g.Total == 0) {
			continue
		}
		a := driver.TagSlots{Key: g.key, InUse: g.InUse, Wanted: g.Wanted, Demand: g.Demand, Total: g.Total}
		if last := len(asks) - 1; last >= 0 && asks[last].Key == a.Key { // names with one hash have one total
			b := &asks[last]
			a.InUse, a.Wanted = min(a.InUse+b.InUse, wire.MaxTokens), min(a.Wanted+b.Wanted, wire.MaxTokens)
			a.Demand, a.Total = min(a.Demand+b.Demand, wire.MaxTokens), cmp.Or(min(a.Total, b.Total), a.Total, b.Total)
			asks = asks[:last]
		}
		asks = append(asks, a)
	}
	if len(asks) <= wire.MaxTagSlots {
		return asks
	}
	slices.SortFunc(asks, func(a, b driver.TagSlots) int {
		turn := seq * golden
		return cmp.Or(cmp.Compare(min(b.InUse, 1), min(a.InUse, 1)), cmp.Compare(a.Key^turn, b.Key^turn))
	})
	asks = asks[:wire.MaxTagSlots]
	slices.SortFunc(asks, func(a, b driver.TagSlots) int { return cmp.Compare(a.Key, b.Key) })
	return asks
}

// takeSlots takes the answer's grants of the totals, and asks for as many of the pool's slots. There are no more than were in use if the totals
// have changed, or the store may not know yet what others use.
func (t *tagging) takeSlots(c *core, now time.Duration, changed bool) {
	s := &t.slots
	s.outdated = changed
	noMore := changed || now < s.settled
	s.sent = slices.Clone(s.sent)
	left := driver.TagGrant{}
	for i := range s.sent {
		g := &s.sent[i]
		if i == 0 || s.sent[i-1].key != g.key {
			left = grantOf(g.key, c.Answer.TagSlots)
		}
		g.answer = left
		if i+1 < len(s.sent) && s.sent[i+1].key == g.key || noMore { // else the rest is for the other name
			g.answer.Granted = min(left.Granted, g.InUse)
		}
		left.Granted -= g.answer.Granted
	}
	if s.named {
		t.own = t.slotBusy(s.sent, func(g *slotTag) int64 { return g.answer.Granted })
	}
}

// grantOf returns the store's grant of one tag.
func grantOf(key uint64, grants []driver.TagGrant) driver.TagGrant {
	i, ok := slices.BinarySearchFunc(grants, key, func(g driver.TagGrant, key uint64) int { return cmp.Compare(g.Key, key) })
	if !ok {
		return driver.TagGrant{}
	}
	return grants[i]
}

// grantSlots puts the newest answer in force for the limiter, with the plan that rests on it. It returns how soon the next request should go
// out: early ones have the bound of extraSyncs, and there are none if the processor is patient.
func (t *tagging) grantSlots(c *core, now time.Duration, patient bool) urgency {
	s := &t.slots
	if s.most == 0 {
		return urgencyNone
	}
	s.grants = nil
	early, alone, parts := s.outdated, t.alone(c), t.slotParts(s.sent)
	for i := range s.sent {
		g := &s.sent[i]
		out := sharing.TagSlotGrant{Tag: g.Tag, Part: parts[i]}
		t.policy.guaranteedSlots(g.term, &out)
		switch {
		case g.Total == 0:
		case alone:
			out.Bound, out.Granted = true, g.part(c.held)
		case s.named:
			out.Bound, out.Granted, out.Claimed, out.Demand = true, g.answer.Granted, g.answer.Claimed, g.answer.Demand
			early = early || c.Answer.Frozen == 0 && g.soon()
		default:
			continue // it keeps what it has until the store is asked
		}
		s.grants = append(s.grants, out)
	}
	if early && !patient && t.extra.take(now, c.Interval()) {
		return urgencyFast
	}
	return urgencyNone
}

// soon reports whether another request soon can bring the tag more slots here, or free some that others lack.
func (g *slotTag) soon() bool {
	out := &g.answer
	claim := max(g.InUse, out.Granted)
	if g.Waiting > 0 && out.Granted < g.Demand && (out.Granted < g.Wanted || claim+out.Claimed < g.Total) {
		return true // others hold more than their part, or nobody holds it
	}
	// By demand, rounded up, it is due as many; see package fairslots.
	demand := g.Demand + min(out.Demand, wire.MaxTokens)
	due := (g.Total*g.Demand + demand - 1) / max(demand, 1)
	return claim+out.Claimed >= g.Total && out.Claimed < out.Demand && claim > max(due, g.Running)
}

// slotParts returns the slots that tags should have here by the last plan. Tags of a pattern share those of the pattern.
func (t *tagging) slotParts(tags []slotTag) []float64 {
	parts := make([]float64, len(tags))
	if len(t.policy.plan.Own) != len(t.policy.terms) {
		return parts
	}
	members := map[uint64][]int{}
	for i := range tags {
		members[tags[i].term] = append(members[tags[i].term], i)
	}
	for term, list := range members {
		k, known := t.policy.index[term]
		if !known {
			continue // the quotas have changed since
		}
		asked := make([]float64, len(list))
		for n, i := range list {
			asked[n] = tags[i].rate
		}
		for n, rate := range levelled(asked, t.policy.plan.Own[k]) {
			parts[list[n]] = rate
		}
	}
	return parts
}
