package operate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A TagQuota is the quota of one tag, as far as the operator can know it.
type TagQuota struct {
	// Quota is the newest change, else the tag's quota in Pool.Quotas, by name or pattern; else the zero Quota.
	Quota throttle.Quota
	// Changed says that an operator has changed it, and Order until when, who and why.
	Changed bool
	Order   QuotaOrder
	// Known and Stranger are the results of Knows.
	Known    bool
	Stranger string
}

// Quota returns the quota of a tag; "" is all tags without a quota of their own. It fails for a document that this release cannot read.
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
		t.Quota, t.Changed, t.Order = *changed, true, changes.Orders[tag]
	} else if tag == "" {
		t.Quota = p.Quotas.Other
	} else if name, own := p.Quotas.Find(tag); name != "" {
		t.Quota = own
	}
	return t, nil
}

// Knows reports whether a pod is configured with [Pool.Quotas]. stranger is the first pod with other quotas; empty: there is none.
func (p *Pool) Knows(o *Overview) (known bool, stranger string) {
	for i := range o.Processors {
		row := &o.Processors[i]
		reported := protocol.QuotaHash(row.RosterRow)
		switch same := reported == protocol.QuotaHashOf(p.Quotas, row.Per); {
		case reported == "":
		case same:
			known = true
		case stranger == "":
			stranger = row.ID
		}
	}
	return known, stranger
}

// SetQuota replaces the whole quota of a tag; "" is all tags without their own. To change a field of it, start from the result of Quota.
// Every pod uses it from its next sync on. It blocks until the store has answered; ctx bounds it.
//
// All tags together must not reserve more than the limit of a live pod grants in the long run, unless force is set: then everything
// reserved is scaled down. A configured tag counts twice from its first change until pods have synced.
//
// Errors: *driver.RequestError for an invalid quota or name, too much reserved, more changes than a document holds, and when no live pod has
// quotas; one that wraps driver.ErrNoPool; *driver.ConflictError when others keep changing them at the same time; those of the store.
func (p *Pool) SetQuota(ctx context.Context, tag string, q throttle.Quota, force bool) error {
	return p.SetQuotaFor(ctx, tag, q, QuotaOrder{}, force)
}

// SetQuotaFor is SetQuota with an end, an author and a reason.
func (p *Pool) SetQuotaFor(ctx context.Context, tag string, q throttle.Quota, o QuotaOrder, force bool) error {
	return protocol.SaveQuotaFor(ctx, p.Store, p.Name, tag, &q, o, force)
}

// ClearQuota ends the change of a tag's quota. Its configured quota is in force again.
func (p *Pool) ClearQuota(ctx context.Context, tag string) error {
	return protocol.SaveQuota(ctx, p.Store, p.Name, tag, nil, false)
}

// ClearQuotas ends all changes of quotas, even those that this release cannot read.
func (p *Pool) ClearQuotas(ctx context.Context) error {
	return protocol.ClearQuotas(ctx, p.Store, p.Name)
}

// InForce returns [Pool.Quotas] with the changes of the pool. It adds entries for names, so that Tags and Spent show these tags by name even
// without a quota of their own. It fails for a document that this release cannot read.
func (p *Pool) InForce(o *Overview, names ...string) (throttle.Quotas, error) {
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

// Reserved is the sum of all reserved rates of a pool, and the limit in the long run, in tokens per second. With Calls they are calls in flight.
type Reserved struct {
	Rate  float64 `json:"rate"`
	Limit float64 `json:"limit"`
	Calls bool    `json:"calls,omitempty"`
}

// Reserved adds up the reserved rates; nil: no live pod has quotas.
func (p *Pool) Reserved(o *Overview) *Reserved {
	rate, known := o.Reserved(p.Quotas)
	if !known {
		return nil
	}
	if o.Slots > 0 {
		return &Reserved{rate, float64(o.Slots), true}
	}
	return &Reserved{rate, o.Granted, false}
}

// String returns r as a sentence.
func (r *Reserved) String() string {
	if r == nil {
		return "no live pod has quotas"
	}
	if r.Calls {
		return fmt.Sprintf("%.4g of %.4g calls in flight are reserved", r.Rate, r.Limit)
	}
	return fmt.Sprintf("%.4g of %.4g tokens per second are reserved", r.Rate, r.Limit)
}

// A Tag is one tag of a pool, or all tags together that match a pattern. Rates are in tokens per second over the whole pool; of a
// limit on calls in flight they are calls.
type Tag struct {
	// Tag is the name, or with Pattern a pattern. A tag of unknown name has a Hash instead. Both are empty for all tags without a quota of
	// their own, and for the tags that pods report as one sum (Unnamed).
	Tag     string `json:"tag"`
	Hash    string `json:"hash,omitempty"`
	Unnamed bool   `json:"unnamed,omitempty"`
	Pattern bool   `json:"pattern,omitempty"`
	// Demand is the rate that the tag asks for, and Used the granted part.
	Demand float64 `json:"demand"`
	Used   float64 `json:"used"`
	// Target is the rate that the tag may use, and By the cause of it, such as total or limit; 0 and empty: unknown. It may use nothing for
	// the causes pause, frozen, no_share and budget. Nobody knows it for a
	// pattern whose tags nothing holds back: there it is their demand.
	Target float64 `json:"target"`
	By     string  `json:"by,omitempty"`
	// Pods counts the pods that report the tag.
	Pods int `json:"pods"`
}

// Tags returns the tags with a demand, the busiest first, and then those that are stopped by a pause or a spent budget. q are the quotas in
// force, from InForce; names, patterns and targets come from them. spent is the result of Spent, empty if that is not known.
func Tags(o *Overview, q throttle.Quotas, spent []Spent) []Tag {
	tags := []Tag{}
	limit := 0.0 // the limit that the pods divide
	switch {
	case o.Slots > 0:
		limit = float64(o.Slots)
	case o.Per > 0:
		limit = float64(o.Max) / o.Per.Seconds()
	}
	var roster []driver.RosterRow
	for i := range o.Processors {
		if p := &o.Processors[i]; !p.Overdue {
			roster = append(roster, p.RosterRow)
		}
	}
	stopped := stoppageOf(o, &q, spent, time.Now())
	for _, u := range protocol.PlanTags(roster, q.WithDefaults(o.Per), limit) {
		t := Tag{Tag: u.Tag, Unnamed: u.Unnamed, Pattern: u.Pattern, Demand: u.Demand, Used: u.Used, Target: u.Target, By: u.By, Pods: u.Processors}
		if u.Tag == "" && u.Key != 0 {
			t.Hash = fmt.Sprintf("%010x", u.Key)
		}
		stopped.hold(&t)
		tags = append(tags, t)
	}
	return append(tags, stopped.rest(tags)...)
}

// Spent is the spending of one tag.
type Spent struct {
	// Tag is the name; empty: all tags without a quota of their own. A tag of unknown name has a Hash of 16 digits instead; the Hash of a
	// Tag is its first ten.
	Tag  string `json:"tag"`
	Hash string `json:"hash,omitempty"`
	// Windows are the recorded windows, by rising Start. An ended window stays for ten minutes or longer.
	Windows []SpentWindow `json:"windows"`
}

// A SpentWindow is the spending of one budget, or of several budgets whose windows begin at the same time.
type SpentWindow struct {
	// Start and End bound the window, in UTC.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Tokens were spent since Start. Amount is the budget's; 0: unknown.
	Tokens int64 `json:"tokens"`
	Amount int64 `json:"amount,omitempty"`
}

// Spent returns the spending of all budgets of the pool. q are the quotas in force, from InForce; names and amounts come from them.
// The error wraps driver.ErrNoTills for a store that does not count it.
func (p *Pool) Spent(ctx context.Context, q throttle.Quotas) ([]Spent, error) {
	all, err := protocol.LoadSpent(ctx, p.Store, p.Name, slices.Collect(maps.Keys(q.Tags)))
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

// windows returns the windows of a tag, with the amounts of its budgets.
func windows(t *protocol.TagSpent, budgets []throttle.Budget) (list []SpentWindow) {
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

// SetSpent sets the spending of a tag's budget in its present window, whose Start and End it fills in. budget.Per names the window. Its time
// zone is budget.Zone, by default that of the tag's budget in q, the quotas in force, else UTC.
//
// It is exact, and serves when the store and all pods have lost the count, or a bill differs. Later draws count on top. If the call fails, a
// store that loses its state may get a larger number back; it can be called again. While the pool is frozen only more can be set.
//
// Errors: *driver.RequestError for a field out of bounds, and a lower number while the pool is frozen; *driver.ConflictError; those of the
// store. Others wrap driver.ErrNoPool, driver.ErrNoTagBuckets for a store that cannot, or driver.ErrTagBucketsLost.
func (p *Pool) SetSpent(ctx context.Context, q throttle.Quotas, budget throttle.Budget, c SpentChange) (Spent, error) {
	_, own := q.Find(c.Tag)
	if i := slices.IndexFunc(own.Budgets, func(b throttle.Budget) bool { return b.Per == budget.Per }); i >= 0 && budget.Zone == "" {
		budget.Zone = own.Budgets[i].Zone
	}
	if !slices.Contains([]string{"hour", "day", "month"}, string(budget.Per)) {
		return Spent{}, &driver.RequestError{Field: "Per", Value: fmt.Sprintf("%.40q", budget.Per), Allowed: "hour, day or month"}
	}
	if _, err := time.LoadLocation(budget.Zone); err != nil || budget.Zone == "Local" { // Local differs from machine to machine
		return Spent{}, &driver.RequestError{Field: "Zone", Value: fmt.Sprintf("%.60q", budget.Zone), Allowed: "a time zone such as Europe/Berlin"}
	}
	c.Start, c.End = budget.Window(time.Now())
	if err := protocol.SetSpent(ctx, p.Store, p.Name, c); err != nil {
		return Spent{}, err
	}
	is := protocol.TagSpent{Windows: []protocol.SpentWindow{{Start: c.Start.UTC(), End: c.End.UTC(), Tokens: c.Tokens}}}
	return Spent{Tag: c.Tag, Windows: windows(&is, own.Budgets)}, nil
}
