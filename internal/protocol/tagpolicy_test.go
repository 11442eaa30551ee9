package protocol

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func policyOf(q limit.Quotas) *tagPolicy {
	q = q.WithDefaults(sec)
	var p tagPolicy
	p.set(&q)
	return &p
}

func acme(reserved, total int) limit.Quotas {
	return limit.Quotas{Tags: map[string]limit.Quota{"acme": {Reserved: reserved, Total: total}}}
}

func acmeKey() uint64 { return busyKey(tagname.Key("acme")) }

// row is a live processor that tells of two tags.
func row(id string, claim float64, turn byte, acme, other float64) driver.RosterRow {
	return driver.RosterRow{ID: id, Claim: driver.Share(claim * float64(driver.Whole)), Busy: packBusy(turn, 1, 0, []busyTag{{
		key:  acmeKey(),
		rate: acme,
	}, {rate: other}})}
}

// All processors work out the same plan, whoever asks, but for the rounding of what is told.
func TestAllProcessorsWantTheSame(t *testing.T) {
	roster := []driver.RosterRow{row("a", 0.5, 1, 300, 50), row("b", 0.5, 1, 0, 900)}
	var plans [2][]driver.Share
	for self, own := range [][]busyTag{{{rate: 50}, {key: acmeKey(), rate: 300}}, {{rate: 900}}} {
		p := policyOf(acme(200, 400))
		plans[self] = p.divide(0, sec, 1000, roster, self, own)
		require.LessOrEqual(t, plans[self][0]+plans[self][1], driver.Whole)
	}
	require.InDelta(t, plans[0][0].Fraction(), plans[1][0].Fraction(), 0.002)
	require.InDelta(t, 0.35, plans[0][0].Fraction(), 0.01)
}

// So they do where they have more tags than they can name: together they want the whole limit, and no more.
func TestAllProcessorsWantTheSameWithManyTags(t *testing.T) {
	q, keys := limit.Quotas{Tags: map[string]limit.Quota{}}, []uint64{}
	for i := range 200 {
		name := fmt.Sprint("tag-", i)
		q.Tags[name], keys = limit.Quota{Reserved: 4}, append(keys, busyKey(tagname.Key(name)))
	}
	slices.Sort(keys)
	const pods = 3
	var own [pods][]busyTag
	roster := make([]driver.RosterRow, pods)
	for i := range pods {
		for k, key := range keys {
			rate := float64(3 + (k+i)%5)
			own[i] = append(own[i], busyTag{key: key, rate: rate, reserved: min(rate, 4)})
		}
		roster[i] = driver.RosterRow{ID: string('a' + rune(i)), Claim: driver.Whole / pods, Busy: packBusy(1, 1, 0, own[i])}
	}
	sum := driver.Share(0)
	for i := range pods {
		p := policyOf(q)
		sum += p.divide(0, sec, 1000, roster, i, own[i])[i]
		require.Greater(t, p.plan.Own[p.index[keys[199]]], 0.0, "each divides what it has by all its tags")
	}
	require.InDelta(t, 1, sum.Fraction(), 0.001)
}

// A processor whose number stands still for two and a half intervals keeps its claim, and its demand counts no more.
func TestASilentProcessorHasNoDemand(t *testing.T) {
	p := policyOf(acme(600, 0))
	roster := func(turn byte) []driver.RosterRow {
		return []driver.RosterRow{row("a", 0.5, 0, 450, 500), row("b", 0.5, turn, 600, 400)}
	}
	own := []busyTag{{rate: 500}, {key: acmeKey(), rate: 450}}
	for i := range byte(5) { // b is heard of
		now := time.Duration(i) * sec
		p.receive(now, "a", roster(i))
		wants := p.divide(now, sec, 1000, roster(i), 0, own)
		require.InDelta(t, 0.5, wants[0].Fraction(), 0.2)
		require.Less(t, p.plan.Own[p.index[acmeKey()]], 310.0, "shared with b")
	}
	for i := range 3 { // two are no silence: a sync may be late
		now := time.Duration(5+i) * sec
		p.receive(now, "a", roster(4))
		p.divide(now, sec, 1000, roster(4), 0, own)
		require.Equal(t, i == 2, p.plan.Own[p.index[acmeKey()]] > 310, "after %d s of silence", i+1)
	}
	require.InDelta(t, 450, p.plan.Own[p.index[acmeKey()]], 1, "all of it")
	p.receive(9*sec, "a", roster(5))
	p.divide(9*sec, sec, 1000, roster(5), 0, own)
	require.Less(t, p.plan.Own[p.index[acmeKey()]], 310.0)
	p.receive(10*sec, "a", roster(6))
	require.Equal(t, 10*sec, p.rows[0].since, "heard of again")
}

// What a process that is gone has claimed is divided among nobody: reserved rates come out of the rest.
func TestClaimsOfTheDeadAreNotDivided(t *testing.T) {
	p := policyOf(acme(300, 0))
	p.closed = driver.Whole / 2
	roster := []driver.RosterRow{row("a", 0, 0, 400, 0), row("b", 0.5, 0, 0, 900)}
	wants := p.divide(0, sec, 1000, roster, 0, []busyTag{{key: acmeKey(), rate: 400}})
	require.Len(t, wants, 2)
	require.InDelta(t, 0.3, wants[0].Fraction(), 0.01)
	require.InDelta(t, 0.2, wants[1].Fraction(), 0.01)
	require.InDelta(t, 300, p.plan.Own[p.index[acmeKey()]], 5)
}

// Tag buckets serve once every live processor knows quotas.
func TestEveryProcessorMustKnowQuotas(t *testing.T) {
	p := policyOf(acme(0, 400))
	require.False(t, p.capable, "nobody is known")
	p.receive(0, "a", []driver.RosterRow{{ID: "a"}, row("b", 0, 1, 0, 0)})
	require.True(t, p.capable)
	p.receive(0, "a", []driver.RosterRow{{ID: "a"}, row("b", 0, 1, 0, 0), {ID: "c", Busy: "?"}})
	require.False(t, p.capable)
}

// The tags of a pattern are told as one, and what they get together is divided among them by what they ask for.
func TestThePatternOfTagsIsToldAsOne(t *testing.T) {
	q := limit.Quotas{Match: []limit.QuotaPattern{{Tag: "free/*", Quota: limit.Quota{Total: 100, Class: limit.ClassBatch}}}}
	k := keep(t, q)
	p := policyOf(q)
	k.report(10*sec, sec, false, []sharing.TagReport{{Tag: "free/x", Used: 100}, {Tag: "free/y", Used: 900}, {Tag: "", Used: 50}})
	own := p.busy(&k.tagBook)
	require.Equal(t, []busyTag{{rate: 5, used: 5}, {key: patternKey(&q.Match[0]), rate: 100, used: 100, limited: true}}, own)
	p.divide(0, sec, 65, []driver.RosterRow{{ID: "a", Claim: driver.Whole}}, 0, own)
	p.assign(&k.tagBook)
	require.InDelta(t, 5, k.account("").rate, 0.01)
	require.InDelta(t, 10, k.account("free/x").rate, 0.01)
	require.InDelta(t, 50, k.account("free/y").rate, 0.01)
	require.Equal(t, "class", k.account("free/y").by)
}

// A shadow quota reserves, but its total holds nobody back in the plan.
func TestAShadowQuotaHasNoTotalInThePlan(t *testing.T) {
	p := policyOf(limit.Quotas{Tags: map[string]limit.Quota{"acme": {Reserved: 10, Total: 20, Shadow: true}}})
	p.divide(0, sec, 1000, []driver.RosterRow{{ID: "a"}}, 0, []busyTag{{key: acmeKey(), rate: 500}})
	require.InDelta(t, 500, p.plan.Own[p.index[acmeKey()]], 0.01)
}

// What a roster tells of tags, whoever looks at it.
func TestBusiestTags(t *testing.T) {
	roster := []driver.RosterRow{row("a", 0.5, 1, 300, 50), row("b", 0.5, 1, 100, 900), {ID: "c", Busy: "nonsense"}}
	many := make([]busyTag, maxBusyTags+2)
	for i := range many {
		many[i] = busyTag{key: uint64(i + 10), rate: 1, used: 1}
	}
	roster = append(roster, driver.RosterRow{ID: "d", Busy: packBusy(0, 0xbeef, 0, many)})
	uses := busiest(roster, map[uint64]TagUse{acmeKey(): {Tag: "acme"}, 1: {Tag: "nobody"}})
	require.Len(t, uses, 2+maxBusyTags+1)
	require.Zero(t, uses[0].Key)
	require.InDelta(t, 950, uses[0].Demand, 1)
	require.Equal(t, "acme", uses[1].Tag)
	require.Equal(t, 2, uses[1].Processors)
	require.InDelta(t, 400, uses[1].Demand, 1)
	require.Equal(t, TagUse{Unnamed: true, Demand: 2, Used: 2, Processors: 1}, uses[2])
	require.Equal(t, "0000beef", QuotaHash(roster[3]))
	require.Empty(t, QuotaHash(roster[2]))

	planned := PlanTags(roster[:2], acme(0, 350), 1000)
	require.Equal(t, "acme", planned[1].Tag)
	require.Equal(t, "total", planned[1].By)
	require.InDelta(t, 350, planned[1].Target, 1)
	require.Equal(t, "limit", planned[0].By)

	free := limit.Quotas{Match: []limit.QuotaPattern{{Tag: "free/*"}}}
	planned = PlanTags([]driver.RosterRow{{ID: "a", Busy: packBusy(0, 0, 0, []busyTag{{key: patternKey(&free.Match[0]), rate: 100, used: 60}})}}, free, 50)
	require.Len(t, planned, 1)
	require.Equal(t, "free/*", planned[0].Tag)
	require.True(t, planned[0].Pattern)
	require.InDelta(t, 60, planned[0].Used, 0.5)
	require.InDelta(t, 50, planned[0].Target, 0.5)

	// Each tag of a pattern has a total of its own. Where one uses all of it, what all of them use is what they may.
	for _, c := range []struct {
		used   float64
		total  int
		shadow bool
		by     string
	}{{60, 10, false, "total"}, {95, 10, false, "demand"}, {60, 10, true, "demand"}, {60, 110, false, "demand"}, {60, 0, false, "demand"}} {
		free.Match[0].Total, free.Match[0].Shadow = c.total, c.shadow
		planned = PlanTags([]driver.RosterRow{{ID: "a", Busy: packBusy(0, 0, 0, []busyTag{{key: patternKey(&free.Match[0]), rate: 100, used: c.used}})}},
			free, 500)
		require.Equal(t, c.by, planned[0].By)
		want := map[string]float64{"total": 60, "demand": 100}[c.by]
		require.InDelta(t, want, planned[0].Target, 0.5)
	}

	// One tag at its total of 10 asks for 10, by what processors tell; that it is held they tell in their notes.
	free.Match[0].Total, free.Match[0].Shadow = 10, false
	s := Standing{capped: [maxCapped]uint64{patternKey(&free.Match[0])}}
	row := driver.RosterRow{ID: "a", Busy: packBusy(0, 0, 0, []busyTag{{key: patternKey(&free.Match[0]), rate: 10, used: 10}})}
	for _, note := range []string{"", Note{standing: s}.String()} {
		row.Note = note
		planned = PlanTags([]driver.RosterRow{row}, free, 100)
		want := map[bool]TagUse{true: {Target: 10, By: "demand"}, false: {Target: 10, By: "total"}}[note == ""]
		require.InDelta(t, want.Target, planned[0].Target, 0.1)
		require.Equal(t, want.By, planned[0].By)
	}
	s.capped[1] = patternKey(&limit.QuotaPattern{Tag: "*"})
	require.Equal(t, s, standingOf(Note{standing: s}.String()))
}

// Requests do not go out more often because callers of tags wait: one more for each interval, and a few saved up.
func TestWaitingTagsAskTheStoreALittleMoreOften(t *testing.T) {
	var e extraSyncs
	taken := 0
	for now := 10 * sec; now < 20*sec; now += sec / 100 {
		if e.take(now, sec) {
			taken++
		}
	}
	require.Equal(t, 5+9, taken)
}

// Whoever does not know quotas counts with all that it asks for.
func TestARowWithoutTagsCountsByItsDemand(t *testing.T) {
	p := policyOf(acme(0, 400))
	wants := p.divide(0, sec, 1000, []driver.RosterRow{{ID: "a"}, {ID: "b", Demand: driver.Whole}}, 0, []busyTag{{rate: 100}})
	require.InDelta(t, 0.9, wants[1].Fraction(), 0.01)
}
