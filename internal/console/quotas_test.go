package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// tenants are the quotas of the tests: 30 of 100 tokens per second are reserved.
var tenants = throttle.Quotas{
	Tags: map[string]throttle.Quota{
		"acme": {Reserved: 30, Budgets: []throttle.Budget{{Amount: 1000, Per: limit.PeriodHour}, {Amount: 5000, Per: limit.PeriodMonth}}},
		"beta": {Total: 40, Class: limit.ClassBatch},
		"idle": {Total: 600, Per: time.Minute, Hard: true, Shadow: true},
	},
	Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 7}}},
}

// withTags makes a processor of a limit of 100 per second tell what real ones tell of quotas, and of tags that each use so
// many tokens per second.
func (m *member) withTags(t *testing.T, q throttle.Quotas, uses map[string]int64) {
	t.Helper()
	limit := throttle.Limit{Max: 100, Per: time.Second}
	p := protocol.NewProcessor(protocol.ProcessorConfig{Pool: m.req.Pool, ID: m.req.ID}, "1")
	q = q.WithDefaults(limit.Per)
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limit), Quotas: &q})
	for s := range int64(4) {
		reports := []sharing.TagReport{}
		for tag, rate := range uses {
			reports = append(reports, sharing.TagReport{Tag: tag, Used: rate * s})
		}
		now := time.Duration(s) * time.Second
		p.Yield(now, driver.Whole, reports)
		m.req.Busy = p.Request(now, uint64(s)+1, protocol.Observation{Demand: driver.Whole}).Busy
	}
	m.sync(t)
}

// ofHundred is the note of a processor with a limit of 100 per second.
const ofHundred = "1 0 100 1000000 0 0"

func rowOf(t *testing.T, q *quotaTable, id string) tagRow {
	t.Helper()
	for i := range q.Tags {
		if q.Tags[i].ID == id {
			return q.Tags[i]
		}
	}
	require.Fail(t, "no such row", "%s in %+v", id, q.Tags)
	return tagRow{}
}

// of returns the same quotas for all pools.
func of(q throttle.Quotas) func(string) throttle.Quotas {
	return func(string) throttle.Quotas { return q }
}

// table is that of a pool "p" of a console that is configured with quotas.
func table(t *testing.T, store driver.Store, configured throttle.Quotas) *quotaTable {
	t.Helper()
	o, err := protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	h := &hub{store: store, configured: of(configured)}
	return h.quotas(t.Context(), &feed{}, &o, time.Now())
}

// What is known of each tag: by name where the console has the same quotas as the processors.
func TestQuotaTable(t *testing.T) {
	store := newCounted()
	m := join(t, store, "p", "a", ofHundred, driver.Whole)
	require.Nil(t, table(t, store, tenants), "nobody has quotas")
	m.withTags(t, tenants, map[string]int64{"acme": 20, "beta": 50, "free/x": 3, "": 5})
	beta := throttle.Quota{Total: 50, Weight: 3}
	require.NoError(t, protocol.SaveQuota(t.Context(), store, "p", "beta", &beta, false))

	q := table(t, store, tenants)
	require.True(t, q.Known)
	require.Empty(t, q.Failure)
	require.InDelta(t, 30, q.Reserved, 0.1)
	require.InDelta(t, 100, q.Limit, 0)
	require.Len(t, q.Tags, 5)
	r := rowOf(t, q, "pattern free/*")
	require.True(t, r.Pattern)
	require.Nil(t, r.Tag, "a pattern cannot be changed")
	require.InDelta(t, 3, r.Demand, 0.1)
	require.Equal(t, "7 per 1s", r.Quota.TotalText)
	require.Equal(t, "tag beta", q.Tags[0].ID, "the busiest is the first")
	r = rowOf(t, q, "tag acme")
	require.Equal(t, "acme", *r.Tag)
	require.InDelta(t, 20, r.Demand, 0.1)
	require.InDelta(t, 20, r.Used, 0.2)
	require.InDelta(t, 100, *r.Target, 0.1, "it has no total")
	require.Equal(t, "demand", r.By)
	require.Equal(t, 1, r.Processors)
	require.Equal(t, quotaInForce{Reserved: 30, Per: 1, Weight: 1, Class: "interactive", ReservedText: "30 per 1s"}, *r.Quota)
	require.False(t, r.Changed)
	r = rowOf(t, q, "tag beta")
	require.True(t, r.Changed)
	require.Equal(t, quotaInForce{Total: 50, Burst: 5, Per: 1, Weight: 3, Class: "interactive", TotalText: "50 per 1s"}, *r.Quota)
	r = rowOf(t, q, "tag idle")
	require.Zero(t, r.Demand)
	require.Nil(t, r.Target, "it asks for nothing")
	require.Equal(t, quotaInForce{
		Total: 600, Burst: 1, Per: 60, Weight: 1, Class: "interactive", Hard: true, Shadow: true, TotalText: "600 per 1m, hard",
	}, *r.Quota)
	r = rowOf(t, q, idOther)
	require.Equal(t, "all others", r.Name)
	require.Empty(t, *r.Tag)
	require.InDelta(t, 5, r.Demand, 0.1)
}

// A tag that gets all of its total is held by that: a processor tells no demand above it.
func TestHeldByItsTotal(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", ofHundred, driver.Whole).withTags(t, tenants, map[string]int64{"beta": 50})
	r := rowOf(t, table(t, store, tenants), "tag beta")
	require.InDelta(t, 40, r.Demand, 0.1)
	require.Equal(t, "rate_cap", r.By)
}

// A console with other quotas, or none, tells no targets and no names but those that were changed. A pool with quotas that bound
// nothing has none that are not known.
func TestQuotasThatAreNotKnown(t *testing.T) {
	store := newCounted()
	m := join(t, store, "p", "a", ofHundred, driver.Whole)
	m.withTags(t, tenants, map[string]int64{"acme": 20, "beta": 39})
	require.NoError(t, protocol.SaveQuota(t.Context(), store, "p", "beta", &throttle.Quota{Total: 30}, false))
	for _, own := range []throttle.Quotas{{}, {Tags: map[string]throttle.Quota{"acme": {Reserved: 29}}}} {
		q := table(t, store, own)
		require.False(t, q.Known)
		require.Len(t, q.Tags, 2)
		require.Nil(t, rowOf(t, q, "tag beta").Target)
		require.Equal(t, "30 per 1s", rowOf(t, q, "tag beta").Quota.TotalText)
		for _, r := range q.Tags {
			require.Empty(t, r.By)
			if r.ID != "tag beta" {
				require.Nil(t, r.Tag)
				require.Equal(t, byte('#'), r.Name[0])
				require.InDelta(t, 20, r.Demand, 0.1)
			}
		}
	}
	m.withTags(t, throttle.Quotas{Tags: map[string]throttle.Quota{}}, nil)
	require.True(t, table(t, store, throttle.Quotas{}).Known)
}

// Of each budget what is spent of its present window. Hours and days that begin together are one window at the store.
func TestSpentOfBudgets(t *testing.T) {
	store := newCounted()
	m := join(t, store, "p", "a", ofHundred, driver.Whole)
	now := time.Now()
	draw := func(key uint64, tokens int64, start, end time.Time) driver.Draw {
		return driver.Draw{Key: key, Budgets: []driver.BudgetDraw{
			{Amount: wire.MaxAmount, Start: start.UnixMicro(), End: end.UnixMicro(), Seen: tokens},
		}}
	}
	month, end := tenants.Tags["acme"].Budgets[1].Window(now)
	soon := now.Add(time.Hour)
	m.req.Draws = []driver.Draw{
		draw(tagname.Key("acme"), 1200, month, end), draw(tagname.Key("idle"), 5, now.Add(-time.Hour), soon),
		draw(tagname.Key("nobody"), 7, now.Add(-time.Hour), soon), draw(tagname.OtherKey, 8, now.Add(-time.Hour), now.Add(-time.Minute)),
	}
	m.withTags(t, tenants, map[string]int64{"acme": 20})

	q := table(t, store, tenants)
	acme := rowOf(t, q, "tag acme").Budgets
	require.Equal(t, []budgetRow{{Per: "month", Spent: 1200, Amount: 5000, Ends: end.UnixMilli(), start: month.UnixMilli()}}, acme[1:])
	require.Equal(t, "hour", acme[0].Per)
	require.Equal(t, []budgetRow{{Spent: 5, Ends: soon.UnixMilli()}}, rowOf(t, q, "tag idle").Budgets, "of a budget that it has no more")
	require.Empty(t, rowOf(t, q, idOther).Budgets, "the window has ended")
	hash := q.Tags[len(q.Tags)-1]
	for _, r := range q.Tags {
		if r.Tag == nil {
			hash = r
		}
	}
	require.Equal(t, []budgetRow{{Spent: 7, Ends: soon.UnixMilli()}}, hash.Budgets)

	r := tagRow{Budgets: []budgetRow{{Per: "hour", start: month.UnixMilli()}, {Per: "month", start: month.UnixMilli()}}}
	r.spent(operate.SpentWindow{Start: month, End: end, Tokens: 9})
	require.EqualValues(t, 9, r.Budgets[0].Spent)
	require.EqualValues(t, 9, r.Budgets[1].Spent)
	require.Len(t, r.Budgets, 2)
}

// Many tags are not all shown, and the busiest are.
func TestManyTags(t *testing.T) {
	store := newCounted()
	q := throttle.Quotas{Tags: map[string]throttle.Quota{}}
	for i := range 3 * mostTags {
		q.Tags[fmt.Sprint("t", i)] = throttle.Quota{Weight: 1 + i}
	}
	join(t, store, "p", "a", ofHundred, driver.Whole).withTags(t, q, map[string]int64{"t7": 9})
	got := table(t, store, q)
	require.Len(t, got.Tags, mostTags)
	require.Equal(t, 2*mostTags+1, got.More)
	require.Equal(t, "t7", got.Tags[0].Name)
}

// poor is a store that cannot tell what is spent.
type poor struct {
	*counted

	err error
}

func (s poor) TagBuckets(context.Context, string) ([]driver.TagBucket, error) { return nil, s.err }

// What cannot be read is said, and the rest is shown. A store without tag buckets has no budgets.
func TestQuotasThatCannotBeRead(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", ofHundred, driver.Whole).withTags(t, tenants, map[string]int64{"acme": 20})
	require.Empty(t, table(t, poor{store, fmt.Errorf("old: %w", driver.ErrNoTagBuckets)}, tenants).Failure)
	q := table(t, poor{store, errors.New("no such day")}, tenants)
	require.Contains(t, q.Failure, "no such day")
	require.InDelta(t, 20, rowOf(t, q, "tag acme").Demand, 0.1)

	require.NoError(t, protocol.SaveQuota(t.Context(), store, "p", "beta", &throttle.Quota{Total: 1}, false))
	o, err := protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	h, f := &hub{store: store, configured: of(tenants)}, &feed{}
	h.quotas(t.Context(), f, &o, time.Now())
	for i := range o.Documents {
		o.Documents[i].Body = []byte("later")
	}
	q = h.quotas(t.Context(), f, &o, time.Now())
	require.Contains(t, q.Failure, "has no changes of quotas")
	require.True(t, rowOf(t, q, "tag beta").Changed, "what was known goes on")
}

// The store is not asked for changes, which the overview has, and for what is spent at a third of the pace.
func TestQuotasAreAskedForSeldom(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", ofHundred, driver.Whole).withTags(t, tenants, map[string]int64{"acme": 20})
	require.NoError(t, protocol.SaveQuota(t.Context(), store, "p", "beta", &throttle.Quota{Total: 30}, false))
	h, f, now := &hub{store: store, every: time.Second, configured: of(tenants)}, &feed{}, time.Now()
	o, err := protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	before := store.asked("p")
	for range 5 {
		require.True(t, rowOf(t, h.quotas(t.Context(), f, &o, now), "tag beta").Changed)
	}
	require.Equal(t, before, store.asked("p"))
	require.Equal(t, now, f.spentAsked)
	h.quotas(t.Context(), f, &o, now.Add(3*time.Second))
	require.Equal(t, now.Add(3*time.Second), f.spentAsked)
}

// A change needs a session and a reason, keeps what it does not name, and is seen by all, with who made it and why.
func TestChangeAQuota(t *testing.T) {
	store := newCounted()
	m := join(t, store, "p", "a", ofHundred, driver.Whole)
	m.withTags(t, tenants, map[string]int64{"acme": 20})
	join(t, store, "bare", "a", ofHundred, driver.Whole)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	k, c := serveConfig(t, Config{Store: store, Token: token, Quotas: of(tenants), Every: 5 * time.Millisecond, Logger: logger})
	c.login(t)
	var events []string
	f, _, stop := k.hub.look(k.ctx, "p")
	defer stop()
	require.Eventually(t, func() bool { return k.hub.recent("p") != nil }, 10*time.Second, time.Millisecond)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	pool := operate.Pool{Store: store, Name: "p", Quotas: tenants}
	own := protocol.QuotaOrder{Until: until, By: "bob", Reason: "trial"}
	require.NoError(t, pool.SetQuotaFor(t.Context(), "free/y", throttle.Quota{Total: 1}, own, false))
	k.hub.hurry(t.Context(), "p")
	for _, step := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/api/quota", `{"pool":"p","tag":"acme","total":50}`, 400, "a reason is missing"},
		{"/api/quota/clear", `{"pool":"p","tag":"acme"}`, 400, "a reason is missing"},
		{"/api/quota", `{"pool":"p","tag":"acme","reserved":200,"reason":"r"}`, 422, "tokens per second by all tags together"},
		{"/api/quota", `{"pool":"p","tag":"acme","reserved":-1,"reason":"r"}`, 422, "reserved is -1"},
		{"/api/quota", `{"pool":"p","tag":"acme","class":"low","reason":"r"}`, 422, `class is`},
		{"/api/quota", `{"pool":"p","tag":"acme","weight":0.5,"reason":"r"}`, 400, "not what is asked for"},
		{"/api/quota", `{"pool":"p","tag":"a\nb","total":5,"reason":"r"}`, 422, "Tag is"},
		{"/api/quota", `{"pool":"bare","tag":"acme","total":5,"reason":"r"}`, 422, "quotas"},
		{"/api/quota", `{"pool":"none","tag":"acme","total":5,"reason":"r"}`, 404, "no record"},
		{"/api/quota", `{"pool":"p","tag":"acme","total":50,"reason":"a sale"}`, 200, ""},
		{"/api/quota", `{"pool":"p","tag":"acme","weight":2,"class":"batch","reason":"over"}`, 200, ""},
		{"/api/quota", `{"pool":"p","tag":"free/y","reserved":120,"total":120,"perSeconds":60,"reason":"more"}`, 200, ""},
		{"/api/quota", `{"pool":"p","tag":"","total":9,"seconds":7200,"reason":"flood"}`, 200, ""},
	} {
		code, text := c.post(t, step.path, step.body)
		require.Equal(t, step.code, code, "%s %s: %s", step.path, step.body, text)
		require.Contains(t, text, step.want)
	}
	changes, err := protocol.LoadQuotas(t.Context(), store, "p")
	require.NoError(t, err)
	require.Equal(t, map[string]throttle.Quota{
		"acme":   {Reserved: 30, Total: 50, Weight: 2, Class: limit.ClassBatch, Budgets: tenants.Tags["acme"].Budgets},
		"free/y": {Reserved: 120, Total: 120, Per: time.Minute},
	}, changes.Tags)
	require.Equal(t, throttle.Quota{Total: 9}, *changes.Other)
	for tag, want := range map[string]protocol.QuotaOrder{"acme": {By: "ann", Reason: "over"}, "free/y": {Until: until, By: "ann", Reason: "more"}} {
		got := changes.Orders[tag]
		require.Equal(t, want, protocol.QuotaOrder{Until: got.Until, By: got.By, Reason: got.Reason}, "%s: an end stays", tag)
	}
	other := changes.Orders[""].Until
	require.WithinDuration(t, until.Add(time.Hour), other, time.Minute)

	code, text := c.post(t, "/api/quota/clear", `{"pool":"p","tag":"acme","reason":"enough"}`)
	require.Equal(t, 200, code, text)
	changes, err = protocol.LoadQuotas(t.Context(), store, "p")
	require.NoError(t, err)
	require.Len(t, changes.Tags, 1)

	var at position
	for _, e := range f.news(&at, time.Now()).Events {
		require.Equal(t, "quota", e.Kind)
		events = append(events, e.Text)
	}
	const clock = " until 15:04:05 UTC by "
	require.Equal(t, []string{
		"the quota of tag free/y was changed: nothing reserved, rate cap 1 per 1s, weight 1, interactive" + until.Format(clock) + "bob: trial",
		"the quota of tag acme was changed: 30 per 1s reserved, rate cap 50 per 1s, weight 1, interactive by ann: a sale",
		"the quota of tag acme was changed: 30 per 1s reserved, rate cap 50 per 1s, weight 2, batch by ann: over",
		"the quota of tag free/y was changed: 120 per 1m reserved, rate cap 120 per 1m, weight 1, interactive" + until.Format(clock) + "ann: more",
		"the quota of all other tags was changed: nothing reserved, rate cap 9 per 1s, weight 1, interactive" + other.Format(clock) + "ann: flood",
		"ann clears the quota of tag acme: enough",
		"the quota of tag acme is as configured again",
	}, events)
	require.Contains(t, log.String(), `tag=acme by=ann reason="a sale"`)

	code, text = c.post(t, "/api/quota", `{"pool":"p","tag":"acme","reserved":200,"force":true,"reason":"meant"}`)
	require.Equal(t, 200, code, text)
}

// What an operator sees of quotas and does with them, in a real browser.
func TestQuotasInABrowser(t *testing.T) {
	store := newCounted()
	const evil = `<img src=x onerror=document.title='evil'>`
	configured := throttle.Quotas{Tags: map[string]throttle.Quota{evil: {Weight: 2}}, Other: tenants.Other, Match: tenants.Match}
	maps.Copy(configured.Tags, tenants.Tags)
	m := join(t, store, "p", "a", ofHundred, driver.Whole)
	month, end := tenants.Tags["acme"].Budgets[1].Window(time.Now())
	m.req.Draws = []driver.Draw{{Key: tagname.Key("acme"), Budgets: []driver.BudgetDraw{
		{Amount: wire.MaxAmount, Start: month.UnixMicro(), End: end.UnixMicro(), Seen: 1250},
	}}}
	m.withTags(t, configured, map[string]int64{"acme": 25, "beta": 10, evil: 1, "free/x": 3})
	join(t, store, "bare", "a", ofHundred, driver.Whole)
	_, c := serveConfig(t, Config{Store: store, Token: token, Quotas: of(configured), Logger: quiet, Every: 100 * time.Millisecond})
	p := chromium(t, c.url+"/#pool=bare", size{width: 1000, height: 900})
	p.until(t, `!document.getElementById("login").hidden`)
	p.click(t, "#login")
	p.eval(t, `document.querySelector("#d-login [name=by]").value = "ann"; document.querySelector("#d-login [name=token]").value = "`+token+`"`)
	p.click(t, "#d-login .main")
	p.text(t, "t-limit", "100")
	require.Equal(t, "true", p.eval(t, `document.getElementById("quotacard").hidden && document.getElementById("quota").hidden`), "it has none")
	p.eval(t, `location.hash = "#pool=p"`)

	// What is drawn.
	row := func(tag string) string {
		return `[...document.querySelectorAll("#quotas tr")].find(r => r.dataset.id === "tag ` + tag + `")`
	}
	cell := func(tag string, n int, want string) {
		t.Helper()
		p.until(t, fmt.Sprintf("%s?.children[%d].innerText.includes(`%s`)", row(tag), n, want))
	}
	p.text(t, "reserved", "30 of 100 tokens per second are reserved")
	cell("acme", 1, "25/s")
	cell("acme", 2, "25/s")
	cell("acme", 3, "100/s")
	cell("acme", 5, "demand")
	cell("acme", 6, "30 per 1s")
	cell("acme", 8, "25.0 % of 5,000 per month")
	cell("beta", 7, "40 per 1s")
	cell("beta", 0, "batch")
	cell("idle", 7, "600 per 1m, hard")
	cell(evil, 1, "1/s")
	part := row("acme") + `.querySelector(".bar i").offsetWidth / ` + row("acme") + `.querySelector(".bar").offsetWidth`
	p.until(t, `Math.abs(`+part+` - .25) < .03`)
	require.Equal(t, "true", p.eval(t, `document.querySelectorAll("#quotas tr")[0].dataset.id === "tag acme"`), "the busiest is the first")
	require.Equal(t, "true", p.eval(t, `document.getElementById("unknownquotas").hidden`))

	// What tags use over time: a line for each, the busiest above.
	p.text(t, "taglegend", "acme")
	p.until(t, `document.querySelectorAll("#tags path").length === 4 && samples.length > 2`)
	top := func(tag string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#tags path")].find(p => p.textContent === %q).getBBox().y`, tag)
	}
	require.Equal(t, "true", p.eval(t, top("acme")+" < "+top("beta")))
	p.click(t, "#quota")
	p.eval(t, `(i => { i.value = "beta"; i.dispatchEvent(new Event("input")) })(document.querySelector("#d-quota [name=tag]"))`)
	require.Equal(t, "40 batch", p.eval(t, `(f => f.total.value + " " + f.class.value)(document.querySelector("#d-quota form"))`), "what it has")
	p.click(t, "#d-quota [data-close]")
	pattern := `[...document.querySelectorAll("#quotas tr")].find(r => r.dataset.id.startsWith("pattern"))`
	p.until(t, pattern+`?.children[0].innerText.includes("free/*") && `+pattern+`.children[0].innerText.includes("pattern")`)
	require.Equal(t, "true", p.eval(t, pattern+`.querySelector(".set").hidden`), "a pattern cannot be changed")

	// A change by the keyboard: it needs a reason, and names what it changes alone.
	p.eval(t, row("beta")+`.querySelector(".set").focus()`)
	p.key(t, "Enter")
	p.until(t, `document.getElementById("d-quota").open`)
	require.Equal(t, "beta 40 batch", p.eval(t, `(f => f.tag.value + " " + f.total.value + " " + f.class.value)(document.querySelector("#d-quota form"))`))
	p.eval(t, `document.querySelector("#d-quota [name=total]").value = 20; document.querySelector("#d-quota [name=total]").focus()`)
	p.key(t, "Enter")
	require.Equal(t, "true", p.eval(t, `document.getElementById("d-quota").open`), "a reason is missing")
	p.eval(t, `document.querySelector("#d-quota [name=reason]").value = "they pay less"; document.querySelector("#d-quota [name=reason]").focus()`)
	p.key(t, "Enter")
	cell("beta", 7, "20 per 1s")
	cell("beta", 0, "changed")
	cell("beta", 0, "by ann: they pay less")
	p.text(t, "events", "weight 1, batch by ann: they pay less")
	changes, err := protocol.LoadQuotas(t.Context(), store, "p")
	require.NoError(t, err)
	require.Equal(t, map[string]throttle.Quota{"beta": {Total: 20, Class: limit.ClassBatch}}, changes.Tags)

	// What the pool refuses is said in its words.
	p.click(t, "#quota")
	p.eval(t, `const f = document.querySelector("#d-quota form"); f.tag.value = "acme"; f.reserved.value = 500; f.reason.value = "r"`)
	p.click(t, "#d-quota .main")
	p.until(t, `document.querySelector("#d-quota .error").innerText.includes("tokens per second by all tags together")`)
	p.click(t, "#d-quota [data-close]")

	// It ends, with a reason.
	p.click(t, "#quotas tr .clear:not([hidden])")
	p.eval(t, `document.querySelector("#d-clearquota [name=reason]").value = "paid"`)
	p.click(t, "#d-clearquota .main")
	cell("beta", 7, "40 per 1s")
	p.until(t, `!`+row("beta")+`.children[0].innerText.includes("changed")`)
	p.text(t, "events", "ann clears the quota of tag beta: paid")

	require.NotContains(t, strings.ToLower(p.eval(t, "document.body.innerText")), "processor", "operators know pods")

	// A phone has no page beyond its edge, in the light and in the dark.
	for _, dark := range []bool{true, false} {
		p.resize(t, size{width: 390, height: 800, dark: dark})
		require.Equal(t, "true", p.eval(t, `document.documentElement.scrollWidth <= document.documentElement.clientWidth`))
		colour := map[bool]string{true: "rgb(26, 26, 25)", false: "rgb(252, 252, 251)"}[dark]
		p.until(t, `getComputedStyle(document.getElementById("quotacard")).backgroundColor === "`+colour+`"`)
	}
	require.NotContains(t, p.eval(t, "document.title"), "evil")
}
