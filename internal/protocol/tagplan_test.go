package protocol

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// The terms of a quota: a total holds a tag unless it is only watched, and a blocked tag has a total of 0.
func TestTheTermsOfAQuota(t *testing.T) {
	none := math.Inf(1)
	for _, c := range []struct {
		q     limit.Quota
		total float64
	}{
		{limit.Quota{}, none},
		{limit.Quota{Total: 6}, 3},
		{limit.Quota{Blocked: true}, 0},
		{limit.Quota{Total: 6, Shadow: true}, none},
		{limit.Quota{Blocked: true, Shadow: true}, none},
	} {
		c.q.Per, c.q.Reserved, c.q.Weight = askEvery, 4, 5
		require.Equal(t, fairtags.Terms{Key: 7, Reserved: 2, Total: c.total, Limiting: none, Weight: 5}, termsOf(7, &c.q))
	}
	require.Equal(t, fairtags.Terms{Total: none, Limiting: none, Weight: 1, Class: 1}, termsOf(0, &limit.Quota{Class: limit.ClassBatch}))

	q := limit.Quotas{Match: []limit.QuotaPattern{{Tag: "x*"}, {Tag: "y*"}}}
	for pattern, key := range map[int]uint64{0: busyKey(9 << 32), 1: patternKey(&q.Match[0]), 2: patternKey(&q.Match[1]), 3: busyKey(9 << 32)} {
		require.Equal(t, key, termKeyOf("a", 9<<32, pattern, &q), pattern)
	}
	require.Zero(t, termKeyOf("", tagname.OtherKey, 0, &q))
}

// A share is a part of the limit, rounded down, and no more than all of it, whatever the rates are.
func TestSharesOfRates(t *testing.T) {
	for _, c := range []struct {
		rate, most float64
		want       driver.Share
	}{
		{1, 4, driver.Whole / 4},
		{1, 3, driver.Whole / 3},
		{4, 4, driver.Whole},
		{5, 4, driver.Whole},
		{-1, 4, 0},
		{0, 4, 0},
		{0, 0, 0},
		{1, 0, 0},
		{1, -1, 0},
		{math.Inf(1), 4, driver.Whole},
		{0.9 / float64(driver.Whole), 1, 0},
	} {
		require.Equal(t, c.want, shareOf(c.rate, c.most), c)
	}
}

// The tags of a pattern share what it gets by what each asks for, the smallest first. What nobody asks for is given to none, but one alone.
func TestTagsOfAPatternAreLevelled(t *testing.T) {
	for _, c := range []struct {
		asked []float64
		rate  float64
		want  []float64
	}{
		{[]float64{5}, 60, []float64{60}},
		{[]float64{900, 10}, 60, []float64{50, 10}},
		{[]float64{30, 10, 100}, 90, []float64{30, 10, 50}},
		{[]float64{100, 100}, 90, []float64{45, 45}},
		{[]float64{1, 2}, 90, []float64{1, 2}},
		{nil, 5, []float64{}},
	} {
		require.Equal(t, c.want, levelled(c.asked, c.rate), c)
	}
}

// A processor tells the others what its tags ask of the limit: not those that use nothing, or whose tokens another tag asks for. The tags
// of a pattern are slow if all of them are.
func TestWhatAProcessorTellsOfItsTags(t *testing.T) {
	q := limit.Quotas{Match: []limit.QuotaPattern{{Tag: "p*"}}, Other: limit.Quota{Reserved: 6}}
	type account = tagAccount
	slow := func(demand, limiting float64) account {
		return account{demand: demand, wants: demand, uses: demand, slow: true, TagReport: sharing.TagReport{Limiting: limiting}}
	}
	fast := func(demand float64) account { return account{demand: demand, wants: demand, uses: 2} }
	for name, c := range map[string]struct {
		accounts []account // of the pattern
		want     []busyTag
	}{
		"they ask":             {[]account{fast(5), fast(7)}, []busyTag{{rate: 12, used: 4}}},
		"they use all":         {[]account{fast(1)}, []busyTag{{rate: 1, used: 1}}},
		"both are slow":        {[]account{slow(50, 5), slow(70, 7)}, []busyTag{{rate: 12, used: 12, slow: true}}},
		"the first is":         {[]account{slow(50, 5), fast(7)}, []busyTag{{rate: 12, used: 7}}},
		"the second is":        {[]account{fast(7), slow(50, 5)}, []busyTag{{rate: 12, used: 7}}},
		"one asks for nothing": {[]account{fast(0), slow(50, 5)}, []busyTag{{rate: 5, used: 5, slow: true}}},
		"nor does the other":   {[]account{fast(0)}, []busyTag{}},
		"its budget is spent":  {[]account{{demand: 5, wants: 5, lack: driver.LackBudget}}, []busyTag{}},
		"another tag asks":     {[]account{{demand: 5, wants: 5, TagReport: sharing.TagReport{Under: true}}}, []busyTag{}},
		"and has a bucket":     {[]account{{demand: 5, wants: 5, quota: limit.Quota{Total: 9}}, fast(1)}, []busyTag{{rate: 6, used: 1, limited: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, b := policyOf(q), tagBook{quotas: q}
			for i := range c.accounts {
				c.accounts[i].Tag, c.accounts[i].pattern = "p", 1
			}
			b.accounts = c.accounts
			for i := range c.want {
				c.want[i].key = patternKey(&q.Match[0])
			}
			require.Equal(t, c.want, p.busy(&b))
		})
	}
	p, b := policyOf(q), tagBook{quotas: q}
	b.accounts = []account{slow(50, 5)}
	require.Equal(t, []busyTag{{rate: 6, used: 6, reserved: 6, slow: true}}, p.busy(&b), "what is reserved is asked for, whatever others tell")
	p.elsewhere = []float64{0.5, 9}
	require.Equal(t, []busyTag{{rate: 5.5, used: 5.5, reserved: 5.5, slow: true}}, p.busy(&b))
}

// The plan is written into the accounts: their rates, and what holds them. A tag whose demand is told up to its total only is held by that
// once it has nearly all of it.
func TestThePlanInTheAccounts(t *testing.T) {
	total := limit.Quota{Total: 100}
	q := limit.Quotas{Tags: map[string]limit.Quota{"acme": total}, Match: []limit.QuotaPattern{{Tag: "p*", Quota: total}}}.WithDefaults(sec)
	for name, c := range map[string]struct {
		tag    string
		target fairtags.Target
		but    func(a *tagAccount)
		held   bool
		want   float64
	}{
		"it has all":            {"acme", fairtags.Target{Rate: 98, Bound: 500, By: "demand"}, nil, false, 500},
		"nearly the total":      {"acme", fairtags.Target{Rate: 99, Bound: 500, By: "demand"}, nil, true, 500},
		"not even without one":  {"acme", fairtags.Target{Rate: 0, Bound: 500, By: "demand"}, func(a *tagAccount) { a.quota.Total = 0 }, false, 500},
		"it has less":           {"acme", fairtags.Target{Rate: 50, Bound: 500, By: "limit"}, nil, true, 50},
		"a pattern":             {"p", fairtags.Target{Rate: 50, Bound: 500, By: "demand"}, nil, false, 500},
		"without a total":       {"p", fairtags.Target{Rate: 50, Bound: 500, By: "demand"}, func(a *tagAccount) { a.quota.Total = 0 }, false, 50},
		"with one in shadow":    {"p", fairtags.Target{Rate: 50, Bound: 500, By: "demand"}, func(a *tagAccount) { a.quota.Shadow = true }, false, 50},
		"a pattern of the rest": {"p", fairtags.Target{Rate: 50, Bound: 500, By: "class"}, nil, true, 50},
	} {
		t.Run(name, func(t *testing.T) {
			p, b := policyOf(q), tagBook{quotas: q}
			a := tagAccount{key: tagname.Key(c.tag), wants: 3}
			a.Tag = c.tag
			a.quota, a.pattern = b.find(c.tag)
			if c.but != nil {
				c.but(&a)
			}
			b.accounts = []tagAccount{a}
			k := p.index[termKey(&a, &q)]
			p.plan.Targets, p.plan.Own = make([]fairtags.Target, 3), make([]float64, 3)
			p.plan.Targets[k], p.plan.Own[k] = c.target, 40
			p.plan.Held = []fairtags.Busy{{Key: p.terms[k].Key, Rate: 30}, {Key: 1, Rate: 7}}
			p.assign(&b)
			is := &b.accounts[0]
			require.Equal(t, []float64{40, 30, c.want}, []float64{is.rate, is.reserves, is.target})
			require.Equal(t, c.target.By, is.by)
			require.Equal(t, c.held, is.held)
			require.True(t, b.news)

			a.Under = true
			b.accounts = []tagAccount{a}
			p.assign(&b)
			is = &b.accounts[0]
			require.Equal(t, []float64{3, 0, c.target.Bound}, []float64{is.rate, is.reserves, is.target}, "another tag asks for it")
			require.Equal(t, []any{false, "demand"}, []any{is.held, is.by})
		})
	}
	for _, n := range [][2]int{{2, 3}, {3, 2}, {0, 0}} {
		p, b := policyOf(q), tagBook{quotas: q}
		p.plan.Targets, p.plan.Own = make([]fairtags.Target, n[0]), make([]float64, n[1])
		p.assign(&b)
		require.False(t, b.news, "the plan is of other quotas")
	}
}

// A processor is silent after two and a half intervals, to the moment. What others tell is added up for all but this one and the silent ones.
func TestWhatOthersTell(t *testing.T) {
	unknown := packBusy(1, 1, 0, []busyTag{{key: 77, rate: 5}})
	roster := []driver.RosterRow{row("a", 0.5, 1, 300, 50), row("b", 0.5, 1, 100, 0), row("c", 0.5, 1, 200, 7), {ID: "d", Busy: unknown}}
	for now, want := range map[time.Duration][2]float64{2500 * ms: {300, 7}, 2500*ms + 1: {200, 7}} {
		p := policyOf(acme(200, 400))
		p.receive(0, "a", roster)
		p.rows[1].since = sec
		p.divide(now, sec, 1000, roster, 0, []busyTag{{key: acmeKey(), rate: 300}})
		require.InDelta(t, want[0], p.elsewhere[p.index[acmeKey()]], 1)
		require.InDelta(t, want[1], p.elsewhere[p.index[0]], 0.1)
	}
	p := policyOf(acme(200, 400))
	p.divide(0, sec, 1000, roster, -1, nil)
	require.Nil(t, p.elsewhere, "who is not in the roster plans nothing of its own")
	p.receive(0, "a", nil)
	require.False(t, p.capable)
}

// A processor whose tags all have a name in its report wants exactly what they ask for, not what the report rounds it to.
func TestWantsAreExact(t *testing.T) {
	for n := range 3 {
		n += maxBusyTags - 1
		q, own, sum := limit.Quotas{Tags: map[string]limit.Quota{}}, []busyTag(nil), 0.0
		for i := range n {
			name := string('A' + rune(i))
			q.Tags[name] = limit.Quota{}
			own = append(own, busyTag{key: busyKey(tagname.Key(name)), rate: 3.3337})
			sum += 3.3337
		}
		p := policyOf(q)
		wants := p.divide(0, sec, 1000, []driver.RosterRow{{ID: "a"}, {ID: "b", Busy: packBusy(0, 0, 0, []busyTag{{rate: 5000}})}}, 0, own)
		off := math.Abs(wants[0].Fraction() - sum/1000)
		require.Equal(t, n <= maxBusyTags, off < 1e-8, "%d: %v", n, off)
	}
}
