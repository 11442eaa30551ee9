package protocol

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A TagView is how a processor sees one of its own tags. Rates are in tokens per second.
type TagView struct {
	// Tag is empty for all tags without a quota of their own.
	Tag string
	// Demand is the tag's demand at this processor, and Used its use, over the last one or two intervals. Limiting is the most it may use
	// there because the called service refuses its calls; 0: nothing limits it.
	Demand, Used, Limiting float64
	// Target is how much it may use over the whole pool, and By says why not more: "demand", "reserved", "total", "limiting", "class",
	// "limit" or "budget".
	Target float64
	By     string
	// InHand is how many tokens the tag had when the newest request was made. Spent and Budget are the tokens used and allowed in the
	// budget window that ends first; 0 without budgets.
	InHand, Spent, Budget int64
	// Lacks is why the store gave less than was asked for; empty when it gave all.
	Lacks limit.Reason
	// Named says that it has a quota by its name, or is all tags without one. The other tags go by a pattern, and the fields below are for
	// all tags of the pattern together.
	Named bool
	// Target is worked out from these; 0: none. Asked is the demand over the whole pool, as far as processors report it. Reserved and Total
	// are those of the quota in force. Taken is how much the called service takes of the tag over the whole pool. Rate is the part of
	// Target that this processor should get while others lack tokens.
	Asked, Reserved, Total, Taken, Rate float64
	Weight                              int
	Class                               limit.Class
}

// inUse reports whether the tag asks for something, or has something.
func (v *TagView) inUse() bool { return v.Demand > 0 || v.Used > 0 || v.InHand > 0 || v.Lacks != "" }

// TagViews lists this processor's tags by name.
func (p *Processor) TagViews() (out []TagView) {
	if !p.tags.on {
		return nil
	}
	for i := range p.tags.book.accounts {
		a := &p.tags.book.accounts[i]
		v := TagView{Tag: a.Tag, Demand: a.demand, Used: a.uses, Limiting: a.Limiting, Target: a.target, By: a.by, InHand: a.InHand, Lacks: reasonOf(a.lack)}
		if total := a.cap(); total > 0 {
			if v.Target = min(v.Target, total); v.By == fairtags.ByDemand && a.capped() {
				v.By = fairtags.ByTotal // no demand above it is reported
			}
		}
		if a.quota.Blocked && !a.quota.Shadow {
			v.Target, v.By = 0, fairtags.ByTotal
		}
		if v.Spent, v.Budget = a.nearest(); a.exhausted() {
			v.Target, v.By = 0, "budget"
		}
		p.tags.inputs(a, &v)
		out = append(out, v)
	}
	return out
}

// cap is the total that holds the tag, in tokens per second; 0: none does.
func (a *tagAccount) cap() float64 {
	if a.quota.Shadow {
		return 0
	}
	return perSecond(int64(a.quota.Total), a.quota.Per)
}

// capped reports whether the tag uses all of its total, here or with others.
func (a *tagAccount) capped() bool {
	total := a.cap()
	return total > 0 && (a.demand >= 0.99*total || a.Waiting > 0 && a.lack == driver.LackTotal)
}

// cappedPatterns returns the keys of patterns with a tag that uses all of its total.
func (t *tagging) cappedPatterns() (keys [maxCapped]uint64) {
	n := 0
	for i := range t.book.accounts {
		a := &t.book.accounts[i]
		if n == maxCapped {
			break
		}
		if a.pattern == 0 || !a.capped() {
			continue
		}
		if key := termKey(a, &t.book.quotas); !slices.Contains(keys[:n], key) {
			keys[n] = key
			n++
		}
	}
	return keys
}

// inputs fills in the inputs of a tag's target.
func (t *tagging) inputs(a *tagAccount, v *TagView) {
	v.Named, v.Rate, v.Weight, v.Class = a.pattern == 0, a.rate, a.quota.Weight, a.quota.Class
	k, ok := t.policy.index[termKey(a, &t.book.quotas)]
	if !ok {
		return
	}
	terms := &t.policy.terms[k]
	v.Reserved, v.Total = terms.Reserved, noneIfEndless(terms.Total)
	if k < len(t.policy.limited) {
		v.Taken = noneIfEndless(t.policy.limited[k].Limiting)
	}
	if k < len(t.policy.plan.Targets) {
		v.Asked = t.policy.plan.Targets[k].Demand
	}
}

func noneIfEndless(rate float64) float64 {
	if math.IsInf(rate, 1) {
		return 0
	}
	return rate
}

// A TagUse is the use of one tag, as the processors of a pool report it.
type TagUse struct {
	// Tag is its name. It is empty for a key that none of the names has, and for all tags without a quota of their own (Key 0). It is also
	// empty for the reported sum of other tags (Unnamed).
	Tag     string
	Key     uint64
	Unnamed bool
	// Pattern says that Tag is a pattern of the quotas, and the rest is for all its tags together. Only PlanTags sets it.
	Pattern bool
	// Demand is its demand over the whole pool, and Used the used part of that, in tokens per second, at so many processors. Used is
	// accurate to about 1/255 of the demand.
	Demand, Used float64
	Processors   int
	// Target is the rate it should get, and By says why not more. Only PlanTags sets them. Nobody knows how much the tags of a pattern could
	// get together. Its Target is their demand, or their use if one of them uses all of its own total.
	Target float64
	By     string
}

// busiest adds up the tags that the rows of a pool report, the busiest first. Rows report no names, but 40 bits of a hash: known has those
// to look for. Reports that no store would keep count as nothing.
func busiest(roster []driver.RosterRow, known map[uint64]TagUse) []TagUse {
	var out []TagUse
	index := map[uint64]int{}
	unnamed := TagUse{Unnamed: true}
	for i := range roster {
		r, ok := unpackBusy(roster[i].Busy)
		if !ok {
			continue
		}
		if r.rest > 0 {
			unnamed.add(r.rest, r.restUsed)
		}
		for n, b := range r.tags {
			k, ok := index[b.Key]
			if !ok {
				k = len(out)
				index[b.Key] = k
				use := known[b.Key]
				use.Key = b.Key
				out = append(out, use)
			}
			out[k].add(b.Rate, r.uses[n])
		}
	}
	if unnamed.Processors > 0 {
		out = append(out, unnamed)
	}
	slices.SortStableFunc(out, func(a, b TagUse) int { return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Tag, b.Tag)) })
	return out
}

// add adds the report of one more processor.
func (u *TagUse) add(demand, used float64) {
	u.Demand, u.Used, u.Processors = u.Demand+demand, u.Used+used, u.Processors+1
}

// PlanTags adds up the tags that the rows of a pool report, the busiest first. Their targets are those that the processors work out for a
// limit of most tokens per second. It names those in the quotas in force, which need no defaults filled in. Reports that no store would keep
// count as nothing.
func PlanTags(roster []driver.RosterRow, q limit.Quotas, most float64) []TagUse {
	q = q.WithDefaults(0)
	known := map[uint64]TagUse{}
	for i := range q.Match {
		known[patternKey(&q.Match[i])] = TagUse{Tag: q.Match[i].Tag, Pattern: true}
	}
	for name := range q.Tags {
		known[busyKey(tagname.Key(name))] = TagUse{Tag: name}
	}
	out, capped := busiest(roster, known), cappedPatternsIn(roster)
	var p tagPolicy
	p.set(&q)
	p.divide(0, 0, most, roster, -1, nil)
	for i := range out {
		k, ok := p.index[out[i].Key]
		if out[i].Unnamed || !ok {
			continue
		}
		t := &p.plan.Targets[k]
		if out[i].Target, out[i].By = t.Rate, t.By; t.By == fairtags.ByDemand {
			if !out[i].Pattern {
				out[i].Target = t.Bound
			}
			out[i].holdByTotal(&q, capped[out[i].Key])
		}
	}
	return out
}

// cappedPatternsIn returns the patterns with a tag that uses all of its total, as processors report.
func cappedPatternsIn(roster []driver.RosterRow) map[uint64]bool {
	keys := map[uint64]bool{}
	for i := range roster {
		s := standingOf(roster[i].Note)
		for _, key := range s.capped {
			keys[key] = key != 0
		}
	}
	return keys
}

// holdByTotal sets By to the total where the plan says that the tag gets all that it asks for: processors report no demand above the total.
// The flag capped says that a tag of the pattern uses all of its own. Without that, the total holds tags that use clearly less than their
// demand, if that is more than one of them may use.
func (u *TagUse) holdByTotal(q *limit.Quotas, capped bool) {
	own := q.Other
	if u.Pattern {
		own = q.Match[slices.IndexFunc(q.Match, func(p limit.QuotaPattern) bool { return p.Tag == u.Tag })].Quota
	} else if u.Tag != "" {
		_, own = q.Find(u.Tag)
	}
	if own.Total == 0 || own.Shadow {
		return
	}
	total := perSecond(int64(own.Total), own.Per)
	switch {
	case u.Pattern && (capped || u.Used < 0.9*u.Demand && u.Demand > total):
		u.Target, u.By = min(u.Target, max(u.Used, total)), fairtags.ByTotal
	case !u.Pattern && u.Target <= 1.01*u.Demand && u.Target >= 0.99*total:
		u.By = fairtags.ByTotal
	}
}

// QuotaHash returns the hash of a processor's configured quotas, of 8 hex digits; empty when it has none. Processors of a pool should have
// the same.
func QuotaHash(row driver.RosterRow) string { return quotaSumOf(row.Busy).String() }

// A quotaSum is the hash of a processor's quotas plus one; 0: it has none.
type quotaSum int64

// quotaSumOf reads no more of a RosterRow.Busy than it needs, because it runs for each row at each sync.
func quotaSumOf(busy string) quotaSum {
	if len(busy) < busyHead || busy[0] != busyForm {
		return 0
	}
	return quotaSum(binary.BigEndian.Uint32([]byte(busy[6:10]))) + 1
}

func (s quotaSum) String() string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", int64(s-1))
}
