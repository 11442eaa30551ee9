package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// mostTags is how many tags of a pool are shown.
const mostTags = 100

// A quotaTable is what the tags of a pool may use of its limit, and what they ask for. Rates are in tokens per second.
type quotaTable struct {
	// Reserved is what all tags have reserved together, of Limit.
	Reserved float64 `json:"reserved"`
	Limit    float64 `json:"limit"`
	// Known says that the console is configured with the quotas that the processors have. Without, it knows those alone that
	// were changed, and works out no target.
	Known bool     `json:"known"`
	Tags  []tagRow `json:"tags"`
	// More is how many tags are not shown.
	More int `json:"more"`
	// Failure is what could not be read; empty: all was.
	Failure string `json:"failure"`
}

// A tagRow is one tag, or all tags together that go by a pattern. What is nil is not known.
type tagRow struct {
	// ID tells a row from all others, and Tag is the name that a change goes by: empty for all other tags, and nil where it has none.
	ID  string  `json:"id"`
	Tag *string `json:"tag"`
	// Name is what is shown.
	Name       string   `json:"name"`
	Pattern    bool     `json:"pattern"`
	Demand     float64  `json:"demand"`
	Used       float64  `json:"used"` // of the demand
	Target     *float64 `json:"target"`
	By         string   `json:"by"`
	Processors int      `json:"processors"`
	// Quota is what it goes by, and Changed says that somebody has changed it while the pool runs.
	Quota   *quotaInForce `json:"quota"`
	Changed bool          `json:"changed"`
	Budgets []budgetRow   `json:"budgets"`
}

// A quotaInForce is a quota with its defaults filled in. Per is in seconds.
type quotaInForce struct {
	Reserved     int     `json:"reserved"`
	Total        int     `json:"total"`
	Burst        int     `json:"burst"`
	Per          float64 `json:"per"`
	Weight       int     `json:"weight"`
	Class        string  `json:"class"`
	Hard         bool    `json:"hard"`
	Shadow       bool    `json:"shadow"`
	Blocked      bool    `json:"blocked"`
	ReservedText string  `json:"reservedText"` // empty: nothing
	TotalText    string  `json:"totalText"`    // empty: none
}

// A budgetRow is what is spent of one budget in the present window.
type budgetRow struct {
	Per    string `json:"per"`    // empty: of a budget that the console does not know
	Spent  int64  `json:"spent"`  // 0 also when the store has no window yet
	Amount int64  `json:"amount"` // 0: not known
	Ends   int64  `json:"ends"`   // Unix time in milliseconds
	start  int64
}

// A quotaSource is what a table is made of.
type quotaSource struct {
	operate.Pool // with the quotas of the console

	changes consensus.QuotaChanges
	spent   []operate.Spent
}

// newQuotaTable returns the table of a pool at now; nil when no processor has quotas.
func newQuotaTable(o *consensus.Overview, s *quotaSource, now time.Time) *quotaTable {
	t := &quotaTable{Tags: []tagRow{}}
	reserved := s.Reserved(o)
	if reserved == nil {
		return nil
	}
	t.Reserved, t.Limit = reserved.Rate, reserved.Limit
	t.Known, _ = s.Knows(o)
	q := s.inForce(t.Known).WithDefaults(o.Per)
	rows := map[string]*tagRow{}
	for _, u := range operate.Tags(o, q) {
		r := newTagRow(&u, t.Known)
		rows[r.ID] = &r
	}
	s.addQuotas(rows, &q, t.Known, now)
	for i := range s.spent {
		addSpent(rows, &s.spent[i], now)
	}
	for _, r := range rows {
		t.Tags = append(t.Tags, *r)
	}
	slices.SortFunc(t.Tags, func(a, b tagRow) int { return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.ID, b.ID)) })
	if t.More = max(0, len(t.Tags)-mostTags); t.More > 0 {
		t.Tags = t.Tags[:mostTags]
	}
	return t
}

// inForce are the quotas that the console knows to be in force.
func (s *quotaSource) inForce(known bool) throttle.Quotas {
	if !known {
		return s.changes.Over(throttle.Quotas{})
	}
	return s.changes.Over(s.Quotas)
}

// Kinds of rows, by the beginning of their IDs.
const (
	idOther   = "other"
	idUnnamed = "unnamed"
	idTag     = "tag "
	idPattern = "pattern "
	idHash    = "hash "
)

func newTagRow(u *operate.Tag, known bool) tagRow {
	r := tagRow{Demand: u.Demand, Used: u.Used, Processors: u.Pods, Budgets: []budgetRow{}}
	switch {
	case u.Unnamed:
		r.ID, r.Name = idUnnamed, "not told by name"
	case u.Pattern:
		r.ID, r.Name, r.Pattern = idPattern+u.Tag, u.Tag, true
	default:
		r.named(u.Tag, u.Hash)
	}
	if known && u.By != "" {
		r.By = u.By
		if u.Target > 0 || !u.Pattern {
			r.Target = &u.Target
		}
	}
	return r
}

// named makes it the row of a tag: "" is all others, unless there is a hash of a name that is not known.
func (r *tagRow) named(tag, hash string) {
	switch {
	case hash != "":
		r.ID, r.Name = idHash+hash, "#"+hash
	case tag == "":
		r.ID, r.Name, r.Tag = idOther, "all others", &tag
	default:
		r.ID, r.Name, r.Tag = idTag+tag, tag, &tag
	}
}

// addQuotas adds what tags go by, and tags that ask for nothing.
func (s *quotaSource) addQuotas(rows map[string]*tagRow, q *throttle.Quotas, known bool, now time.Time) {
	row := func(tag string) *tagRow {
		r := &tagRow{Budgets: []budgetRow{}}
		r.named(tag, "")
		if rows[r.ID] == nil {
			rows[r.ID] = r
		}
		return rows[r.ID]
	}
	for tag, own := range q.Tags {
		r := row(tag)
		r.goesBy(&own, now)
		_, r.Changed = s.changes.Tags[tag]
	}
	for i := range q.Match {
		if r := rows[idPattern+q.Match[i].Tag]; r != nil {
			r.goesBy(&q.Match[i].Quota, now) // each tag of it by itself
			r.Budgets = []budgetRow{}
		}
	}
	if known || s.changes.Other != nil {
		r := row("")
		r.goesBy(&q.Other, now)
		r.Changed = s.changes.Other != nil
	}
}

// goesBy sets the quota of a row, and its budgets, of which nothing is known to be spent yet.
func (r *tagRow) goesBy(q *throttle.Quota, now time.Time) {
	r.Quota = &quotaInForce{
		Reserved: q.Reserved, Total: q.Total, Burst: q.Burst, Per: q.Per.Seconds(), Weight: q.Weight, Class: string(q.Class), Hard: q.Hard, Shadow: q.Shadow,
	}
	if q.Reserved > 0 {
		r.Quota.ReservedText = (&consensus.Setting{Max: q.Reserved, Per: q.Per}).String()
	}
	if q.Total > 0 {
		r.Quota.TotalText = (&consensus.Setting{Max: q.Total, Per: q.Per, Hard: q.Hard}).String()
	}
	if r.Quota.Blocked = q.Blocked; q.Blocked {
		r.Quota.TotalText = "0: blocked"
	}
	for _, b := range q.Budgets {
		start, end := b.Window(now)
		r.Budgets = append(r.Budgets, budgetRow{Per: string(b.Per), Amount: b.Amount, Ends: millis(end), start: millis(start)})
	}
}

// addSpent adds what a tag has spent of windows that have not ended.
func addSpent(rows map[string]*tagRow, s *operate.Spent, now time.Time) {
	r := &tagRow{Budgets: []budgetRow{}}
	r.named(s.Tag, s.Hash[:min(len(s.Hash), 10)]) // as pods tell it
	for _, w := range s.Windows {
		if !w.End.After(now) {
			continue
		}
		if rows[r.ID] == nil {
			rows[r.ID] = r
		}
		rows[r.ID].spent(w)
	}
}

// spent notes what is spent of the budgets that a window is of: those that begin with it. It may be of none that is known.
func (r *tagRow) spent(w operate.SpentWindow) {
	found := false
	for i := range r.Budgets {
		if b := &r.Budgets[i]; b.start == millis(w.Start) {
			b.Spent, found = w.Tokens, true
		}
	}
	if !found {
		r.Budgets = append(r.Budgets, budgetRow{Spent: w.Tokens, Ends: millis(w.End)})
	}
}

// quotas returns the table of a pool. It asks the store for what is spent no more often than it must. One call at a time for each feed.
func (h *hub) quotas(ctx context.Context, f *feed, o *consensus.Overview, now time.Time) *quotaTable {
	s := &f.quotas
	s.Pool = operate.Pool{Store: h.store, Name: o.Pool, Quotas: h.configured}
	if s.Reserved(o) == nil {
		return nil
	}
	changes, unreadable := o.QuotaChanges()
	if unreadable == nil { // else what was known goes on
		s.changes = changes
	}
	if now.Sub(f.spentAsked) >= 3*h.every {
		spent, err := s.Spent(ctx, s.inForce(true))
		if errors.Is(err, driver.ErrNoTills) {
			err = nil // then there are no budgets
		}
		s.spent, f.spentFailed, f.spentAsked = spent, err, now
	}
	t := newQuotaTable(o, s, now)
	if err := errors.Join(unreadable, f.spentFailed); err != nil {
		t.Failure = storeText(err)
	}
	return t
}
