package consensus

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A tagging is all that a processor does with tags. It is a part of Processor.
type tagging struct {
	on         bool         // the limiter has quotas
	tills      bool         // a tag may be short of tokens of its own
	configured limit.Quotas // with their defaults
	per        time.Duration
	hash       uint32 // of the configured quotas

	book   tagBook
	extra  extraSyncs
	policy tagPolicy
	own    []busyTag // the demands of this processor's tags
	most   float64   // the limit in force, in tokens per second

	version    Version // of the document that was read last
	changes    QuotaChanges
	unreadable error   // why the document cannot be read; the previous changes stay
	unchanged  float64 // the configured reserved rates of tags without changes, in tokens per second
	spent      spentReader
	fresh      bool          // the quotas in force have changed since the last call of Quotas
	rationed   time.Duration // when tags last got tokens without the store
}

// extraSyncs bounds the early requests of tags that are short of tokens: one per interval, and a few saved up, so that quiet tags do not
// wait. A tag that is always short does not multiply the store's work.
type extraSyncs struct {
	from time.Duration // since when they are saved up
}

// maxExtraSyncs is how many can be saved up.
const maxExtraSyncs = 5

// take takes one, if there is one.
func (e *extraSyncs) take(now, interval time.Duration) bool {
	e.from = max(e.from, now-maxExtraSyncs*interval)
	if now-e.from < interval {
		return false
	}
	e.from += interval
	return true
}

// SetQuotas sets the limiter's configured quotas, which must be valid and have their defaults filled in. nil, as before the first call:
// tags have none. Call it after SetLimit.
func (p *Processor) SetQuotas(q *limit.Quotas) {
	t := &p.tags
	t.on = q != nil && p.ceiling.limit.Max > 0
	p.load.fixed = t.on // tokens of tags are drawn for a usual interval
	if !t.on {
		return
	}
	t.configured, t.per = *q, p.ceiling.limit.Per
	t.hash = hashOfQuotas(q)
	t.load(p.ceiling.docs.Find(quotaDocument))
	t.apply()
	t.most = p.rateInForce(0)
	p.split.wants = nil
	if p.seq > 0 {
		p.urgency = urgencyNow
	}
}

// apply puts the configured quotas in force, with the changes of the pool's document.
func (t *tagging) apply() {
	if !t.on {
		return
	}
	q := t.changes.over(t.configured, t.per)
	t.book.setQuotas(q, t.changesVersion())
	t.policy.set(&q)
	t.tills = hasTill(&q.Other) || slices.ContainsFunc(q.Match, func(p limit.QuotaPattern) bool { return hasTill(&p.Quota) })
	for _, own := range q.Tags {
		t.tills = t.tills || hasTill(&own)
	}
	t.unchanged, t.fresh = t.changes.leaves(t.configured).ReservedRate(t.per), true
}

// changesVersion is the version of the changes in force; 0: there are none.
func (t *tagging) changesVersion() Version { return t.changes.Version }

// load reads a new version of the pool's document, and reports whether the quotas have changed.
func (t *tagging) load(held pooldoc.Held) bool {
	if held.Version == t.version {
		return false
	}
	t.version = held.Version
	next, err := quotaDoc.Read(held.Document)
	if t.unreadable = err; err != nil {
		return false
	}
	next.Version = held.Version
	t.changes = next
	return true
}

// rateInForce is the limit in force at now, in tokens per second.
func (p *Processor) rateInForce(now time.Duration) float64 {
	if per := p.ceiling.limit.Per; per > 0 {
		return p.ceiling.tokens(now, 0) / per.Seconds()
	}
	return 0
}

// ReportTags takes the limiter's reports on its tags, before the next Request. Tokens given back must have left its hands.
func (p *Processor) ReportTags(now time.Duration, reports []limit.TagReport) {
	t := &p.tags
	if !t.on {
		return
	}
	t.book.report(now, p.tagInterval(), p.ownTills(), reports)
	t.own, t.most = t.policy.busy(&t.book), p.rateInForce(now)
	p.split.wants = nil
}

// ownTills reports whether this processor gives its tags tokens without asking the store.
func (p *Processor) ownTills() bool {
	return p.degraded || p.state == StateHolding && !p.tags.policy.capable
}

// tagInterval is the time between two grants to tags: that between syncs. If this processor gives its tags tokens itself, it is the usual
// one, however seldom it asks a store that does not answer.
func (p *Processor) tagInterval() time.Duration {
	if p.ownTills() {
		return driver.Interval(p.lease, p.answer.Live)
	}
	return p.interval()
}

// tagShare is this processor's part of the pool.
func (p *Processor) tagShare(now time.Duration) float64 {
	if p.Issuing(now) {
		return 1 / float64(max(p.answer.Live, 1))
	}
	return p.held.Fraction()
}

// tellTags puts the reports and draws of tags into the next request.
func (p *Processor) tellTags(now time.Duration, req *driver.Request) {
	t := &p.tags
	if !t.on {
		return
	}
	req.Busy = packBusy(byte(p.seq), t.hash, t.unchanged, t.own)
	if len(t.policy.plan.Own) > 0 {
		t.policy.tell(&t.book) // the plan is as new as the demand
	}
	p.grantTags(now)
	t.book.carried = nil
	if !p.ownTills() && t.policy.capable && p.state != StateReplaced {
		frozen := p.frozen > now
		t.book.barred = frozen && p.held == 0 && !p.Issuing(now) // tokens of a tag would run out unused
		req.Draws = t.book.draws(now, p.interval(), p.answer.Live, frozen)
	}
}

// grantTags gives tags tokens without asking the store, if that does not answer or has no till for them.
func (p *Processor) grantTags(now time.Duration) {
	t := &p.tags
	alone := p.ownTills()
	if !t.on || !alone && p.state != StateHolding {
		return
	}
	t.rationed = now
	which := func(a *tagAccount) bool { return alone || a.lack == driver.LackFull && len(a.quota.Budgets) == 0 }
	t.book.grantLocally(now, p.tagInterval(), p.until, p.answer.Live, p.tagShare(now), which)
}

// RationDue reports whether Ration is due. Tags that get tokens without the store get them once per usual interval, although requests to a
// store that does not answer are further apart.
func (p *Processor) RationDue(now time.Duration) bool {
	p.Tick(now)
	return p.tags.on && p.degraded && now-p.tags.rationed >= p.tagInterval()
}

// Ration gives tags tokens without the store. Call ReportTags before it, and no Request in between; the newest request has been answered or
// has failed.
func (p *Processor) Ration(now time.Duration) { p.grantTags(now) }

// takeTags takes the parts of an answer about tags.
func (p *Processor) takeTags(now time.Duration, a *driver.Answer) {
	t := &p.tags
	held := p.ceiling.docs.Find(quotaDocument)
	if t.load(held) {
		t.apply()
	}
	if !t.on {
		return
	}
	knew := t.policy.capable
	t.spent.take(p.ceiling.docs.Find(spentDocument), &t.book)
	t.policy.hear(now, p.cfg.ID, a.Roster)
	t.book.take(now, p.sent.at, driver.Interval(a.Lease, a.Live), a)
	t.most = p.rateInForce(now)
	if !knew && t.policy.capable && len(t.own) > 0 && p.urgency == urgencyNone {
		p.urgency = urgencyFast // the tills can be asked only now
	}
}

// tagWants returns the shares that processors of the roster want by the demand of their tags; ok is false when tags have no say.
func (p *Processor) tagWants(now time.Duration, rows []RosterRow, self int) (wants []Share, ok bool) {
	t := &p.tags
	if !t.on || t.most <= 0 || self < 0 {
		return nil, false
	}
	wants = t.policy.divide(now, p.interval(), t.most, rows, self, t.own)
	t.policy.tell(&t.book)
	return wants, true
}

// TagGrants returns the grants for the limiter's tags that are new at now, nil if there are none. base is the origin of local time.
func (p *Processor) TagGrants(base time.Time, now time.Duration) []limit.TagGrant {
	if !p.tags.on {
		return nil
	}
	return p.tags.book.grants(base, now)
}

// Quotas returns the quotas in force. fresh says that they differ from those that the last call returned.
func (p *Processor) Quotas() (q limit.Quotas, fresh bool) {
	fresh, p.tags.fresh = p.tags.fresh, false
	return p.tags.book.quotas, fresh
}

// TagKeep is how long tokens of a tag must still be good for the limiter to keep them at a report. Tokens that lapse before the next
// request are lost to everybody, unless they are given back. Those drawn by the last regular request are kept, so that the hand is not
// empty until the answer.
func (p *Processor) TagKeep() time.Duration { return p.tagInterval() * 19 / 20 }

// pushTags gives the holder the quotas and the grants that it does not have yet. m.mu is held.
func (m *Member) pushTags() {
	if m.holder == nil {
		return
	}
	if q, fresh := m.p.Quotas(); fresh {
		if h, ok := m.holder.(sharing.QuotaHolder); ok {
			h.SetQuotas(q)
		}
	}
	if grants := m.p.TagGrants(m.base, m.now()); grants != nil {
		m.holder.GrantTags(grants)
	}
}
