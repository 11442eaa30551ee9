package consensus

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/quota"
)

// A TagView is how a processor sees one of its own tags. Rates are in tokens per second.
type TagView struct {
	// Tag is empty for all tags without a quota of their own.
	Tag string
	// Demand is what the tag asks for at this processor, and Used what it used, over the last one or two intervals. Limiting is what it
	// may use there at most because the called service refuses its calls; 0: nothing limits it.
	Demand, Used, Limiting float64
	// Target is what it may use over the whole pool, and By what holds it there: "demand", "reserved", "total",
	// "limiting", "class", "limit" or "budget".
	Target float64
	By     string
	// InHand is how many tokens the tag had when the newest request was made. Spent and Budget are what is used and allowed in the
	// budget window that is nearest its end; 0 without budgets.
	InHand, Spent, Budget int64
	// Lacks is why the store gave less than was asked for; empty when it gave all.
	Lacks limit.Reason
}

// tagViews lists this processor's tags by name.
func (p *Processor) tagViews() (out []TagView) {
	if !p.tags.on {
		return nil
	}
	for i := range p.tags.book.accounts {
		a := &p.tags.book.accounts[i]
		v := TagView{Tag: a.Tag, Demand: a.demand, Used: a.uses, Limiting: a.Limiting, Target: a.target, By: a.by, InHand: a.InHand, Lacks: reasonOf(a.lack)}
		if v.Spent, v.Budget = a.nearest(); a.exhausted() {
			v.By = "budget"
		}
		out = append(out, v)
	}
	return out
}

// A TagUse is what the processors of a pool tell of one tag.
type TagUse struct {
	// Tag is its name. It is empty for a key that none of the names has, for all tags without a quota of their
	// own (Key 0), and for what processors have told as a sum (Unnamed).
	Tag     string
	Key     uint64
	Unnamed bool
	// Demand is what it asks for over the whole pool, in tokens per second, at so many processors.
	Demand     float64
	Processors int
	// Target is what it should get, and By what holds it there. Only PlanTags sets them.
	Target float64
	By     string
}

// BusiestTags adds up what the rows of a pool tell of their tags, the busiest first. Rows do not tell names, but 40 bits of a
// hash: names are those to look for. What no store would keep counts as nothing.
func BusiestTags(roster []RosterRow, names []string) []TagUse {
	known := map[uint64]string{}
	for _, name := range names {
		if name != "" {
			known[busyKey(quota.Key(name))] = name
		}
	}
	var out []TagUse
	index := map[uint64]int{}
	unnamed := TagUse{Unnamed: true}
	for i := range roster {
		r, ok := unpackBusy(roster[i].Busy)
		if !ok {
			continue
		}
		if r.rest > 0 {
			unnamed.Demand, unnamed.Processors = unnamed.Demand+r.rest, unnamed.Processors+1
		}
		for _, b := range r.tags {
			k, ok := index[b.Key]
			if !ok {
				k = len(out)
				index[b.Key] = k
				out = append(out, TagUse{Tag: known[b.Key], Key: b.Key})
			}
			out[k].Demand, out[k].Processors = out[k].Demand+b.Rate, out[k].Processors+1
		}
	}
	if unnamed.Processors > 0 {
		out = append(out, unnamed)
	}
	slices.SortStableFunc(out, func(a, b TagUse) int { return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Tag, b.Tag)) })
	return out
}

// PlanTags is BusiestTags with the targets that the processors work out for a limit of most tokens per second and the
// quotas in force, which need no defaults filled in.
func PlanTags(roster []RosterRow, q quota.Quotas, most float64) []TagUse {
	q = q.WithDefaults(0)
	var names []string
	for name := range q.Tags {
		names = append(names, name)
	}
	out := BusiestTags(roster, names)
	var p tagPolicy
	p.set(&q)
	p.divide(0, 0, most, roster, -1, nil)
	for i := range out {
		k, ok := p.index[out[i].Key]
		if out[i].Unnamed || !ok {
			continue
		}
		t := &p.plan.Targets[k]
		out[i].Target, out[i].By = t.Rate, t.By
		if t.By == fairtags.ByDemand {
			out[i].Target = t.Bound
		}
	}
	return out
}

// QuotaHash returns the hash of the quotas that a processor is configured with, of 8 hex digits; empty when it has none. Processors
// of a pool should have the same.
func QuotaHash(row RosterRow) string {
	r, ok := unpackBusy(row.Busy)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%08x", r.hash)
}

// ReservedRate returns what a processor's quotas in force reserve together, in tokens per second, to about a thousandth;
// ok is false when it knows no quotas.
func ReservedRate(row RosterRow) (rate float64, ok bool) {
	r, ok := unpackBusy(row.Busy)
	return r.promised, ok
}
