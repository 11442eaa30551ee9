package throttle

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// halved returns a Throttle of two replicas with quotas for tags.
func halved(t *testing.T, quotas map[string]Quota) *Throttle {
	t.Helper()
	two, err := Replicas(2)
	require.NoError(t, err)
	return whole(t, Limit{Max: 200, Per: 2 * time.Second}, WithQuotas(tagsOf(quotas)), WithSharer(two))
}

// Without a pool the plan has this processor's part of each quota, by the second.
func TestTagPlanHasPartsOfQuotas(t *testing.T) {
	endless := math.Inf(1)
	for what, c := range map[string]struct {
		q    Quota
		want fairtags.Terms
	}{
		"reserved":       {Quota{Reserved: 20, Per: 4 * time.Second, Weight: 3}, fairtags.Terms{Reserved: 2.5, Total: endless, Weight: 3}},
		"total":          {Quota{Total: 20, Per: 4 * time.Second}, fairtags.Terms{Total: 2.5, Weight: 1}},
		"shadow":         {Quota{Total: 20, Shadow: true}, fairtags.Terms{Total: endless, Weight: 1}},
		"blocked":        {Quota{Blocked: true}, fairtags.Terms{Weight: 1}},
		"blocked shadow": {Quota{Blocked: true, Shadow: true}, fairtags.Terms{Total: endless, Weight: 1}},
	} {
		t.Run(what, func(t *testing.T) {
			s := halved(t, map[string]Quota{"a": c.q}).tags
			g := viewOf(s.forTag("a")).first()
			require.NotZero(t, g.key)
			c.want.Key, c.want.Limiting = g.key, endless
			require.Equal(t, c.want, s.terms(g, false))
			c.want.Class = 1
			require.Equal(t, c.want, s.terms(g, true))
			require.Zero(t, s.terms(s.other.first(), false).Key, "of all others")
		})
	}
}

// A tag that no plan has seen is weighed by its part of the limit here, and by its reserved rate if that is more.
func TestTagPlanBeginsWithFairParts(t *testing.T) {
	for what, c := range map[string]struct {
		q    Quota
		want float64
	}{
		"weight":          {Quota{Weight: 3}, 30}, // of 50 a second; all others have 1, and b has 1
		"lower class":     {Quota{Weight: 3, Class: ClassBatch}, 1.5},
		"reserved":        {Quota{Weight: 3, Reserved: 50}, 30},
		"more reserved":   {Quota{Weight: 3, Reserved: 200, Per: 2500 * time.Millisecond}, 40},
		"batch, reserved": {Quota{Weight: 3, Reserved: 10, Class: ClassBatch}, 2.5},
	} {
		t.Run(what, func(t *testing.T) {
			s := halved(t, map[string]Quota{"a": c.q, "b": {}}).tags
			s.forTag("b")
			require.InDelta(t, c.want, viewOf(s.forTag("a")).first().tagQueue.Weight(), 1e-9)
		})
	}
}

// A plan's rate is a tag's weight and pace. One that gets nothing, or all that it asks for, counts for its part by weight at least.
func TestTagPlanPutsRatesInForce(t *testing.T) {
	for what, c := range map[string]struct {
		q      Quota
		grant  sharing.TagGrant
		idle   int  // looks since b and all others were used
		under  bool // b is below another tag
		alone  int  // looks since a itself was used
		rate   float64
		weight float64 // 0: the rate
	}{
		"as planned":            {grant: sharing.TagGrant{Rate: 7, By: "limit"}, rate: 7},
		"no rate":               {rate: 20}, // of 100; b has weight 3, and all others have 1
		"demand":                {grant: sharing.TagGrant{Rate: 7, By: "demand"}, rate: 20},
		"more demand":           {grant: sharing.TagGrant{Rate: 60, By: "demand"}, rate: 60},
		"lowered":               {grant: sharing.TagGrant{Lowered: true}, rate: 1},
		"lower class":           {q: Quota{Class: ClassBatch}, rate: 1},
		"total":                 {grant: sharing.TagGrant{Rate: 7, By: "total"}, rate: 7, weight: 14},
		"others idle of late":   {idle: 9, rate: 20},
		"others idle":           {idle: 10, rate: 100},
		"all idle":              {idle: 10, alone: 10, rate: 100},
		"another one is below":  {under: true, rate: 50},
		"a heavy one, all idle": {q: Quota{Weight: 4}, idle: 10, alone: 10, rate: 100},
	} {
		t.Run(what, func(t *testing.T) {
			s := quotaed(t, Limit{Max: 100}, tagsOf(map[string]Quota{"a": c.q, "b": {Weight: 3}})).tags
			a, b := viewOf(s.forTag("a")).first(), viewOf(s.forTag("b")).first()
			a.sampled.idle, b.sampled.idle, s.other.first().sampled.idle = c.alone, c.idle, c.idle
			b.under.Store(c.under)
			s.plan.mu.Lock()
			defer s.plan.mu.Unlock()
			s.putRates(0, 100, []*tag{a, b, s.other.first()}, []sharing.TagGrant{c.grant, {}, {}})
			require.InDelta(t, c.rate, a.pace.rate, 1e-9)
			require.InDelta(t, max(c.rate, c.weight), a.tagQueue.Weight(), 1e-9)
		})
	}
}

// Callers that wait for a tag's total are demand on the limit for as many tokens as may come by the next plan.
func TestTagPlanExpectsTokensOfCallers(t *testing.T) {
	for what, c := range map[string]struct {
		grant sharing.TagGrant
		want  int
	}{
		"one call":      {want: 3},
		"what comes":    {grant: sharing.TagGrant{Coming: 5}, want: 5},
		"earned":        {grant: sharing.TagGrant{Coming: 5, Rate: 6.5}, want: 7},
		"all that wait": {grant: sharing.TagGrant{Coming: 50}, want: 12},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, s := scripted(t, Limit{Max: 1000}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 10}, "b": {Total: 10}, "c": {Total: 10}})))
				for _, n := range []int{3, 4, 5} {
					beginWith(th.ForTag("a").Acquire, n, 0)
				}
				beginWith(th.ForTag("b").Acquire, 2, 0)
				th.ForTag("c")
				c.grant.Tag, c.grant.Needed = "a", true
				s.h.GrantTags([]sharing.TagGrant{c.grant, {Tag: "c", Coming: 9}})
				require.Equal(t, c.want+2, th.tags.coming())
			})
		})
	}
}

// The plan looks at its tags until none was used, refused or waited for in two looks.
func TestTagPlanEndsWithoutUse(t *testing.T) {
	for what, c := range map[string]struct {
		use  func(t *testing.T, l Limiter)
		ends bool
	}{
		"used":    {func(t *testing.T, l Limiter) { take(t, l, 1) }, true},
		"refused": {func(t *testing.T, l Limiter) { deny(t, l, 9) }, true},
		"waits":   {func(_ *testing.T, l Limiter) { beginWith(l.Acquire, 9, 0) }, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotaed(t, Limit{Max: 1000, Burst: 10}, tagsOf(map[string]Quota{"a": {Total: 10, Burst: 10, Per: time.Hour}}))
				time.Sleep(10 * time.Minute)
				s, a := th.tags, th.ForTag("a")
				s.plan.on.Store(true) // no timer: the looks are those below
				looks := func() (active int) {
					for range 8 {
						time.Sleep(planEvery)
						if s.look(th.gate.Now(), s.all()) {
							active++
						}
					}
					return active
				}
				looks()
				require.Zero(t, looks())
				c.use(t, a)
				require.Equal(t, map[bool]int{true: 3, false: 8}[c.ends], looks())
			})
		})
	}
}

// Demand is the larger one of the last two looks, of tokens used and refused, and what callers wait for.
func TestTagSample(t *testing.T) {
	at := func(seconds int) int64 { return int64(time.Duration(seconds) * time.Second) }
	s := sample{at: at(1), used: 10, refused: 5, rate: 3}
	s.turn(at(3), 20, 9)
	want := sample{at: at(3), used: 20, refused: 9, rate: 7, before: 3, use: 5}
	require.Equal(t, want, s)
	require.InDelta(t, 7, s.demand(0), 0)
	require.InDelta(t, 11, s.demand(4), 0)
	s.turn(at(3), 20, 9)
	require.Equal(t, want, s, "no time has passed")
	s.turn(at(5), 16, 7)
	require.Equal(t, sample{at: at(5), used: 16, refused: 7, before: 7}, s, "returned tokens are no demand")
	require.InDelta(t, 9, s.demand(2), 0)
}
