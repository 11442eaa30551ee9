package protocol

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A tag is shown with what holds it: its total, which no demand exceeds in reports, a spent budget, or what the policy says.
func TestWhatHoldsATag(t *testing.T) {
	waits := func(a *tagAccount) { a.demand, a.Waiting, a.lack = 1, 1, driver.LackTotal }
	total := limit.Quota{Total: 10}
	for name, c := range map[string]struct {
		quota  limit.Quota
		by     string
		but    func(a *tagAccount)
		target float64
		want   string
	}{
		"no total":               {limit.Quota{}, "demand", waits, 50, "demand"},
		"less than its total":    {total, "demand", func(a *tagAccount) { a.demand = 9.8 }, 10, "demand"},
		"nearly all":             {total, "demand", func(a *tagAccount) { a.demand = 0.99 * 10 }, 10, "total"},
		"it waits for its total": {total, "demand", waits, 10, "total"},
		"nobody waits":           {total, "demand", func(a *tagAccount) { waits(a); a.Waiting = 0 }, 10, "demand"},
		"it waits for others":    {total, "demand", func(a *tagAccount) { waits(a); a.lack = driver.LackFrozen }, 10, "demand"},
		"its class holds it":     {total, "class", waits, 10, "class"},
		"a shadow":               {limit.Quota{Total: 10, Shadow: true}, "demand", waits, 50, "demand"},
		"it is blocked":          {limit.Quota{Blocked: true}, "demand", func(*tagAccount) {}, 0, "total"},
		"blocked in a shadow":    {limit.Quota{Blocked: true, Shadow: true}, "demand", func(*tagAccount) {}, 50, "demand"},
		"its budget is spent":    {total, "demand", func(a *tagAccount) { a.lack = driver.LackBudget }, 0, "budget"},
	} {
		p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
		require.Nil(t, p.TagViews())
		p.tags.on = true
		c.quota.Per = time.Second
		a := tagAccount{quota: c.quota, target: 50, by: c.by}
		c.but(&a)
		p.tags.book.accounts = []tagAccount{a}
		views := p.TagViews()
		require.Len(t, views, 1)
		require.InDelta(t, c.target, views[0].Target, 1e-9, name)
		require.Equal(t, c.want, views[0].By, name)
	}
}

// A tag is in use that asks for something, has something, or lacks something.
func TestWhichTagsAreInUse(t *testing.T) {
	for _, v := range []TagView{{Demand: 1}, {Used: 1}, {InHand: 1}, {Lacks: limit.ReasonQuota}} {
		require.True(t, v.inUse(), v)
	}
	require.False(t, (&TagView{Target: 1, Spent: 1}).inUse())
}

// The target of a tag is shown with what it was worked out from, as far as there is a plan.
func TestWhatATargetIsWorkedOutFrom(t *testing.T) {
	q := limit.Quotas{Tags: map[string]limit.Quota{"acme": {Reserved: 20, Total: 400}}}
	q.Match = []limit.QuotaPattern{{Tag: "*", Quota: limit.Quota{Weight: 7, Class: limit.ClassBatch}}}
	tags := tagging{on: true, policy: *policyOf(q)}
	tags.book.setQuotas(q.WithDefaults(sec), 0)
	a := tagAccount{key: tagname.Key("acme"), rate: 5, quota: tags.book.quotas.Tags["acme"]}
	a.Tag = "acme"
	show := func(a *tagAccount) (v TagView) {
		tags.inputs(a, &v)
		return v
	}
	require.Equal(t, TagView{Named: true, Rate: 5, Weight: 1, Class: a.quota.Class, Reserved: 20, Total: 400}, show(&a))
	require.Equal(t, TagView{Named: true}, show(&tagAccount{}), "all others")
	own := []busyTag{{key: acmeKey(), rate: 50, slow: true}}
	tags.policy.divide(0, sec, 1000, []driver.RosterRow{{ID: "a"}}, 0, own)
	require.Equal(t, TagView{Named: true, Rate: 5, Weight: 1, Class: a.quota.Class, Reserved: 20, Total: 400, Taken: 50, Asked: 50}, show(&a))

	b := tagAccount{pattern: 1, quota: tags.book.quotas.Match[0].Quota}
	require.Equal(t, TagView{Weight: 7, Class: limit.ClassBatch}, show(&b), "its total and what the service takes have no end")
	tags.policy.index = nil
	require.Equal(t, TagView{Named: true, Rate: 5, Weight: 1, Class: a.quota.Class}, show(&a), "the quotas are others by now")
	require.Zero(t, noneIfEndless(math.Inf(1)))
}

// The first patterns with a tag that uses all of its total are reported, each once.
func TestPatternsAtTheirTotals(t *testing.T) {
	var tags tagging
	tags.book.quotas.Match = []limit.QuotaPattern{{Tag: "a"}, {Tag: "b"}, {Tag: "c"}, {Tag: "d"}}
	account := func(pattern int, demand float64) tagAccount {
		return tagAccount{pattern: pattern, demand: demand, quota: limit.Quota{Total: 10, Per: time.Second}}
	}
	tags.book.accounts = []tagAccount{{pattern: 4, demand: 10}, account(1, 10), account(1, 10), account(2, 5), account(0, 10), account(3, 10), account(4, 10)}
	match := tags.book.quotas.Match
	require.Equal(t, [maxCapped]uint64{patternKey(&match[0]), patternKey(&match[2])}, tags.cappedPatterns())
}

// The total holds a tag that the plan gives about all that it asks for, if that is about its total. It holds those of a pattern if one of them
// uses all of its own, or if together they use clearly less than they ask for, and that is more than one of them may use.
func TestWhenATotalHoldsATag(t *testing.T) {
	const byDemand, byTotal = fairtags.ByDemand, fairtags.ByTotal
	q := limit.Quotas{
		Tags:  map[string]limit.Quota{"acme": {Total: 100, Per: time.Second}, "shadow": {Total: 100, Per: time.Second, Shadow: true}, "free": {}},
		Match: []limit.QuotaPattern{{Tag: "x*"}, {Tag: "y*", Quota: limit.Quota{Total: 100, Per: time.Second}}},
		Other: limit.Quota{Total: 100, Per: time.Second},
	}
	for name, c := range map[string]struct {
		use    TagUse
		capped bool
		want   string
		target float64
	}{
		"all of it":              {TagUse{Tag: "acme", Demand: 100, Target: 100}, false, byTotal, 100},
		"a little more":          {TagUse{Tag: "acme", Demand: 100, Target: 101}, false, byTotal, 101},
		"it could have more":     {TagUse{Tag: "acme", Demand: 100, Target: 102}, false, byDemand, 102},
		"nearly all":             {TagUse{Tag: "acme", Demand: 99, Target: 99}, false, byTotal, 99},
		"less than that":         {TagUse{Tag: "acme", Demand: 98, Target: 98}, false, byDemand, 98},
		"all others":             {TagUse{Demand: 100, Target: 100}, false, byTotal, 100},
		"a shadow":               {TagUse{Tag: "shadow", Demand: 100, Target: 100}, false, byDemand, 100},
		"none":                   {TagUse{Tag: "free", Demand: 100, Target: 100}, false, byDemand, 100},
		"a pattern that is held": {TagUse{Tag: "y*", Pattern: true, Demand: 200, Used: 170, Target: 200}, false, byTotal, 170},
		"less than one may use":  {TagUse{Tag: "y*", Pattern: true, Demand: 101, Used: 60, Target: 101}, false, byTotal, 100},
		"for one of them":        {TagUse{Tag: "y*", Pattern: true, Demand: 100, Used: 60, Target: 100}, false, byDemand, 100},
		"not clearly less":       {TagUse{Tag: "y*", Pattern: true, Demand: 200, Used: 180, Target: 200}, false, byDemand, 200},
		"one is at its total":    {TagUse{Tag: "y*", Pattern: true, Demand: 200, Used: 200, Target: 150}, true, byTotal, 150},
		"a pattern without any":  {TagUse{Tag: "x*", Pattern: true, Demand: 200, Used: 60, Target: 200}, true, byDemand, 200},
	} {
		c.use.By = byDemand
		c.use.holdByTotal(&q, c.capped)
		require.Equal(t, c.want, c.use.By, name)
		require.InDelta(t, c.target, c.use.Target, 1e-9, name)
	}
}

// The sum of tags without a name, and names of other quotas, have no target.
func TestWhatIsNotNamedHasNoTarget(t *testing.T) {
	many := []busyTag{{key: 5, rate: 900, reserved: 900}}
	for i := range maxBusyTags {
		many = append(many, busyTag{key: uint64(i + 10), rate: 1})
	}
	uses := PlanTags([]driver.RosterRow{{ID: "a", Busy: packBusy(0, 0, 0, many)}}, limit.Quotas{}, 50)
	require.True(t, slices.ContainsFunc(uses, func(u TagUse) bool { return u.Unnamed }))
	for _, u := range uses {
		require.Zero(t, u.Target)
		require.Empty(t, u.By)
	}
}

// A processor with quotas has a hash of them, even if none is in use, and the hash is 0.
func TestQuotaHashes(t *testing.T) {
	for busy, want := range map[string]string{
		packBusy(0, 0xbeef, 0, nil): "0000beef", packBusy(0, 0, 0, nil): "00000000", packBusy(0, math.MaxUint32, 0, nil): "ffffffff", "": "",
		"\xff" + packBusy(0, 7, 0, nil)[1:]: "", packBusy(0, 7, 0, nil)[1:]: "", packBusy(0, 7, 0, nil)[:busyHead-1]: "",
	} {
		require.Equal(t, want, QuotaHash(driver.RosterRow{Busy: busy}))
	}
}
