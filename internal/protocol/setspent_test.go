package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A recordStore is the record of a tagPool as a store for operators.
type recordStore struct {
	driver.Store

	p       *tagPool
	refuses error // what Save says
}

func (s *recordStore) at() driver.At {
	return driver.At{Now: tagBase.UnixMicro() + s.p.now.Microseconds(), Identity: s.p.server}
}

func (s *recordStore) Load(context.Context, string) ([]driver.Document, []driver.RosterRow, error) {
	return s.p.record.Load()
}

func (s *recordStore) Save(_ context.Context, _ string, d driver.DocumentReport) (driver.Version, error) {
	if s.refuses != nil {
		return 0, s.refuses
	}
	v, _, err := s.p.record.Save(&d, s.at())
	return v, err
}

func (s *recordStore) TagBuckets(context.Context, string) ([]driver.TagBucket, error) {
	return s.p.record.LoadTagBuckets()
}

func (s *recordStore) SetSpent(_ context.Context, _ string, r driver.SpentReport) error {
	return s.p.record.SetSpent(&r, s.at())
}

// spent is what the store has counted of a tag, and the most that a processor knows.
func (p *tagPool) spent(tag string) (counted, seen int64) {
	for _, t := range p.record.TagBuckets {
		if t.Key == tagname.Key(tag) && len(t.Spent) > 0 {
			counted = t.Spent[len(t.Spent)-1].Tokens
		}
	}
	for _, m := range p.members {
		for i := range m.p.tags.book.accounts {
			if a := &m.p.tags.book.accounts[i]; a.Tag == tag {
				seen = max(seen, a.budgets[0].seen)
			}
		}
	}
	return counted, seen
}

// rest makes callers of a tag go away.
func (p *tagPool) rest(tag string) {
	p.everywhere(tag, 0)
	for _, m := range p.members {
		m.stock(tag).Waiting = 0
	}
}

func (p *tagPool) wipe(server string) { p.record, p.server = driver.Record{}, server }

var daily = limit.Budget{Amount: 1000, Per: limit.PeriodDay, Zone: "UTC"}

func spentPool(t *testing.T) (p *tagPool, set func(tag string, tokens int64) error) {
	t.Helper()
	budgets := limit.Quota{Budgets: []limit.Budget{daily}}
	p = newTagPool(t, 1000, limit.Quotas{Tags: map[string]limit.Quota{"acme": budgets, "beta": budgets}}, 3)
	p.server = "one"
	s := &recordStore{p: p}
	return p, func(tag string, tokens int64) error {
		start, end := daily.Window(tagBase.Add(p.now))
		return SetSpent(t.Context(), s, "pool", SpentChange{Tag: tag, Start: start, End: end, Tokens: tokens, By: "ann", Reason: "bill"})
	}
}

// What is spent is what was set, and what is drawn after that, over the whole pool.
func TestSetSpentIsExact(t *testing.T) {
	p, set := spentPool(t)
	p.run(20 * time.Second) // the freeze of a new pool
	p.everywhere("acme", 50)
	p.run(30 * time.Second)
	counted, _ := p.spent("acme")
	require.EqualValues(t, 1000, counted)
	require.Zero(t, p.rate("acme", 5*time.Second), "all is spent")

	require.NoError(t, set("acme", 400))
	before := p.total("acme")
	p.run(30 * time.Second)
	require.InDelta(t, 600, p.total("acme")-before, 1, "what was set free")
	require.Zero(t, p.rate("acme", 5*time.Second))

	p.everywhere("beta", 10)
	p.run(10 * time.Second)
	require.Positive(t, p.rate("beta", 5*time.Second))
	require.NoError(t, set("beta", 1000))
	p.run(5 * time.Second) // what is in hand can still be used
	require.Zero(t, p.rate("beta", 2*time.Second))
}

// A lower number stays when the store has lost its memory, a change counts once, and what was spent after it is not forgotten.
func TestProcessorsForgetWhatIsAboveWhatWasSet(t *testing.T) {
	p, set := spentPool(t)
	p.run(20 * time.Second)
	p.everywhere("acme", 50)
	p.run(30 * time.Second)
	p.rest("acme")
	p.run(15 * time.Second) // until it has not a token in hand
	_, seen := p.spent("acme")
	require.EqualValues(t, 1000, seen)
	require.NoError(t, set("acme", 400))
	p.run(3 * time.Second)
	_, seen = p.spent("acme")
	require.EqualValues(t, 400, seen)

	p.wipe("two")
	p.run(30 * time.Second)
	counted, _ := p.spent("acme")
	require.EqualValues(t, 400, counted, "what processors have told")

	p.everywhere("acme", 50)
	p.run(2 * time.Second)
	p.rest("acme")
	p.run(15 * time.Second)
	_, spent := p.spent("acme") // the most that was drawn; some of it was given back
	require.Greater(t, spent, int64(450))
	require.NoError(t, set("beta", 7))
	p.run(3 * time.Second)
	p.wipe("three")
	p.run(30 * time.Second)
	counted, seen = p.spent("acme")
	require.Equal(t, spent, counted, "a change counts once")
	require.Equal(t, spent, seen)
	m := p.join() // reads the whole document, and knows nothing that it would lower
	p.run(5 * time.Second)
	counted, _ = p.spent("acme")
	require.Equal(t, spent, counted)
	require.Empty(t, m.p.tags.spent.news, "what was before it is no news")
}

// Every processor that was there says once who has set what.
func TestSetSpentIsLogged(t *testing.T) {
	p, set := spentPool(t)
	p.run(20 * time.Second)
	require.NoError(t, set("", 5))
	p.run(3 * time.Second)
	for _, m := range p.members {
		failed := m.p.Situation(p.now, errors.New("away"))
		require.Len(t, failed.spent, 1)
		is := m.p.Situation(p.now, nil)
		var b Logbook
		lines := b.Observe(tagBase, &is)
		require.Len(t, lines, 1)
		start, _ := daily.Window(tagBase)
		require.Equal(t, []any{"tag", "other", "tokens", int64(5), "window", start.Format(time.RFC3339), "by", "ann", "reason", "bill"}, lines[0].Args)
		require.Empty(t, m.p.Situation(p.now, nil).spent)
	}
}

func TestSetSpentRefuses(t *testing.T) {
	p, set := spentPool(t)
	require.ErrorIs(t, set("acme", 1), driver.ErrNoPool)
	p.run(30 * time.Second)
	p.everywhere("acme", 50)
	p.run(30 * time.Second)
	bad := (*driver.RequestError)(nil)
	for name, tokens := range map[string]int64{"acme": -1, strings.Repeat("n", tagname.MaxLen+1): 1, "a\n": 1} {
		require.ErrorAs(t, set(name, tokens), &bad)
	}
	start, end := daily.Window(tagBase.Add(48 * time.Hour))
	s := &recordStore{p: p}
	require.ErrorAs(t, SetSpent(t.Context(), s, "pool", SpentChange{Tag: "acme", Start: start, End: end}), &bad, "another day")
	require.Equal(t, "Start", bad.Field)
	pause := (*limit.PauseError)(nil)
	require.ErrorAs(t, SetSpent(t.Context(), s, "pool", SpentChange{By: "a\n", Start: start, End: end}), &pause)
	require.ErrorIs(t, SetSpent(t.Context(), driver.Store(nil), "pool", SpentChange{Start: start, End: end}), driver.ErrNoTagBuckets)
	counted, _ := p.spent("acme")
	require.EqualValues(t, 1000, counted, "nothing was changed")

	p.wipe("two")
	p.run(3 * time.Second)
	require.ErrorAs(t, set("acme", 999), &bad)
	require.Equal(t, "Tokens", bad.Field)
	require.Contains(t, bad.Allowed, "1000 or more while the pool is frozen, for ")
	require.NoError(t, set("acme", 1000), "as much is no less")
	require.NoError(t, set("beta", 0), "of another tag nothing is known")
	require.NoError(t, set("acme", 1500), "more is safe")
	p.run(3 * time.Second)
	counted, _ = p.spent("acme")
	require.EqualValues(t, 1500, counted)
	hourly := limit.Budget{Per: limit.PeriodHour, Zone: "UTC"}
	start, end = hourly.Window(tagBase.Add(p.now))
	require.NoError(t, SetSpent(t.Context(), s, "pool", SpentChange{Tag: "acme", Start: start, End: end}), "nor of another window")
	s.refuses = errors.New("away")
	start, end = daily.Window(tagBase)
	require.ErrorContains(t, SetSpent(t.Context(), s, "pool", SpentChange{Tag: "acme", Start: start, End: end, Tokens: 1600}), "away")
}

func TestSpentDocument(t *testing.T) {
	var l spentList
	start, end := daily.Window(tagBase)
	for i := range 50 {
		c := SpentChange{fmt.Sprint("t", i%40), start, end, int64(i), "ann", "bill"}
		l = l.with(spentEntry{c, driver.Version(i + 1)})
	}
	require.Len(t, l, maxSpentEntries)
	require.EqualValues(t, 50, l[len(l)-1].at)
	body, err := l.body()
	require.NoError(t, err)
	got, err := parseSpentList(body)
	require.NoError(t, err)
	require.Equal(t, l, got)
	require.Len(t, l.since(48), 2)

	var full spentList // to the last byte
	says := func(i, n int) {
		full = full.with(spentEntry{SpentChange{fmt.Sprint("t", i), start, end, 1, "", strings.Repeat("r", n)}, 1})
	}
	for i := range 19 {
		says(i, 100)
	}
	body, err = full.body()
	require.NoError(t, err)
	for i, room := 0, wire.MaxDocumentBytes-len(body); room > 0; i, room = i+1, room-28 {
		says(i, 100+min(room, 28))
	}
	require.Len(t, full, 19)
	says(18, 101)
	require.Len(t, full, 18, "the oldest one has gone")

	long := l
	for i := range 30 {
		long = long.with(spentEntry{SpentChange{strings.Repeat("<", 50) + fmt.Sprint(i), start, end, 1, "", strings.Repeat("&", bounds.MaxPauseReason)}, 100})
	}
	body, err = long.body()
	require.NoError(t, err)
	require.LessOrEqual(t, len(body), wire.MaxDocumentBytes)
	require.NotEmpty(t, long)
	require.True(t, slices.ContainsFunc(long, func(e spentEntry) bool { return strings.HasSuffix(e.Tag, "29") }), "the newest one stays")

	for _, text := range []string{
		"", "{", "null 1", `{"more":1}`, `{"set":[{"tag":"a\u0000","start_us":0,"end_us":1}]}`, `{"set":[{"tag":"a","start_us":2,"end_us":1}]}`,
		`{"set":[{"tag":"a","start_us":0,"end_us":1,"tokens":-1}]}`,
		`{"set":[` + strings.Repeat(`{"start_us":0,"end_us":1},`, 20) + `{"start_us":0,"end_us":1}]}`,
	} {
		_, err := parseSpentList([]byte(text))
		require.Error(t, err, text)
	}
}

// A processor takes a document once: what is spent after it counts, whatever versions its changes name. Other windows and tags stay.
func TestAChangeOfSpentCountsOnce(t *testing.T) {
	k := keep(t, budgeted(limit.ThenRefuse))
	k.report(0, sec, false, []sharing.TagReport{{Tag: "a"}, {Tag: "b"}})
	start, end := limit.Budget{Per: limit.PeriodHour, Zone: "UTC"}.Window(time.UnixMicro(wallZero))
	body, err := spentList{{SpentChange{Tag: "a", Start: start, End: end, Tokens: 5}, 9}}.body()
	require.NoError(t, err)
	var r spentReader
	held := pooldoc.Held{Document: driver.Document{Name: spentDocument, Version: 3, Body: body}}
	for _, after := range []int64{5, 50} {
		k.account("a").budgets[0].seen, k.account("a").budgets[1].seen, k.account("b").budgets[0].seen = 50, 50, 50
		r.take(held, &k.tagBook)
		require.Equal(t, after, k.account("a").budgets[0].seen)
		require.EqualValues(t, 50, k.account("a").budgets[1].seen)
		require.EqualValues(t, 50, k.account("b").budgets[0].seen)
	}
}
