package operate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A TagQuota is what one tag goes by, as far as it is known.
type TagQuota struct {
	// Quota is the newest change of it, else the quota by Pool.Quotas, a pattern's as its own; the zero Quota: it has none of its own.
	Quota throttle.Quota
	// Changed says that somebody has changed it while the pool runs.
	Changed bool
	// Known and Stranger are those of Knows.
	Known    bool
	Stranger string
}

// Quota returns what a tag goes by; "" is all tags without a quota of their own. The error is also one for a document that this
// release cannot read.
func (p *Pool) Quota(ctx context.Context, tag string) (t TagQuota, err error) {
	o, err := p.Overview(ctx)
	if err != nil {
		return t, err
	}
	changes, err := o.QuotaChanges()
	if err != nil {
		return t, err
	}
	t.Known, t.Stranger = p.Knows(&o)
	if changed := changes.Of(tag); changed != nil {
		t.Quota, t.Changed = *changed, true
	} else if tag == "" {
		t.Quota = p.Quotas.Other
	} else if name, own := p.Quotas.Find(tag); name != "" {
		t.Quota = own
	}
	return t, nil
}

// Knows tells whether a pod of an overview is configured with Pool.Quotas, and which is the first that has others; empty: none has.
func (p *Pool) Knows(o *consensus.Overview) (known bool, stranger string) {
	for i := range o.Processors {
		row := &o.Processors[i]
		told := consensus.QuotaHash(row.RosterRow)
		switch same := told == consensus.QuotaHashOf(p.Quotas, row.Per); {
		case told == "":
		case same:
			known = true
		case stranger == "":
			stranger = row.ID
		}
	}
	return known, stranger
}

// SetQuota makes q the quota of a tag, as a whole: begin with that of Quota to change a part of it. Force reserves more than the limit. See
// consensus.SaveQuota.
func (p *Pool) SetQuota(ctx context.Context, tag string, q throttle.Quota, force bool) error {
	return consensus.SaveQuota(ctx, p.Store, p.Name, tag, &q, force)
}

// ClearQuota ends the change of a tag's quota: what is configured counts again.
func (p *Pool) ClearQuota(ctx context.Context, tag string) error {
	return consensus.SaveQuota(ctx, p.Store, p.Name, tag, nil, false)
}

// InForce returns the quotas that pods with Pool.Quotas go by in the pool of an overview. Tags has names, too, which may be those of tags
// without a quota of their own: so Tags and Spent show them by name. The error is one for a document that this release cannot read.
func (p *Pool) InForce(o *consensus.Overview, names ...string) (throttle.Quotas, error) {
	changes, err := o.QuotaChanges()
	q := changes.Over(p.Quotas)
	tags := map[string]throttle.Quota{}
	for _, name := range names {
		if name != "" {
			_, tags[name] = q.Find(name)
		}
	}
	maps.Copy(tags, q.Tags)
	q.Tags = tags
	return q, err
}

// Reserved is what all tags of a pool have reserved together, of the Limit that is granted in the long run, in tokens per second.
type Reserved struct {
	Rate  float64 `json:"rate"`
	Limit float64 `json:"limit"`
}

// Reserved returns what is reserved in the pool of an overview; nil: no live pod has quotas.
func (p *Pool) Reserved(o *consensus.Overview) *Reserved {
	rate, known := o.Reserved(p.Quotas)
	if !known {
		return nil
	}
	return &Reserved{rate, o.Granted}
}

// String says it in words.
func (r *Reserved) String() string {
	if r == nil {
		return "no live pod has quotas"
	}
	return fmt.Sprintf("%.4g of %.4g tokens per second are reserved", r.Rate, r.Limit)
}

// A Tag is one tag of a pool, or all tags together that go by a pattern. Rates are in tokens per second over the whole pool.
type Tag struct {
	// Tag is its name, and Hash stands for one that is not known. Both are empty for all tags without a quota of their own, and for what
	// pods have told as a sum (Unnamed). Pattern says that Tag is one.
	Tag     string `json:"tag"`
	Hash    string `json:"hash,omitempty"`
	Unnamed bool   `json:"unnamed,omitempty"`
	Pattern bool   `json:"pattern,omitempty"`
	// Demand is what it asks for, and Used how much of that it uses.
	Demand float64 `json:"demand"`
	Used   float64 `json:"used"`
	// Target is what it should get, and By what holds it there, such as total or limit; 0 and empty: not known.
	Target float64 `json:"target"`
	By     string  `json:"by,omitempty"`
	// Pods counts those that tell of it.
	Pods int `json:"pods"`
}

// Tags returns the tags that somebody asks for in the pool of an overview, the busiest first. q are the quotas in force, as InForce returns
// them: it knows the names and patterns in them alone.
func Tags(o *consensus.Overview, q throttle.Quotas) []Tag {
	tags := []Tag{}
	limit := 0.0 // that the pods divide
	if o.Per > 0 {
		limit = float64(o.Max) / o.Per.Seconds()
	}
	roster := make([]consensus.RosterRow, len(o.Processors))
	for i := range roster {
		roster[i] = o.Processors[i].RosterRow
	}
	for _, u := range consensus.PlanTags(roster, q.WithDefaults(o.Per), limit) {
		t := Tag{Tag: u.Tag, Unnamed: u.Unnamed, Pattern: u.Pattern, Demand: u.Demand, Used: u.Used, Target: u.Target, By: u.By, Pods: u.Processors}
		if u.Tag == "" && u.Key != 0 {
			t.Hash = fmt.Sprintf("%010x", u.Key)
		}
		tags = append(tags, t)
	}
	return tags
}

// A Spent is what one tag has spent of its budgets.
type Spent struct {
	// Tag is its name; empty for all tags without a quota of their own, and with a Hash, which stands for a name that is not known: 16
	// digits, of which Tag.Hash has the first ten.
	Tag  string `json:"tag"`
	Hash string `json:"hash,omitempty"`
	// Windows are those that the store has on record, by rising Start. One that has ended stays for ten minutes or longer.
	Windows []SpentWindow `json:"windows"`
}

// A SpentWindow is what is spent of one budget, or of several whose windows begin at the same time.
type SpentWindow struct {
	// Start and End are those of the window, in UTC.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Tokens is what is spent since Start, of the Amount of the budget; Amount 0: not known.
	Tokens int64 `json:"tokens"`
	Amount int64 `json:"amount,omitempty"`
}

// Spent returns what is spent of budgets. q are the quotas in force, as InForce returns them: it knows the names and amounts in them alone.
// The error wraps driver.ErrNoTills for a store that does not count it.
func (p *Pool) Spent(ctx context.Context, q throttle.Quotas) ([]Spent, error) {
	all, err := consensus.LoadSpent(ctx, p.Store, p.Name, slices.Collect(maps.Keys(q.Tags)))
	list := []Spent{}
	for i := range all {
		t := &all[i]
		if t.Unnamed {
			list = append(list, Spent{Hash: fmt.Sprintf("%016x", t.Key), Windows: windows(t, nil)})
			continue
		}
		_, own := q.Find(t.Tag)
		list = append(list, Spent{Tag: t.Tag, Windows: windows(t, own.Budgets)})
	}
	return list, err
}

// windows are those of a tag that has budgets.
func windows(t *consensus.TagSpent, budgets []throttle.Budget) (list []SpentWindow) {
	for _, w := range t.Windows {
		is := SpentWindow{Start: w.Start, End: w.End, Tokens: w.Tokens}
		for _, b := range slices.Backward(budgets) {
			if start, end := b.Window(w.Start); start.Equal(w.Start) && end.Equal(w.End) {
				is.Amount = b.Amount
			}
		}
		list = append(list, is)
	}
	return list
}

// SetSpent sets what is spent of a tag's budget in its present window: c without Start and End, and q as Spent takes them. budget.Per says
// which one, and budget.Zone in which time zone it begins; empty: that of the tag's budget in q, or UTC. See consensus.SetSpent.
func (p *Pool) SetSpent(ctx context.Context, q throttle.Quotas, budget throttle.Budget, c consensus.SpentChange) (Spent, error) {
	_, own := q.Find(c.Tag)
	if i := slices.IndexFunc(own.Budgets, func(b throttle.Budget) bool { return b.Per == budget.Per }); i >= 0 && budget.Zone == "" {
		budget.Zone = own.Budgets[i].Zone
	}
	budget.Amount = 1
	if err := (throttle.Quotas{Other: throttle.Quota{Budgets: []throttle.Budget{budget}}}).Validate(1, time.Second); err != nil {
		return Spent{}, &consensus.RequestError{Field: "Budget", Value: err.Error(), Allowed: "hour, day or month in the zone of a budget"}
	}
	c.Start, c.End = budget.Window(time.Now())
	if err := consensus.SetSpent(ctx, p.Store, p.Name, c); err != nil {
		return Spent{}, err
	}
	is := consensus.TagSpent{Windows: []consensus.SpentWindow{{Start: c.Start.UTC(), End: c.End.UTC(), Tokens: c.Tokens}}}
	return Spent{Tag: c.Tag, Windows: windows(&is, own.Budgets)}, nil
}
