package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The release before reads a changed quota with an order as one without: it refused unknown fields, and skipped null.
func TestOrdersOfQuotasAreReadByTheReleaseBefore(t *testing.T) {
	order := QuotaOrder{
		Until: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), Reason: `a "sale"`, By: "ann@desk", ending: overrideEnd{at: 7, left: time.Hour},
	}
	c := QuotaChanges{}.with("acme", &limit.Quota{Total: 50}, order).with("", &limit.Quota{Total: 9}, QuotaOrder{By: "bob"}).
		with("beta", &limit.Quota{Weight: 3}, QuotaOrder{})
	body, err := c.body()
	require.NoError(t, err)
	back, err := parseQuotaChanges(body)
	require.NoError(t, err)
	require.Equal(t, c, back)

	var before struct {
		Tags  map[string]*limit.Quota `json:"tags"`
		Other *limit.Quota            `json:"other"`
	}
	require.NoError(t, decodeStrictly(body, &before))
	quotas := 0
	for name, q := range before.Tags {
		if q != nil {
			quotas++
			require.Equal(t, c.Tags[name], *q)
		}
	}
	require.Equal(t, 2, quotas)
	require.Equal(t, 9, before.Other.Total)

	plain, err := QuotaChanges{}.with("acme", &limit.Quota{Total: 50}, QuotaOrder{}).body()
	require.NoError(t, err)
	require.JSONEq(t, `{"tags":{"acme":{"total":50}}}`, string(plain))
	for _, bad := range []string{
		`\u0001`, `\u0001{`, `\u0001{\"tag\":\"acme\",\"more\":1}`,
		`\u0001{\"tag\":\"acme\",\"left_us\":-1}`, `\u0001{\"by\":\"a\\nb\"}`,
	} {
		_, err := parseQuotaChanges([]byte(`{"tags":{"acme":{"total":50},"` + bad + `":null}}`))
		require.Error(t, err, bad)
	}
	cleared := c.with("acme", nil, QuotaOrder{})
	require.NotContains(t, cleared.Orders, "acme")
}

// As many quotas as before can be changed: authors and reasons give way, and ends do not.
func TestOrdersOfQuotasGiveWay(t *testing.T) {
	var c QuotaChanges
	for i := range maxChangedTags - 1 {
		o := QuotaOrder{By: "ann@desk", Reason: strings.Repeat("r", 100)}
		if i == 0 {
			o.ending.left = time.Hour
		}
		c = c.with(fmt.Sprint("tag", i), &limit.Quota{Total: i + 1}, o)
	}
	body, err := c.body()
	require.NoError(t, err)
	back, err := parseQuotaChanges(body)
	require.NoError(t, err)
	require.Equal(t, c.Tags, back.Tags)
	require.Len(t, back.Orders, 1)
	require.Equal(t, time.Hour, back.Orders["tag0"].ending.left)
}

// Ends do not give way: what no processor could read is refused, with what is allowed.
func TestTooManyOrdersOfQuotasAreRefused(t *testing.T) {
	var c QuotaChanges
	refused := 0
	for i := range maxChangedTags {
		o := QuotaOrder{Reason: "r"}
		if i < 12 {
			o.ending.left = time.Hour
		}
		c = c.with(fmt.Sprint(i), &limit.Quota{Total: 1}, o)
		body, err := c.body()
		if err != nil {
			require.EqualError(t, err, fmt.Sprintf("consensus: Tag is %d changed tags, and ends of 12, allowed: at most 100 together; "+
				"put the others into the configuration", i+1))
			refused++
			continue
		}
		back, err := parseQuotaChanges(body)
		require.NoError(t, err, i)
		require.GreaterOrEqual(t, len(back.Orders), min(i+1, 12))
	}
	require.Equal(t, 12, refused)

	c = QuotaChanges{}
	for i := range maxChangedTags + 1 {
		c = c.with(strings.Repeat("x", 30)+fmt.Sprint(i), &limit.Quota{Total: 1}, QuotaOrder{Reason: "r"})
		_, err := c.body()
		switch {
		case i == maxChangedTags:
			require.ErrorContains(t, err, "Tag is 101 changed tags, allowed: at most 100 together")
		case err != nil:
			require.ErrorContains(t, err, "bytes of changes, allowed: at most 4096 bytes", i)
		}
	}
}

// An order is saved with the time that it has left, in whole seconds for people, and with words within bounds.
func TestOrdersOfQuotasAreSavedWithTheirTime(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	is, err := QuotaOrder{By: "ann", ending: overrideEnd{at: 7, left: sec}}.lasting(now)
	require.NoError(t, err)
	require.Equal(t, QuotaOrder{By: "ann"}, is)
	is, err = QuotaOrder{Until: now.Add(1500 * ms)}.lasting(now)
	require.NoError(t, err)
	require.Equal(t, QuotaOrder{Until: now.Add(sec), ending: overrideEnd{left: 1500 * ms}}, is)
	_, err = QuotaOrder{Until: now}.lasting(now)
	require.ErrorContains(t, err, "Until of the quota")
	_, err = QuotaOrder{By: "a\nb"}.lasting(now)
	require.ErrorContains(t, err, "of the quota")
}

// The processors end a changed quota as an override. They write its time again if nobody has, if the store has lost the document, or if the
// pool has slept since: what is left is never 0, which would be without an end. Without a clock, or with changes unknown to them, they wait.
func TestWhenAChangedQuotaEnds(t *testing.T) {
	const now, end = 50 * sec, 60 * sec
	type change struct {
		due  bool
		left time.Duration // 0: it ends
	}
	order := func(at int64, left time.Duration) QuotaOrder {
		return QuotaOrder{By: "ann", ending: overrideEnd{at: at, left: left}}
	}
	lose := func(_ *tagging, c *core) { c.docs.Take(nil, []driver.Document{{Name: quotaDocument, Version: 2}}) }
	for name, c := range map[string]struct {
		order QuotaOrder
		end   time.Duration
		but   func(t *tagging, c *core)
		want  change
	}{
		"it lasts":                {order(7, sec), end, nil, change{}},
		"its end comes":           {order(7, sec), now + 1, nil, change{}},
		"it has come":             {order(7, sec), now, nil, change{due: true}},
		"it has no end":           {order(0, 0), now, nil, change{}},
		"its time is not written": {order(0, sec), end, nil, change{true, 10 * sec}},
		"for the last moment":     {order(0, sec), now + 1, nil, change{true, time.Microsecond}},
		"the store has lost it":   {order(7, sec), end, lose, change{true, 10 * sec}},
		"the pool has slept":      {order(7, sec), end, func(_ *tagging, c *core) { c.clock.began, c.clock.slept = 8, time.Hour }, change{true, 10 * sec}},
		"no clock is known":       {order(0, sec), end, func(_ *tagging, c *core) { c.clock.time = 0 }, change{}},
		"it cannot be read":       {order(0, sec), end, func(t *tagging, _ *core) { t.unreadable = driver.ErrNoPool }, change{}},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := tagging{}, core{}
			p.clock = poolClock{answers: 1, time: 1_000_000, at: now, clamp: 5 * sec}
			p.docs.Put(driver.Document{Name: quotaDocument, Version: 3, Body: []byte("{}")})
			g.changes = QuotaChanges{}.with("acme", &limit.Quota{Total: 5}, c.order).with("beta", &limit.Quota{Total: 6}, QuotaOrder{})
			g.ends = quotaEnding{"acme": c.end}
			if c.but != nil {
				c.but(&g, &p)
			}
			next, due := g.stepChanges(&p, now)
			require.Equal(t, c.want.due, due)
			if !due {
				return
			}
			require.Equal(t, 6, next.Of("beta").Total)
			if c.want.left == 0 {
				require.Nil(t, next.Of("acme"))
				return
			}
			require.Equal(t, 5, next.Of("acme").Total)
			require.Equal(t, order(1_000_000, c.want.left), next.Orders["acme"])
		})
	}
}

// A document holds as many changes with their orders as fit, to the last byte, and the last entry.
func TestHowManyOrdersOfQuotasFit(t *testing.T) {
	var c QuotaChanges
	for i := range maxChangedTags / 2 {
		c = c.with(fmt.Sprint("t", i), &limit.Quota{Total: 1}, QuotaOrder{By: "a"})
	}
	orders := func(c QuotaChanges) int {
		body, err := c.body()
		require.NoError(t, err)
		back, err := parseQuotaChanges(body)
		require.NoError(t, err)
		require.Len(t, back.Tags, len(c.Tags))
		return len(back.Orders)
	}
	require.Equal(t, maxChangedTags/2, orders(c))
	require.Zero(t, orders(c.with("more", &limit.Quota{Total: 1}, QuotaOrder{})), "they give way")

	c = QuotaChanges{}
	says := func(i, n int) {
		c = c.with(fmt.Sprint("t", i), &limit.Quota{Total: 1}, QuotaOrder{Reason: strings.Repeat("r", n)})
	}
	for i := range 24 {
		says(i, 90)
	}
	body, err := c.body()
	require.NoError(t, err)
	room := wire.MaxDocumentBytes - len(body)
	for i := 0; room > 0; i++ {
		n := min(room, 30)
		says(i, 90+n)
		room -= n
	}
	require.Equal(t, 24, orders(c))
	says(23, 91)
	require.Zero(t, orders(c))
}

// Changes alone are checked whatever the limit is, over configured quotas within it. What is not changed stays as configured.
func TestChangesOverConfiguredQuotas(t *testing.T) {
	configured := limit.Quotas{Tags: map[string]limit.Quota{"acme": {Reserved: 50}, "beta": {Reserved: 20}}, Other: limit.Quota{Reserved: 10}}
	for name, c := range map[string]struct {
		changes  QuotaChanges
		reserved map[string]int // by tag, in force
		left     float64        // reserved by unchanged quotas
		most     int            // that all of them reserve
	}{
		"none":   {QuotaChanges{}, map[string]int{"acme": 50, "beta": 20, "": 10}, 80, 80},
		"a tag":  {QuotaChanges{}.with("acme", &limit.Quota{Reserved: 5}, QuotaOrder{}), map[string]int{"acme": 5, "beta": 20, "": 10}, 30, 35},
		"others": {QuotaChanges{}.with("", &limit.Quota{Reserved: 5}, QuotaOrder{}), map[string]int{"acme": 50, "beta": 20, "": 5}, 70, 75},
		"both": {
			QuotaChanges{}.with("", &limit.Quota{Reserved: 5}, QuotaOrder{}).with("new", &limit.Quota{Reserved: 1}, QuotaOrder{}),
			map[string]int{"acme": 50, "beta": 20, "new": 1, "": 5},
			70, 76,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for tag, reserved := range c.reserved {
				_, q := c.changes.Over(configured).Find(tag)
				require.Equal(t, reserved, q.Reserved, tag)
			}
			require.InDelta(t, c.left, c.changes.leaves(configured).ReservedRate(sec), 0)
			require.NoError(t, c.changes.validate(configured, c.most, sec))
			require.Error(t, c.changes.validate(configured, c.most-1, sec))
			require.NoError(t, c.changes.validate(limit.Quotas{}, 0, 0))
			require.Len(t, configured.Tags, 2, "they stay as they are")
			require.Equal(t, len(c.changes.Tags)+map[bool]int{true: 1}[c.changes.Other != nil], c.changes.Len())
		})
	}
	require.Error(t, QuotaChanges{}.with("", &limit.Quota{Total: -1}, QuotaOrder{}).validate(limit.Quotas{}, 0, 0))
	require.Equal(t, map[string]limit.Quota{"x": {Total: 1}}, QuotaChanges{}.with("x", &limit.Quota{Total: 1}, QuotaOrder{}).Over(limit.Quotas{}).Tags)
}
