package whatif

import (
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Result is what became of the recorded calls: under one configuration, or as they were recorded.
type Result struct {
	// Limit describes the limit; empty: there is none. PerSecond is its rate.
	Limit     string
	PerSecond float64
	// Use is the part of the limit that was used while the recording lasts; NaN without a limit.
	Use float64
	// All are all tags together, and Tags each of them, by name.
	All  TagResult
	Tags []TagResult
	// Waited says that waits and refusals were computed: it is not the recording itself.
	Waited bool
	// Draws is how many draws were made, and Merged the most calls that one of them stood for.
	Draws  int64
	Merged int
	// Bins are equal parts of the recording's time, for plots.
	Bins []Bin
}

// A Bin is a part of the time. Tokens are those granted in it; its waits and refusals are those of the calls that came in it.
type Bin struct {
	From    time.Duration
	Tokens  float64
	Refused float64 // calls
	P50     time.Duration
	P99     time.Duration
	// ByTag are the tokens granted to each of Result.Tags.
	ByTag []float64
}

// TagResult is what became of the calls of one tag.
type TagResult struct {
	Name string
	// Calls, Granted, Refused and Left count calls. Left are those that still waited an hour after the end of the recording.
	Calls, Granted, Refused, Left float64
	// Tokens are those of the granted calls.
	Tokens float64
	// Reasons are the refused calls by reason.
	Reasons map[throttle.Reason]float64
	// P50, P99 and Longest are waits of granted calls.
	P50, P99, Longest time.Duration
	Budgets           []Spend
}

// A Spend is the fullest window of a budget.
type Spend struct {
	Budget limit.Budget
	// Of is the quota that it belongs to: the tag, or "" for the one of all others together.
	Of string
	// Spent is in tokens, Window its beginning, and Windows how many there are in the recording.
	Spent   float64
	Window  time.Time
	Windows int
}

// A spending adds up what the tags of one quota use, by the windows of its budgets.
type spending struct {
	of      string
	budgets []limit.Budget
	windows []map[int64]float64 // by budget, by the start of the window
	start   []time.Time         // of the newest window
	end     []time.Time
}

func (s *spending) add(at time.Time, tokens float64) {
	for i, b := range s.budgets {
		if !at.Before(s.end[i]) || at.Before(s.start[i]) {
			s.start[i], s.end[i] = b.Window(at)
		}
		s.windows[i][s.start[i].Unix()] += tokens
	}
}

func (s *spending) spends() (out []Spend) {
	for i, b := range s.budgets {
		most := Spend{Budget: b, Of: s.of, Windows: len(s.windows[i])}
		for at, spent := range s.windows[i] {
			if start := time.Unix(at, 0).UTC(); spent > most.Spent || spent == most.Spent && start.Before(most.Window) {
				most.Spent, most.Window = spent, start
			}
		}
		out = append(out, most)
	}
	return out
}

// A ledger collects a Result.
type ledger struct {
	traffic *Traffic
	res     Result
	waits   []waits // by tag
	all     waits
	perBin  []waits
	spent   map[string]*spending // by the name of the quota
	quota   []string             // of each tag
	within  float64              // tokens granted while the recording lasts
}

// bins is how many parts of the time plots have.
const bins = 240

func newLedger(t *Traffic, conf *opening.Config) *ledger {
	l := &ledger{traffic: t, waits: make([]waits, len(t.Tags)), spent: map[string]*spending{}}
	l.res.Tags = make([]TagResult, len(t.Tags))
	for i := range t.Tags {
		l.res.Tags[i] = TagResult{Name: t.Tags[i].Name, Reasons: map[throttle.Reason]float64{}}
	}
	l.res.All = TagResult{Reasons: map[throttle.Reason]float64{}}
	n := min(bins, t.Minutes)
	l.perBin, l.res.Bins = make([]waits, n), make([]Bin, n)
	for i := range n {
		l.res.Bins[i] = Bin{From: t.Length() * time.Duration(i) / time.Duration(n), ByTag: make([]float64, len(t.Tags))}
	}
	for i := range t.Tags {
		name, q := "", limit.Quota{}
		if conf != nil && conf.Quotas.Given() {
			name, q = conf.Quotas.Find(t.Tags[i].Name)
		}
		l.quota = append(l.quota, name)
		if l.spent[name] != nil {
			continue
		}
		s := &spending{of: name, budgets: q.Budgets, start: make([]time.Time, len(q.Budgets)), end: make([]time.Time, len(q.Budgets))}
		for range q.Budgets {
			s.windows = append(s.windows, map[int64]float64{})
		}
		l.spent[name] = s
	}
	return l
}

// bin returns the part of the time in which a moment of the recording is; nil if it is over.
func (l *ledger) bin(at time.Duration) (int, bool) {
	i := int(float64(at) / float64(l.traffic.Length()) * float64(len(l.res.Bins)))
	return min(max(i, 0), len(l.res.Bins)-1), at < l.traffic.Length()
}

// granted books calls of a tag that came at a moment of the recording and were granted tokens at another.
func (l *ledger) granted(tag int, calls int, tokens float64, came, at time.Duration) {
	n := float64(calls)
	for _, r := range []*TagResult{&l.res.Tags[tag], &l.res.All} {
		r.Granted += n
		r.Tokens += tokens
	}
	wait := at - came
	l.waits[tag].add(wait, int64(calls))
	l.all.add(wait, int64(calls))
	if i, in := l.bin(at); in {
		l.res.Bins[i].Tokens += tokens
		l.res.Bins[i].ByTag[tag] += tokens
		l.within += tokens
	}
	i, _ := l.bin(came)
	l.perBin[i].add(wait, int64(calls))
	if s := l.spent[l.quota[tag]]; len(s.budgets) > 0 {
		s.add(l.traffic.Start.Add(at), tokens)
	}
}

// refused books calls of a tag that came at a moment of the recording and were refused.
func (l *ledger) refused(tag, calls int, why throttle.Reason, came time.Duration) {
	n := float64(calls)
	for _, r := range []*TagResult{&l.res.Tags[tag], &l.res.All} {
		r.Refused += n
		r.Reasons[why] += n
	}
	i, _ := l.bin(came)
	l.res.Bins[i].Refused += n
}

// unended books calls of a tag that still wait when the replay ends.
func (l *ledger) unended(tag, calls int) {
	l.res.Tags[tag].Left += float64(calls)
	l.res.All.Left += float64(calls)
}

// result returns what the ledger has collected.
func (l *ledger) result() *Result {
	r := &l.res
	finish := func(t *TagResult, w *waits) {
		t.Calls = t.Granted + t.Refused + t.Left
		t.P50, t.P99, t.Longest = w.quantile(0.5), w.quantile(0.99), w.most
	}
	finish(&r.All, &l.all)
	for i := range r.Tags {
		finish(&r.Tags[i], &l.waits[i])
		r.Tags[i].Budgets = l.spent[l.quota[i]].spends()
	}
	for i := range r.Bins {
		r.Bins[i].P50, r.Bins[i].P99 = l.perBin[i].quantile(0.5), l.perBin[i].quantile(0.99)
	}
	r.Use = l.within / (r.PerSecond * l.traffic.Length().Seconds())
	return r
}

// Reason returns the reason for which most calls of a tag were refused, and how many other reasons there are.
func (t *TagResult) Reason() (most throttle.Reason, others int) {
	for r, n := range t.Reasons {
		if best := t.Reasons[most]; n > best || n == best && strings.Compare(string(r), string(most)) < 0 {
			most = r
		}
	}
	return most, max(len(t.Reasons)-1, 0)
}

// Recorded returns the recording as a result: all calls as they came. Use and budgets are counted by a configuration; nil: by none.
func Recorded(t *Traffic, conf *opening.Config) *Result {
	l := newLedger(t, conf)
	if conf != nil {
		l.res.PerSecond = conf.Limit.Rate()
	}
	for i := range t.Tags {
		for _, m := range t.Tags[i].Minutes {
			at := time.Duration(m.Index) * time.Minute
			calls, tokens := m.Rate*60, m.Rate*60*m.Cost
			for _, r := range []*TagResult{&l.res.Tags[i], &l.res.All} {
				r.Granted += calls
				r.Tokens += tokens
			}
			b, _ := l.bin(at + 30*time.Second)
			l.res.Bins[b].Tokens += tokens
			l.res.Bins[b].ByTag[i] += tokens
			l.within += tokens
			if s := l.spent[l.quota[i]]; len(s.budgets) > 0 {
				s.add(t.Start.Add(at), tokens)
			}
		}
	}
	return l.result()
}
