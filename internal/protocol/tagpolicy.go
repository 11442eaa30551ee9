package protocol

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A tagPolicy divides the limit by tags first and processors then (package fairtags). Every processor works it out
// from the same roster. The tags of a pattern count as one tag: their number has no bound, and the others do not know their names. It is a
// part of Processor, and keeps nothing that a copy could change.
type tagPolicy struct {
	terms []fairtags.Terms // by rising key
	index map[uint64]int   // of the keys in terms; never changed once it is made
	// limited are the terms of the last plan, with what the called service takes of each tag.
	limited []fairtags.Terms
	rows    []receivedRow
	held    []fairtags.Busy // guaranteed to this processor by the last plan
	plan    fairtags.Plan
	// elsewhere holds the rates that the others reported for terms when the plan was made.
	elsewhere []float64
	whole     []wholePart // of slots
	// planRows and uses are those of the last plan.
	planRows []fairtags.Row
	uses     [][]float64
	// capable: every live processor knows quotas. Until then tag buckets do not serve, because a processor without quotas may write a record
	// without them.
	capable bool
	closed  driver.Share // claimed by processes that are gone, as answered
}

// A receivedRow is the time of a processor's last new report.
type receivedRow struct {
	id    string
	turn  byte
	since time.Duration
}

// patternKey is the reported key of the tags of a pattern.
func patternKey(p *limit.QuotaPattern) uint64 { return busyKey(tagname.Key("\x00match\x00" + p.Tag)) } // no name has control characters

// termKey is the key of a tag in the terms and in reports.
func termKey(a *tagAccount, q *limit.Quotas) uint64 { return termKeyOf(a.Tag, a.key, a.pattern, q) }

// termKeyOf is termKey of a tag that has a key in stores, and the quota of a pattern, counted from 1, or of none.
func termKeyOf(tag string, key uint64, pattern int, q *limit.Quotas) uint64 {
	switch {
	case pattern > 0 && pattern <= len(q.Match):
		return patternKey(&q.Match[pattern-1])
	case tag == "":
		return 0
	}
	return busyKey(key)
}

// set makes the terms of quotas.
func (p *tagPolicy) set(q *limit.Quotas) {
	p.terms, p.index = []fairtags.Terms{termsOf(0, &q.Other)}, map[uint64]int{}
	p.limited, p.held, p.whole, p.elsewhere = nil, nil, nil, nil
	for name, own := range q.Tags {
		p.terms = append(p.terms, termsOf(busyKey(tagname.Key(name)), &own))
	}
	for i := range q.Match {
		t := termsOf(patternKey(&q.Match[i]), &q.Match[i].Quota)
		t.Reserved, t.Total = 0, math.Inf(1) // each tag has its own, which bounds its demand
		p.terms = append(p.terms, t)
	}
	slices.SortFunc(p.terms, func(a, b fairtags.Terms) int { return cmp.Compare(a.Key, b.Key) })
	p.terms = slices.CompactFunc(p.terms, func(a, b fairtags.Terms) bool { return a.Key == b.Key }) // practically never
	for i := range p.terms {
		p.index[p.terms[i].Key] = i
	}
}

func termsOf(key uint64, q *limit.Quota) fairtags.Terms {
	t := fairtags.Terms{
		Key: key, Reserved: perSecond(int64(q.Reserved), q.Per), Total: math.Inf(1), Limiting: math.Inf(1), Weight: float64(max(q.Weight, 1)),
	}
	if (q.Total > 0 || q.Blocked) && !q.Shadow {
		t.Total = perSecond(int64(q.Total), q.Per)
	}
	if q.Class == limit.ClassBatch {
		t.Class = 1
	}
	return t
}

// busy returns the demands of this processor's tags, by rising key of the terms. The accounts are the book's own.
//
// A tag that the called service limits asks for that limit only, so that the others get the rest. But it asks here for the part of its
// reserved rate that is asked for nowhere else: otherwise nobody would know that it is wanted.
func (p *tagPolicy) busy(b *tagBook) []busyTag {
	rates := make([]busyTag, len(p.terms))
	for i := range b.accounts {
		a := &b.accounts[i]
		if a.reported = 0; a.demand == 0 || a.exhausted() || a.Under {
			continue // it uses nothing, regardless of its demand, or another tag asks for it
		}
		k := p.index[termKey(a, &b.quotas)]
		t := &rates[k]
		if a.reported = a.wants; a.slow {
			reserved := p.terms[k].Reserved
			if k < len(p.elsewhere) {
				reserved -= p.elsewhere[k]
			}
			a.reported = min(a.demand, max(a.Limiting, reserved))
		}
		t.slow = a.slow && (t.slow || t.rate == 0)
		t.rate += a.reported
		t.used += min(a.uses, a.reported)
		t.limited = t.limited || hasBucket(&a.quota)
	}
	return p.keyed(rates)
}

// keyed returns the tags that ask for something, of a list in the order of the terms.
func (p *tagPolicy) keyed(rates []busyTag) []busyTag {
	out := rates[:0]
	for i, t := range rates {
		if t.rate > 0 {
			t.key, t.reserved = p.terms[i].Key, min(t.rate, p.terms[i].Reserved)
			out = append(out, t)
		}
	}
	return out
}

// receive notes which numbers have changed in the roster, and whether all processors know quotas.
func (p *tagPolicy) receive(now time.Duration, self string, roster []driver.RosterRow) {
	p.capable = len(roster) > 0
	rows := make([]receivedRow, 0, len(roster))
	for i := range roster {
		row := &roster[i]
		if row.ID == self {
			continue
		}
		r, ok := unpackBusy(row.Busy)
		p.capable = p.capable && ok
		h := receivedRow{row.ID, r.turn, now}
		if k, found := slices.BinarySearchFunc(p.rows, row.ID, byID); found && p.rows[k].turn == r.turn && ok {
			h.since = p.rows[k].since
		}
		rows = append(rows, h) // the roster is by rising ID
	}
	p.rows = rows
}

func byID(h receivedRow, id string) int { return strings.Compare(h.id, id) }

// silentAfter is how long a processor can report nothing new before its demand stops counting.
func silentAfter(interval time.Duration) time.Duration { return interval * 5 / 2 }

// divide works out the plan for a limit of most tokens per second, and returns the share of it that each processor of the roster wants.
func (p *tagPolicy) divide(now, interval time.Duration, most float64, roster []driver.RosterRow, self int, own []busyTag) []driver.Share {
	rows, slow, uses := make([]fairtags.Row, len(roster)+1), make([][]bool, len(roster)), make([][]float64, len(roster)+1)
	for i := range roster {
		row := &rows[i]
		row.Claim = roster[i].Claim.Fraction() * most
		if i == self {
			row.Held = p.held
			for _, t := range own {
				row.Busy, slow[i] = append(row.Busy, fairtags.Busy{Key: t.key, Rate: t.rate}), append(slow[i], t.slow)
				uses[i] = append(uses[i], t.used)
			}
			continue
		}
		r, ok := unpackBusy(roster[i].Busy)
		if !ok {
			row.Rest = roster[i].Demand.Fraction() * most // a processor without quotas
			continue
		}
		row.Busy, row.Rest, row.RestReserved, slow[i], uses[i] = r.tags, r.rest, r.restReserved, r.slow, r.uses
		k, found := slices.BinarySearchFunc(p.rows, roster[i].ID, byID)
		row.Silent = found && now-p.rows[k].since > silentAfter(interval)
	}
	rows[len(roster)] = fairtags.Row{Claim: p.closed.Fraction() * most, Silent: true}
	p.limited = p.limitedTerms(rows, slow)
	p.plan = fairtags.Divide(most, p.limited, rows, self)
	if self >= 0 && len(own) > maxBusyTags {
		p.plan.Wants = p.wantsAsReported(most, rows, self, own)
	}
	if self >= 0 {
		p.elsewhere = p.reportedElsewhere(rows, self)
		p.held, p.planRows, p.uses = p.plan.Held, rows, uses
	}
	wants := make([]driver.Share, len(roster))
	for i := range wants {
		wants[i] = shareOf(p.plan.Wants[i], most)
	}
	return wants
}

// wantsAsReported returns the wants of the rows by the report of self: its busiest tags, and the rest as sums. By its full knowledge, self
// would want another part than the others leave for it, and nobody would claim the difference.
func (p *tagPolicy) wantsAsReported(most float64, rows []fairtags.Row, self int, own []busyTag) []float64 {
	rows = slices.Clone(rows)
	r, _ := unpackBusy(packBusy(0, 0, 0, own))
	row := &rows[self]
	row.Busy, row.Rest, row.RestReserved = r.tags, r.rest, r.restReserved
	return fairtags.Divide(most, p.limited, rows, -1).Wants
}

// limitedTerms returns the terms with the limits of the called service, by the reports of rows. The limit of a tag that is slow wherever it
// has demand is the sum of its demands. Else it has none, because it may ask for more where it is not slow. slow is by row, in the order of
// its tags.
func (p *tagPolicy) limitedTerms(rows []fairtags.Row, slow [][]bool) []fairtags.Terms {
	sums, free := map[int]float64{}, map[int]bool{}
	for i := range rows {
		for k, b := range rows[i].Busy {
			at, known := p.index[b.Key]
			switch {
			case !known || rows[i].Silent || b.Rate == 0:
			case slow[i][k]:
				sums[at] += b.Rate
			default:
				free[at] = true
			}
		}
	}
	if len(sums) == 0 {
		return p.terms
	}
	terms := slices.Clone(p.terms)
	for at, sum := range sums {
		if !free[at] {
			terms[at].Limiting = sum
		}
	}
	return terms
}

// reportedElsewhere returns the rates that the other live rows report for each of the terms.
func (p *tagPolicy) reportedElsewhere(rows []fairtags.Row, self int) []float64 {
	sums := make([]float64, len(p.terms))
	for i := range rows {
		if i == self || rows[i].Silent {
			continue
		}
		for _, b := range rows[i].Busy {
			if at, known := p.index[b.Key]; known {
				sums[at] += b.Rate
			}
		}
	}
	return sums
}

// guaranteed is the rate of a tag that the plan guarantees this processor.
func (p *tagPolicy) guaranteed(key uint64) float64 {
	for _, b := range p.plan.Held {
		if b.Key == key {
			return b.Rate
		}
	}
	return 0
}

// shareOf returns a rate as a part of another, rounded down, but not by a floating-point error: the shares of rates that add up to most do
// not add up to more than Whole.
func shareOf(rate, most float64) driver.Share {
	if most <= 0 {
		return 0
	}
	return driver.Share(math.Floor(min(max(rate/most, 0)*(1+0x1p-40), 1) * float64(driver.Whole)))
}

// assign writes the plan into the accounts.
func (p *tagPolicy) assign(b *tagBook) {
	if len(p.plan.Own) != len(p.terms) || len(p.plan.Targets) != len(p.terms) {
		return
	}
	b.detach()
	members := make([][]*tagAccount, len(p.terms))
	for i := range b.accounts {
		a := &b.accounts[i]
		k := p.index[termKey(a, &b.quotas)]
		if a.Under {
			a.rate, a.reserves, a.target, a.by, a.held = a.wants, 0, p.plan.Targets[k].Bound, fairtags.ByDemand, false
			continue
		}
		members[k] = append(members[k], a)
	}
	for k, list := range members {
		t := &p.plan.Targets[k]
		asked := make([]float64, len(list))
		for i, a := range list {
			asked[i] = a.reported
		}
		for i, rate := range levelled(asked, p.plan.Own[k]) {
			list[i].rate = rate
		}
		reserved := p.guaranteed(p.terms[k].Key)
		for _, a := range list {
			a.reserves = reserved // only patterns have several, and they reserve nothing
			// Demand is reported up to the total only, so the policy may say that demand holds the tag there.
			total := perSecond(int64(a.quota.Total), a.quota.Per)
			a.target, a.by, a.held = t.Rate, t.By, t.By != fairtags.ByDemand || total > 0 && t.Rate >= total*0.99
			if t.By == fairtags.ByDemand && (a.pattern == 0 || a.cap() > 0) {
				a.target = t.Bound // it could have so much; nobody knows how much all tags of a pattern could have
			}
		}
	}
	b.news = true
}

// levelled divides a rate among tags, max-min fair by what each asks for. A single one has all of it.
func levelled(asked []float64, rate float64) []float64 {
	if len(asked) == 1 {
		return []float64{rate}
	}
	order, rates := make([]int, len(asked)), make([]float64, len(asked))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(asked[a], asked[b]) })
	for i, k := range order {
		rates[k] = min(asked[k], rate/float64(len(order)-i))
		rate -= rates[k]
	}
	return rates
}
