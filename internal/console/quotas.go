package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// mostTags bounds the tags shown of a pool.
const mostTags = 100

// A quotaTable lists the quotas and the demand of a pool's tags. Rates are in tokens per second.
type quotaTable struct {
	// Reserved is the sum of all tags' reservations, of Limit.
	Reserved float64 `json:"reserved"`
	Limit    float64 `json:"limit"`
	// Known reports whether the console has the quotas of the processors. Otherwise it knows only the changed ones, and computes no target.
	Known bool     `json:"known"`
	Tags  []tagRow `json:"tags"`
	// More counts the tags that are not shown.
	More int `json:"more"`
	// Failure says what could not be read; empty: nothing failed.
	Failure string `json:"failure"`
}

// A tagRow is one tag, or all tags together that match a pattern. Nil fields are unknown.
type tagRow struct {
	// ID identifies a row. Tag is the name that a change uses: empty for all other tags, nil where it has none.
	ID  string  `json:"id"`
	Tag *string `json:"tag"`
	// Name is the displayed name.
	Name       string   `json:"name"`
	Pattern    bool     `json:"pattern"`
	Demand     float64  `json:"demand"`
	Used       float64  `json:"used"` // of the demand
	Target     *float64 `json:"target"`
	By         string   `json:"by"`
	Processors int      `json:"processors"`
	// Quota is the quota in force. Changed reports whether it was changed at run time, and Order until when, by whom and why.
	Quota   *quotaInForce `json:"quota"`
	Changed bool          `json:"changed"`
	Order   *order        `json:"order"`
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

// A budgetRow shows how much of one budget is spent in the current window.
type budgetRow struct {
	Per    string `json:"per"`    // empty: of a budget unknown to the console
	Spent  int64  `json:"spent"`  // 0 also when the store has no window yet
	Amount int64  `json:"amount"` // 0: not known
	Ends   int64  `json:"ends"`   // Unix time in milliseconds
	start  int64
}

// A quotaSource is the source of a table.
type quotaSource struct {
	operate.Pool // with the quotas of the console

	changes protocol.QuotaChanges
	spent   []operate.Spent
}

// newQuotaTable returns the table of a pool at now, or nil if no processor has quotas.
func newQuotaTable(o *protocol.Overview, s *quotaSource, now time.Time) *quotaTable {
	t := &quotaTable{Tags: []tagRow{}}
	reserved := s.Reserved(o)
	if reserved == nil {
		return nil
	}
	t.Reserved, t.Limit = reserved.Rate, reserved.Limit
	t.Known, _ = s.Knows(o)
	q := s.inForce(t.Known).WithDefaults(o.Per)
	rows := map[string]*tagRow{}
	for _, u := range operate.Tags(o, q, s.spent) {
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

// inForce returns the quotas known to be in force.
func (s *quotaSource) inForce(known bool) throttle.Quotas {
	if !known {
		return s.changes.Over(throttle.Quotas{})
	}
	return s.changes.Over(s.Quotas)
}

// Prefixes of row IDs, by kind of row.
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
		r.By = poolview.Word(u.By)
		if u.Target > 0 || !u.Pattern {
			r.Target = &u.Target
		}
	}
	return r
}

// named makes r the row of a tag: "" is all other tags, unless there is the hash of an unknown name.
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

// addQuotas adds the quotas of tags, including tags without demand.
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
		s.ordered(r, tag)
	}
	for i := range q.Match {
		if r := rows[idPattern+q.Match[i].Tag]; r != nil {
			r.goesBy(&q.Match[i].Quota, now) // for each of its tags separately
			r.Budgets = []budgetRow{}
		}
	}
	if known || s.changes.Other != nil {
		r := row("")
		r.goesBy(&q.Other, now)
		s.ordered(r, "")
	}
}

// ordered sets whether the quota of a row was changed, and its order.
func (s *quotaSource) ordered(r *tagRow, tag string) {
	if r.Changed = s.changes.Of(tag) != nil; r.Changed {
		o := s.changes.Orders[tag]
		r.Order = &order{What: r.Quota.text(), Tag: tag, Until: millis(o.Until), By: o.By, Reason: o.Reason}
	}
}

// goesBy sets the quota of a row and its budgets, whose spent amounts are still unknown.
func (r *tagRow) goesBy(q *throttle.Quota, now time.Time) {
	r.Quota = &quotaInForce{
		Reserved: q.Reserved, Total: q.Total, Burst: q.Burst, Per: q.Per.Seconds(), Weight: q.Weight, Class: string(q.Class), Hard: q.Hard, Shadow: q.Shadow,
	}
	if q.Reserved > 0 {
		r.Quota.ReservedText = (&protocol.Setting{Max: q.Reserved, Per: q.Per}).String()
	}
	if q.Total > 0 {
		r.Quota.TotalText = (&protocol.Setting{Max: q.Total, Per: q.Per, Hard: q.Hard}).String()
	}
	if r.Quota.Blocked = q.Blocked; q.Blocked {
		r.Quota.TotalText = "0: blocked"
	}
	for _, b := range q.Budgets {
		start, end := b.Window(now)
		r.Budgets = append(r.Budgets, budgetRow{Per: string(b.Per), Amount: b.Amount, Ends: millis(end), start: millis(start)})
	}
}

// addSpent adds a tag's spending in windows that have not ended.
func addSpent(rows map[string]*tagRow, s *operate.Spent, now time.Time) {
	r := &tagRow{Budgets: []budgetRow{}}
	r.named(s.Tag, s.Hash[:min(len(s.Hash), 10)]) // as pods report it
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

// spent records a window's spending with the budgets that start with it. The window may belong to no known budget.
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

// quotas returns the table of a pool. It asks the store for spending at most once per three polling intervals. It must not run concurrently
// for the same feed.
func (h *hub) quotas(ctx context.Context, f *feed, o *protocol.Overview, now time.Time) *quotaTable {
	s := &f.quotas
	if s.Pool = (operate.Pool{Store: h.store, Name: o.Pool}); h.configured != nil {
		s.Quotas = h.configured(o.Pool)
	}
	if s.Reserved(o) == nil {
		return nil
	}
	changes, unreadable := o.QuotaChanges()
	if unreadable == nil { // else the previous data stays
		s.changes = changes
	}
	if now.Sub(f.spentAsked) >= 3*h.every {
		spent, err := s.Spent(ctx, s.inForce(true))
		if errors.Is(err, driver.ErrNoTagBuckets) {
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
