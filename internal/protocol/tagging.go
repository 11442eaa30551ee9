package protocol

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A tagging is the part of a processor that does all about tags.
type tagging struct {
	on         bool          // the limiter has quotas
	buckets    bool          // a tag may be short of tokens of its own
	configured limit.Quotas  // with their defaults: those of the file, or else opened
	opened     limit.Quotas  // the limiter's own, with their defaults
	file       *limit.Quotas // those of the document "file"; nil: it has none
	per        time.Duration
	hash       uint32 // of the configured quotas

	book   tagBook
	slots  slotTags
	extra  extraSyncs
	policy tagPolicy
	own    []busyTag // the demands of this processor's tags
	most   float64   // the limit in force, in tokens per second, or in slots

	version    driver.Version // of the document that was read last
	changes    QuotaChanges
	ends       quotaEnding
	unreadable error   // why the document cannot be read; the previous changes stay
	unchanged  float64 // the configured reserved rates of tags without changes, in tokens per second
	spent      spentReader
	fresh      bool          // the quotas in force have changed since the last call of Quotas
	rationed   time.Duration // when tags last got tokens without the store
	retired    bool          // the processor is about to leave; see Retire
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

// pokeEvery is how often callers may bring a request forward: with slots, as often as makes 64 requests a second of the pool. The first call of
// a tag with a total waits for one, and calls may be short. A limiter on slots reports only callers that are new to the pool.
func (t *tagging) pokeEvery(c *core) time.Duration {
	if t.slots.most == 0 {
		return c.Interval()
	}
	return min(c.Interval(), max(time.Second/10, time.Duration(c.Answer.Live)*time.Second/64))
}

// configure sets the limiter's quotas.
func (t *tagging) configure(terms *sharing.Terms) {
	t.slots = slotTags{}
	if t.on = terms.Quotas != nil && (terms.Ceiling.Limit.Max > 0 || terms.Slots > 0); !t.on {
		return
	}
	t.opened, t.per = *terms.Quotas, terms.Ceiling.Limit.Per
	if terms.Ceiling.Limit.Max == 0 {
		t.slots.most, t.per = terms.Slots, slotPer
	}
	t.apply()
}

// takeFile reads the quotas of a new document "file". One that cannot be read changes nothing.
func (t *tagging) takeFile(doc driver.Document) (changed bool) {
	file, err := fileDoc.Read(doc)
	if err != nil || reflect.DeepEqual(file.Quotas, t.file) {
		return false
	}
	t.file = file.Quotas
	return true
}

// apply puts the configured quotas in force, with the changes of the pool's document.
func (t *tagging) apply() {
	if !t.on {
		return
	}
	if t.configured = t.opened; t.file != nil {
		t.configured = t.file.WithDefaults(t.per)
	}
	t.hash = hashOfQuotas(&t.configured)
	q := t.changes.over(t.configured, t.per)
	if t.slots.most > 0 {
		q = slotQuotas(q)
	}
	t.book.setQuotas(q, t.changesVersion())
	t.policy.set(&q)
	t.buckets = hasBucket(&q.Other) || slices.ContainsFunc(q.Match, func(p limit.QuotaPattern) bool { return hasBucket(&p.Quota) })
	for _, own := range q.Tags {
		t.buckets = t.buckets || hasBucket(&own)
	}
	t.unchanged, t.fresh = t.changes.leaves(t.configured).ReservedRate(t.per), true
}

// changesVersion is the version of the changes in force; 0: there are none.
func (t *tagging) changesVersion() driver.Version { return t.changes.Version }

// load reads a new version of the pool's document, and reports whether the quotas have changed.
func (t *tagging) load(m moment, held pooldoc.Held) bool {
	if held.Version == t.version {
		return false
	}
	t.version = held.Version
	next, err := quotaDoc.Read(held.Document)
	if t.unreadable = err; err != nil {
		return false
	}
	next.Version = held.Version
	t.changes, t.ends = next, endsOf(m, &next)
	return true
}

func (t *tagging) restart() { t.book.forget() } // a clone may hold the same tokens

// observe takes the limiter's reports on its tags. The limit in force is most tokens per second.
func (t *tagging) observe(c *core, now time.Duration, most float64, reports []sharing.TagReport) {
	t.book.report(now, t.interval(c), t.alone(c), reports)
	t.own, t.most = t.policy.busy(&t.book), most
}

// alone reports whether this processor gives its tags tokens without asking the store.
func (t *tagging) alone(c *core) bool {
	return c.degraded || c.state == StateHolding && !t.policy.capable
}

// interval is the time between two grants to tags: that between syncs. If this processor gives its tags tokens itself, it is the usual
// one, however seldom it asks a store that does not answer.
func (t *tagging) interval(c *core) time.Duration {
	if t.alone(c) {
		return wire.Interval(c.Lease, c.Answer.Live)
	}
	return c.Interval()
}

// soon is the time until the tags of this processor have their parts of the limit: it reports their demand in one request, and the others
// give way in theirs. It is 0 without quotas.
func (t *tagging) soon(c *core) time.Duration {
	if !t.on {
		return 0
	}
	return 2 * c.Interval()
}

// share is this processor's part of the pool.
func (*tagging) share(c *core, now time.Duration) float64 {
	if c.isIssuing(now) {
		return 1 / float64(max(c.Answer.Live, 1))
	}
	return c.held.Fraction()
}

// report puts the reports and draws of tags into the next request.
func (t *tagging) report(c *core, now time.Duration, req *request) {
	if !t.on {
		return
	}
	if next, due := t.stepChanges(c, now); due {
		req.Documents = propose(req.Documents, &quotaDoc, &c.docs, next, uint16(req.Nonce))
	}
	req.note.standing.capped = t.cappedPatterns()
	req.Busy = packBusy(byte(c.seq), t.hash, t.unchanged, t.own)
	if t.slots.most > 0 {
		t.reportSlots(c, req)
		return
	}
	t.policy.assign(&t.book) // the plan is as new as the demand
	t.ration(c, now)
	t.book.carried = nil
	if !t.alone(c) && t.policy.capable && c.state != StateReplaced {
		frozen := c.frozen > now
		t.book.barred = t.retired || frozen && c.held == 0 && !c.isIssuing(now) // tokens of a tag would run out unused
		t.book.unsure = len(c.unanswered) > 0
		req.Draws = t.book.draws(now, c.Interval(), c.Answer.Live, frozen)
	}
}

// ration gives tags tokens without asking the store, if that does not answer or has no tag bucket for them.
func (t *tagging) ration(c *core, now time.Duration) {
	alone := t.alone(c)
	if !t.on || t.slots.most > 0 || t.retired || !alone && c.state != StateHolding {
		return
	}
	t.rationed = now
	which := func(a *tagAccount) bool { return alone || a.lack == driver.LackFull && len(a.quota.Budgets) == 0 }
	t.book.grantLocally(now, t.interval(c), c.until, c.Answer.Live, t.share(c, now), which)
}

// take takes the parts of an answer about tags.
func (t *tagging) take(c *core, now time.Duration, a *driver.Answer) urgency {
	changed := t.load(c.clock.moment(now), c.docs.Find(quotaDocument))
	if slices.Contains(c.changed, fileDocument) && t.takeFile(c.docs.Find(fileDocument).Document) {
		changed = true
	}
	if changed {
		t.apply()
	}
	if !t.on {
		return urgencyNone
	}
	knew := t.policy.capable
	t.policy.receive(now, c.Cfg.ID, a.Roster)
	t.policy.closed = a.Closed
	if t.slots.most > 0 {
		t.policy.capable = c.allKnowQuotas()
		t.takeSlots(c, now, changed)
	} else {
		t.spent.take(c.docs.Find(spentDocument), &t.book)
		t.book.take(now, c.sent.at, wire.Interval(a.Lease, a.Live), a)
	}
	if !knew && t.policy.capable && len(t.own) > 0 {
		return urgencyFast // the store can be asked only now
	}
	return urgencyNone
}

// wants returns the shares that processors of the roster want by the demand of their tags; ok is false when tags have no say.
func (t *tagging) wants(c *core, now time.Duration, rows []driver.RosterRow, self int) (wants []driver.Share, ok bool) {
	if !t.on || t.most <= 0 || self < 0 {
		return nil, false
	}
	wants = t.policy.divide(now, c.Interval(), t.most, rows, self, t.own)
	if t.slots.most > 0 {
		return t.policy.reserveWhole(wants, rows, t.most, self, c.turn()), true
	}
	t.policy.assign(&t.book)
	return wants, true
}

// floors returns the shares that the processors of the roster need for what the last plan guarantees.
func (t *tagging) floors() []driver.Share {
	floors := make([]driver.Share, len(t.policy.plan.Guaranteed))
	for i, rate := range t.policy.plan.Guaranteed {
		floors[i] = shareOf(rate, t.most)
	}
	return floors
}

// token is the share that earns one token in an interval.
func (t *tagging) token(interval time.Duration) driver.Share {
	return shareOf(1/interval.Seconds(), t.most)
}

// lower reduces the rates of this processor's tags in the last plan: they keep their guarantees, and a part of the rest.
func (t *tagging) lower(part float64) {
	own := slices.Clone(t.policy.plan.Own)
	for k, rate := range own {
		kept := min(rate, t.policy.guaranteed(t.policy.terms[k].Key))
		own[k] = kept + (rate-kept)*part
	}
	t.policy.plan.Own = own
	t.policy.assign(&t.book)
}

// rateInForce is what the limit in force at now grants in the long run, in tokens per second. For calls in flight it is the number of slots.
func (p *Processor) rateInForce(now time.Duration) float64 {
	if p.tags.slots.most > 0 {
		return float64(p.tags.slots.most)
	}
	if per := p.ceiling.limit.Per; per > 0 {
		return p.ceiling.tokens(&p.core, now, 0) / per.Seconds() * cmp.Or(p.ceiling.law.Config.Granted, 1)
	}
	return 0
}

// reportTags takes the limiter's reports on its tags.
func (p *Processor) reportTags(now time.Duration, reports []sharing.TagReport) {
	if p.tags.on && p.tags.slots.most == 0 {
		p.tags.observe(&p.core, now, p.rateInForce(now), reports)
		p.split.wants = nil
	}
}

// RationDue reports whether Ration is due. Tags that get tokens without the store get them once per usual interval, although requests to a
// store that does not answer are further apart.
func (p *Processor) RationDue(now time.Duration) bool {
	p.Tick(now)
	return p.tags.on && p.tags.slots.most == 0 && p.degraded && now-p.tags.rationed >= p.tags.interval(&p.core)
}

// Ration gives tags tokens without the store. reports are as for Yield. The newest request has been answered or has failed.
func (p *Processor) Ration(now time.Duration, reports []sharing.TagReport) {
	p.reportTags(now, reports)
	p.tags.ration(&p.core, now)
}

// TagKeep is how long tokens of a tag must still be good for the limiter to keep them at a report. Tokens that lapse before the next
// request are lost to everybody, unless they are given back. Those drawn by the last regular request are kept, so that the hand is not
// empty until the answer. Before it leaves, the limiter keeps none.
func (p *Processor) TagKeep() time.Duration {
	if p.tags.retired {
		return wire.MaxReach
	}
	return p.tags.interval(&p.core) * 19 / 20
}
