package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A processor reads a document once. One that it cannot read changes nothing, and one that says the same makes no change.
func TestQuotasOfDocuments(t *testing.T) {
	file := func(total int) driver.Document {
		doc := driver.Document{Name: fileDocument}
		if total > 0 {
			doc.Version = 1
			body, err := File{Hash: "0123abcd", Quotas: &limit.Quotas{Other: limit.Quota{Total: total}}}.body()
			require.NoError(t, err)
			doc.Body = body
		}
		return doc
	}
	var g tagging
	for _, c := range []struct {
		doc     driver.Document
		changed bool
		total   int
	}{
		{file(5), true, 5},
		{file(5), false, 5},
		{driver.Document{Name: fileDocument, Version: 1, Body: []byte("?")}, false, 5},
		{file(6), true, 6},
		{file(0), true, 0},
	} {
		require.Equal(t, c.changed, g.takeFile(c.doc))
		require.Equal(t, c.total > 0, g.file != nil)
		require.True(t, g.file == nil || g.file.Other.Total == c.total)
	}

	m := moment{now: sec}
	for _, c := range []struct {
		version driver.Version
		body    string
		changed bool
		total   int
	}{
		{2, `{"other":{"total":5}}`, true, 5}, {2, `{"other":{"total":6}}`, false, 5}, {3, "?", false, 5}, {1, `{"other":{"total":7}}`, true, 7},
	} {
		changed := g.load(m, pooldoc.Held{Document: driver.Document{Name: quotaDocument, Version: c.version, Body: []byte(c.body)}})
		require.Equal(t, c.changed, changed)
		require.Equal(t, c.version, g.version)
		require.Equal(t, c.body == "?", g.unreadable != nil)
		require.Equal(t, c.total, g.changes.Other.Total)
	}
}

// Documents, an older processor and a freeze change what the next request says of tags.
func TestWhatARequestSaysOfTags(t *testing.T) {
	budget := limit.Quota{Budgets: []limit.Budget{daily}}
	for name, c := range map[string]struct {
		but         func(p *Processor)
		draws       int
		asks, store bool
	}{
		"it asks":                {func(*Processor) {}, 1, true, true},
		"the freeze is over":     {func(p *Processor) { p.frozen = sec }, 1, true, true},
		"frozen":                 {func(p *Processor) { p.frozen = sec + 1 }, 2, true, true},
		"frozen without a share": {func(p *Processor) { p.frozen, p.held = sec+1, 0 }, 1, false, true},
		"without a share":        {func(p *Processor) { p.held = 0 }, 1, true, true},
		"but tokens are issued":  {func(p *Processor) { p.frozen, p.held, p.issuing = sec+1, 0, true }, 2, true, true},
		"about to leave":         {func(p *Processor) { p.tags.retired = true }, 0, false, true},
		"the store is lost":      {func(p *Processor) { p.degraded = true }, 0, false, false},
		"an older one is there":  {func(p *Processor) { p.tags.policy.capable = false }, 0, false, false},
		"another in its place":   {func(p *Processor) { p.state = StateReplaced }, 0, false, false},
		"no quotas":              {func(p *Processor) { p.tags.on = false }, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := taggedProcessor(t, budget)
			k := &p.tags.book
			k.wall, k.wallAt = wallZero, 0
			k.report(sec, sec, false, []sharing.TagReport{{Tag: "acme", Waiting: 5}, {Tag: "idle"}})
			k.setQuotas(limit.Quotas{Tags: map[string]limit.Quota{"acme": budget, "idle": budget}}.WithDefaults(sec), 0)
			k.account("idle").budgets[0].seen = 7
			c.but(p)
			for _, unanswered := range [][]driver.Ticket{nil, {{Seq: 1}}} {
				p.unanswered = unanswered
				req := request{}
				p.tags.report(&p.core, sec, &req)
				require.Len(t, req.Draws, c.draws)
				require.Equal(t, c.asks, len(req.Draws) > 0 && req.Draws[0].Ask > 0)
				require.Equal(t, p.tags.on, req.Busy != "")
				require.Equal(t, c.store && unanswered != nil, k.unsure)
			}
		})
	}
}

// The store can be asked for tokens once all processors know quotas: at once, if a tag wants something. Quotas come into force anew when a
// document changes them, and not when it says the same.
func TestWhatAnAnswerChangesForTags(t *testing.T) {
	for name, c := range map[string]struct {
		but    func(p *Processor, a *driver.Answer)
		urgent urgency
		fresh  bool
	}{
		"all know quotas":   {func(*Processor, *driver.Answer) {}, urgencyFast, false},
		"they knew":         {func(p *Processor, _ *driver.Answer) { p.tags.policy.capable = true }, urgencyNone, false},
		"one does not":      {func(_ *Processor, a *driver.Answer) { a.Roster = append(a.Roster, driver.RosterRow{ID: "b"}) }, urgencyNone, false},
		"nothing is wanted": {func(p *Processor, _ *driver.Answer) { p.tags.own = nil }, urgencyNone, false},
		"without quotas":    {func(p *Processor, _ *driver.Answer) { p.tags.on = false }, urgencyNone, false},
		"a file without quotas": {func(p *Processor, _ *driver.Answer) {
			p.docs.Put(driver.Document{Name: fileDocument, Version: 1, Body: []byte("{}")})
			p.changed = []string{fileDocument}
		}, urgencyFast, false},
		"a file": {func(p *Processor, _ *driver.Answer) {
			p.docs.Put(driver.Document{Name: fileDocument, Version: 1, Body: []byte(`{"hash":"0123abcd","quotas":{"tags":{}},"count":1}`)})
			p.changed = []string{fileDocument}
		}, urgencyFast, true},
		"the same file": {func(p *Processor, _ *driver.Answer) {
			p.docs.Put(driver.Document{Name: fileDocument, Version: 1, Body: []byte(`{"hash":"0123abcd","quotas":{"tags":{}},"count":1}`)})
		}, urgencyFast, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := taggedProcessor(t, limit.Quota{Total: 5})
			p.tags.policy.capable, p.tags.fresh, p.tags.own = false, false, []busyTag{{rate: 1}}
			a := driver.Answer{Grant: driver.Grant{Roster: []driver.RosterRow{{ID: "a"}}}, Lease: driver.DefaultLease}
			c.but(p, &a)
			require.Equal(t, c.urgent, p.tags.take(&p.core, sec, &a))
			require.Equal(t, c.fresh, p.tags.fresh)
		})
	}
}

// Tags decide on the division if there are quotas and a limit, for processors in the roster.
func TestWhenTagsHaveASay(t *testing.T) {
	busy := packBusy(0, 0, 0, []busyTag{{rate: 5000}})
	rows := []driver.RosterRow{{ID: "a", Busy: busy}, {ID: "b", Busy: busy}}
	for name, c := range map[string]struct {
		but  func(p *Processor)
		self int
		ok   bool
	}{
		"the first":      {func(*Processor) {}, 0, true},
		"the second":     {func(*Processor) {}, 1, true},
		"not there":      {func(*Processor) {}, -1, false},
		"no limit":       {func(p *Processor) { p.tags.most = 0 }, 0, false},
		"without quotas": {func(p *Processor) { p.tags.on = false }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := taggedProcessor(t, limit.Quota{})
			p.tags.most, p.tags.own = 1000, []busyTag{{key: acmeKey(), rate: 333.3}}
			p.tags.book.news = false
			c.but(p)
			wants, ok := p.tags.wants(&p.core, 0, rows, c.self)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.ok, p.tags.book.news, "the limiter gets their rates")
			if ok {
				require.InDelta(t, 0.3333, wants[c.self].Fraction(), 1e-8, "no slots, which are whole")
			}
		})
	}
	p := taggedProcessor(t, limit.Quota{Total: 5})
	p.tags.most = 1000
	require.Equal(t, driver.Whole/2000, p.tags.token(2*sec))

	minutely := hook.Ceiling(limitOf(t, throttle.Limit{Max: 600, Per: time.Minute, Hard: true}))
	p.Configure(sharing.Terms{Ceiling: minutely, Quotas: &limit.Quotas{}})
	p.ceiling.law.Config.Granted = 0.5
	require.InDelta(t, 5, p.rateInForce(0), 1e-9)
	p.reportTags(sec, []sharing.TagReport{{Tag: "a"}})
	require.Len(t, p.tags.book.accounts, 1)
	for _, terms := range []sharing.Terms{{Slots: 3, Quotas: &limit.Quotas{}}, {Ceiling: minutely}} {
		p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
		p.Configure(terms)
		p.reportTags(sec, []sharing.TagReport{{Tag: "a"}})
		require.Empty(t, p.tags.book.accounts)
	}
}
