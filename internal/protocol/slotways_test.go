package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// claimed is what the record counts of a tag.
func (p *slotPool) claimed(tag string) (n int64) {
	for _, row := range p.record.Rows {
		for _, c := range row.TagClaims {
			if c.Key == tagname.Key(tag) {
				n += c.Claim()
			}
		}
	}
	return n
}

// While a processor is there that knows no such quotas, which would not read a record with slots of tags, each other one gives its tags their
// parts of the totals by its share.
func TestAnOlderProcessorIsSpareSlotsOfTags(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 8}}), 2)
	old := p.join("")
	old.p.Configure(sharing.Terms{Slots: 16})
	for _, m := range p.members[:2] {
		m.asks("acme", 10, time.Second)
	}
	old.asks("", 4, time.Second)
	p.run(5 * time.Second)
	clear(p.most) // before, not all of them knew that they are not alone
	p.run(15 * time.Second)
	require.Zero(t, p.claimed("acme"))
	for _, m := range p.members[:2] {
		require.Equal(t, 8*m.slots(p.now, 16)/16, m.tags["acme"].grant.Granted)
		require.Positive(t, m.tags["acme"].running())
	}
	require.LessOrEqual(t, p.most["acme"], int64(8))
	p.kill(old)
	p.run(40 * time.Second)
	require.EqualValues(t, 8, p.claimed("acme"))
	require.EqualValues(t, 8, p.running("acme"))
	require.LessOrEqual(t, p.most["acme"], int64(8))
}

// A processor without a limiter yet is none of an older release: the others go on.
func TestAProcessorWithoutALimiterYetStopsNoTag(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 8}}), 2)
	for _, m := range p.members {
		m.asks("acme", 10, time.Second)
	}
	p.run(20 * time.Second)
	fresh := p.join("")
	fresh.p = NewProcessor(fresh.p.Cfg, "fresh")
	fresh.p.Configure(sharing.Terms{Spacing: wire.MinSpacing})
	for range 5 * time.Second / tagStep {
		p.run(tagStep)
		require.GreaterOrEqual(t, p.claimed("acme"), int64(7))
	}
	require.Empty(t, fresh.p.sent.Busy)
	fresh.p.Configure(sharing.Terms{Slots: 16, Quotas: &p.quotas})
	p.run(tagInterval / 5)
	require.NotEmpty(t, fresh.p.sent.Busy, "it is due at once")
}

// Without the store no call begins after a lease with Stop. With Degrade tags have their parts of the totals, new ones as well.
func TestSlotsOfTagsWithoutTheStore(t *testing.T) {
	for name, loss := range map[string]StoreLoss{"stop": Stop, "degrade": Degrade} {
		t.Run(name, func(t *testing.T) {
			p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 8}, "late": {Total: 4}}), 0)
			for range 4 {
				p.join("", func(c *ProcessorConfig) { c.OnStoreLoss = loss }).asks("acme", 10, time.Second)
			}
			p.run(20 * time.Second)
			for _, m := range p.members {
				m.lost = func() (bool, bool) { return true, true }
			}
			p.run(200 * time.Second) // a request is repeated by then
			for _, m := range p.members {
				require.Equal(t, loss == Degrade, m.p.degraded)
				require.False(t, m.p.RationDue(p.now), "there are no tokens")
				m.asks("late", 10, time.Second)
			}
			p.run(60 * time.Second)
			if loss == Stop {
				require.Zero(t, p.running("acme"))
				return
			}
			require.EqualValues(t, 8, p.running("acme"))
			require.EqualValues(t, 4, p.running("late"))
			for _, m := range p.members {
				for _, g := range m.tags {
					g.ends, g.allowed = nil, 0
				}
				m.p.ReportSlots(p.now, m.report(m.p.SlotPlace()))
				for _, g := range m.p.tags.takeParts(&m.p.core, p.now) {
					require.Equal(t, g.Total/4, g.InUse, "the store is to know of the part")
				}
				m.lost = nil
			}
			p.run(60 * time.Second)
			require.EqualValues(t, 8, p.claimed("acme"))
			require.InDelta(t, 8, p.use("acme", 20*time.Second), 1)
			require.LessOrEqual(t, p.most["acme"], int64(8))
			require.LessOrEqual(t, p.most["late"], int64(4))
		})
	}
}

// An answer that brings no lease brings no slots: the processor had lost its share before it came.
func TestAnAnswerWithoutALeaseGrantsNoSlots(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 8}}), 1)
	m := p.members[0]
	p.run(5 * time.Second)
	m.asks("acme", 3, time.Second)
	m.p.ReportSlots(p.now, m.report(m.p.SlotPlace()))
	m.p.Yield(p.now, driver.Whole, nil)
	req := m.p.Request(p.now, 7, Observation{Demand: driver.Whole})
	require.Len(t, req.TagSlots, 1)
	ans, _ := p.record.Sync(&req, p.at())
	require.Equal(t, []driver.TagGrant{{Key: tagname.Key("acme"), Granted: 3}}, ans.TagSlots)
	m.p.Void(p.now)
	require.NoError(t, m.p.Take(p.now, ans, "fresh"))
	m.obey(p)
	require.Zero(t, m.slots(p.now, 16))
	require.Zero(t, m.tags["acme"].allowed)
	p.run(time.Second)
	require.EqualValues(t, 3, m.tags["acme"].allowed)
}

// A request names so many tags. Those in use come first, and the others may begin nothing until it is their turn.
func TestTooManyTagsWaitForTheirTurn(t *testing.T) {
	q := limit.Quotas{Match: []limit.QuotaPattern{{Tag: "team/*", Quota: limit.Quota{Total: 1}}}}
	p := newSlotPool(t, 1000, q, 2)
	const tags = wire.MaxTagSlots + 100
	for i := range tags {
		for _, m := range p.members {
			m.asks(fmt.Sprintf("team/%03d", i), 1, 10*time.Second)
		}
	}
	p.run(5 * time.Second)
	require.EqualValues(t, tags, p.inFlight, "two processors name them all")
	for _, m := range p.members {
		require.Len(t, m.p.sent.TagSlots, wire.MaxTagSlots)
	}
	for tag, n := range p.most {
		require.EqualValues(t, 1, n, tag)
	}
	p.run(10 * time.Second)
	for tag, n := range p.most {
		require.EqualValues(t, 1, n, tag)
	}
}

// Two names with one hash have one total: what one of them uses, the other does not get.
func TestNamesWithOneHashShareATotal(t *testing.T) {
	var s slotTags
	tag := func(name string, running, inUse, wanted int64) slotTag {
		return slotTag{key: 7, TagSlotReport: sharing.TagSlotReport{Tag: name, Running: running, InUse: inUse, Wanted: wanted, Demand: wanted, Total: 10}}
	}
	s.sent = []slotTag{tag("a", 2, 4, 9), tag("b", 3, 3, 5)}
	require.Equal(t, []driver.TagSlots{{Key: 7, InUse: 7, Wanted: 14, Demand: 14, Total: 10}}, s.ask(1))
	for granted, want := range map[int64][2]int64{10: {4, 6}, 7: {4, 3}, 5: {4, 1}, 2: {2, 0}} {
		var tags tagging
		tags.policy.set(&limit.Quotas{})
		tags.slots = s
		tags.takeSlots(&core{Answer: driver.Answer{TagSlots: []driver.TagGrant{{Key: 7, Granted: granted}}}}, 0, false)
		sent := tags.slots.sent
		require.Equal(t, want, [2]int64{sent[0].answer.Granted, sent[1].answer.Granted}, granted)
		require.LessOrEqual(t, max(sent[0].answer.Granted, 2)+max(sent[1].answer.Granted, 3), max(granted, 7), "what is claimed")
	}
}

// What a report says of a tag decides what is asked for it: nothing of the pool's slots for calls that are another tag's, or for callers of a tag
// that is blocked, and of the store what may count for a total that comes.
func TestWhatIsAskedForATag(t *testing.T) {
	q := ofSlots(map[string]limit.Quota{"blocked": {Blocked: true}, "free": {}, "under": {}})
	p := newSlotPool(t, 16, q, 1)
	p.members[0].p.ReportSlots(0, []sharing.TagSlotReport{
		{Tag: "blocked", Running: 1, Demand: 9}, {Tag: "free", Running: 3, Demand: 5, InUse: 3}, {Tag: "under", Running: 3, Demand: 7, Under: true},
	})
	tags := &p.members[0].p.tags
	rates := map[uint64]float64{}
	for _, b := range tags.own {
		rates[b.key] = b.rate
	}
	key := func(name string) uint64 { return busyKey(tagname.Key(name)) }
	require.Equal(t, map[uint64]float64{key("blocked"): 1, key("free"): 5}, rates)
	tags.slots.sent = tags.slots.tags
	require.Equal(t, []driver.TagSlots{{Key: tagname.Key("free"), InUse: 3, Demand: 5}}, tags.slots.ask(1))
}

// A request by an older total brings no slots beyond those in use, when its answer changes the total.
func TestNoSlotsComeByAnOlderTotal(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 8}}), 2)
	p.run(5 * time.Second)
	p.save(QuotaChanges{}.with("acme", &limit.Quota{Total: 3}, QuotaOrder{}))
	for _, m := range p.members {
		m.asks("acme", 8, time.Second)
	}
	p.run(20 * time.Second)
	require.EqualValues(t, 3, p.most["acme"])
	require.Equal(t, quotaDocument, p.members[0].p.sent.TagSlotsBy)
}

// A processor whose callers wait for slots of a tag that others hold asks for them early, but not all the time.
func TestEarlyRequestsForSlotsAreFew(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 4}}), 2)
	p.members[0].asks("acme", 4, time.Hour)
	p.run(10 * time.Second)
	p.members[1].asks("acme", 4, time.Hour)
	before := p.nonce
	p.run(60 * time.Second)
	requests := float64(p.nonce - before)
	require.InDelta(t, (60+2*60)/tagInterval.Seconds(), requests, 20)
	require.Zero(t, p.members[1].tag("acme").running())
}

// Callers that may not have more slots of their tag draw no slots of the pool to their processor, and their requests stay few.
func TestCallersOfACappedTagDrawNoSlots(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 2}}), 2)
	p.members[0].asks("acme", 100, time.Second)
	p.members[1].asks("", 100, time.Second)
	p.run(20 * time.Second)
	before := p.nonce
	require.InDelta(t, 2, p.use("acme", 60*time.Second), 0.1)
	require.GreaterOrEqual(t, p.running(""), int64(13))
	require.LessOrEqual(t, p.nonce-before, uint64(2*60*12/10))
}

// A tag's slots go where its callers are within two intervals of their end, though the processor that has them would fill them again.
func TestSlotsOfATagFollowItsCallers(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 4}}), 4)
	a, b := p.members[0], p.members[1]
	a.asks("acme", 100, time.Second/2)
	p.run(10 * time.Second)
	require.EqualValues(t, 4, a.tag("acme").running())
	a.asks("acme", 0, time.Second)
	b.asks("acme", 100, time.Second)
	p.run(time.Second/2 + 2*tagInterval)
	require.EqualValues(t, 4, b.tag("acme").running())
	a.asks("acme", 100, time.Second/2)
	p.run(time.Second + 3*tagInterval)
	require.EqualValues(t, 2, a.tag("acme").running())
	require.EqualValues(t, 2, b.tag("acme").running())
}

// With fewer slots than processors, classes and weights say how often each has one.
func TestFewSlotsGoByClassAndWeight(t *testing.T) {
	q := ofSlots(map[string]limit.Quota{"big": {Weight: 3}, "small": {}, "bulk": {Class: limit.ClassBatch}})
	p := newSlotPool(t, 2, q, 6)
	for i, m := range p.members {
		m.asks([]string{"big", "small", "bulk"}[i/2], 5, time.Second)
	}
	p.run(60 * time.Second)
	before := map[string]time.Duration{"big": p.served("big"), "small": p.served("small"), "bulk": p.served("bulk")}
	p.run(1000 * time.Second)
	use := func(tag string) float64 { return (p.served(tag) - before[tag]).Seconds() / 1000 }
	require.InDelta(t, 1.4, use("big"), 0.2)
	require.InDelta(t, 0.47, use("small"), 0.15)
	require.InDelta(t, 0.1, use("bulk"), 0.08)
	require.GreaterOrEqual(t, use("big")+use("small")+use("bulk"), 1.7)
	require.EqualValues(t, 2, p.inFlight)
}

// A limit on calls in flight without quotas says nothing of tags.
func TestSlotsWithoutQuotasSayNothingOfTags(t *testing.T) {
	p := newSlotPool(t, 16, limit.Quotas{}, 1)
	m := p.members[0]
	m.p.Configure(sharing.Terms{Slots: 16})
	m.asks("acme", 5, time.Second)
	p.run(5 * time.Second)
	require.EqualValues(t, 5, p.running("acme"))
	require.Empty(t, m.p.sent.Busy)
	require.Empty(t, m.p.sent.TagSlots)
	require.Nil(t, m.p.Orders(p.now, 0, tagBase).SlotGrants)
}

// An operator's quota of calls in flight is one of calls at once, and all of them reserve no more than there are.
func TestAChangedQuotaOfSlotsFits(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Reserved: 6}}), 2)
	p.run(5 * time.Second)
	roster := p.members[0].p.Answer.Roster
	fits := func(q limit.Quota, force bool) error {
		next := QuotaChanges{}.with("zeta", &q, QuotaOrder{})
		return fitsQuota(roster, &QuotaChanges{}, &next, "zeta", force)
	}
	require.NoError(t, fits(limit.Quota{Reserved: 10, Total: 12, Weight: 3}, false))
	require.NoError(t, fits(limit.Quota{Reserved: 11}, true))
	for field, q := range map[string]limit.Quota{
		"Reserved": {Reserved: 11}, "quotas.tags.zeta.per": {Total: 3, Per: time.Second}, "quotas.tags.zeta.burst": {Total: 3, Burst: 3},
	} {
		var bad *driver.RequestError
		require.ErrorAs(t, fits(q, false), &bad)
		require.Equal(t, field, bad.Field)
	}
	require.ErrorContains(t, fits(limit.Quota{Reserved: 11}, false), "17 calls in flight by all tags together")

	// A document of another release may have more: that has no effect.
	p.save(QuotaChanges{}.with("acme", &limit.Quota{Total: 3, Per: time.Minute, Budgets: []limit.Budget{{Amount: 1, Per: limit.PeriodDay}}}, QuotaOrder{}))
	p.members[0].asks("acme", 9, time.Second)
	p.run(5 * time.Second)
	require.EqualValues(t, 3, p.running("acme"))
	require.Empty(t, p.members[0].quotas.Tags["acme"].Budgets)
}

// Another request is due soon if it can bring slots that callers wait for, or free some that others lack.
func TestWhenSlotsOfATagAreAskedForSoon(t *testing.T) {
	type report = sharing.TagSlotReport
	type answer = driver.TagGrant
	for name, c := range map[string]struct {
		tag    report
		answer answer
		want   bool
	}{
		"nobody waits":                     {report{Running: 2, InUse: 2, Demand: 4, Wanted: 4}, answer{Granted: 2, Claimed: 2}, false},
		"others hold more than their part": {report{Waiting: 2, Demand: 2, Wanted: 2}, answer{Claimed: 4, Demand: 4}, true},
		"slots are free":                   {report{Waiting: 2, Demand: 2, Wanted: 1}, answer{Granted: 1, Claimed: 2, Demand: 2}, true},
		"it has its part":                  {report{Waiting: 7, Running: 2, InUse: 2, Demand: 9, Wanted: 2}, answer{Granted: 2, Claimed: 2, Demand: 9}, false},
		"it has slots that others lack":    {report{Demand: 2, InUse: 3, Wanted: 2}, answer{Granted: 3, Claimed: 1, Demand: 6}, true},
		"its calls have them":              {report{Running: 3, Demand: 3, InUse: 3, Wanted: 3}, answer{Granted: 3, Claimed: 1, Demand: 6}, false},
		"others lack none":                 {report{Demand: 2, InUse: 3, Wanted: 2}, answer{Granted: 3, Claimed: 1, Demand: 1}, false},
		"nor do few others":                {report{Demand: 1, InUse: 3, Wanted: 1}, answer{Granted: 3, Claimed: 1, Demand: 1}, false},
		"one is free for others":           {report{Demand: 1, InUse: 2, Wanted: 1}, answer{Granted: 2, Claimed: 1, Demand: 3}, false},
		"it has more than half":            {report{Demand: 2, InUse: 3, Wanted: 2}, answer{Granted: 3, Claimed: 1, Demand: 2}, true},
		"it holds more than it is granted": {report{Demand: 2, InUse: 3, Wanted: 2}, answer{Granted: 2, Claimed: 1, Demand: 2}, true},
		"it has its part by demand":        {report{Demand: 6, InUse: 3, Wanted: 3}, answer{Granted: 3, Claimed: 1, Demand: 2}, false},
		"rounded up":                       {report{Demand: 5, InUse: 3, Wanted: 3}, answer{Granted: 3, Claimed: 1, Demand: 2}, false},
		"it has all that it can use":       {report{Waiting: 1, Demand: 2, Wanted: 3}, answer{Granted: 2, Claimed: 1, Demand: 1}, false},
	} {
		c.tag.Total = 4
		require.Equal(t, c.want, (&slotTag{TagSlotReport: c.tag, answer: c.answer}).soon(), name)
	}
}

// A processor that is granted a part of a slot beside whole ones gives it back: it cannot use it, and another one may lack it for a slot.
func TestAPartOfASlotIsGivenBack(t *testing.T) {
	for granted, want := range map[driver.Share]driver.Share{
		41_666_673: 41_666_666, 83_333_332: 41_666_666, 83_333_333: 83_333_333, 999_999_999: 999_999_999, driver.Whole: driver.Whole, 0: 0, 7: 0,
	} {
		p := newSlotPool(t, 24, limit.Quotas{}, 1)
		m := p.members[0]
		m.asks("", 24, time.Second)
		m.p.ReportSlots(p.now, m.report(m.p.SlotPlace()))
		req := m.p.Request(p.now, 7, Observation{Demand: driver.Whole})
		ans, _ := p.record.Sync(&req, p.at())
		ans.Share, ans.Frozen = granted, 0
		require.NoError(t, m.p.Take(p.now, ans, "fresh"))
		require.Equal(t, want, m.p.Held(p.now))
		next := m.p.Request(p.now, 8, Observation{Demand: driver.Whole})
		require.Equal(t, want, next.InUse)
		if want < granted {
			require.Equal(t, want, next.Wanted, "and it does not ask for it again at once")
		} else {
			require.Equal(t, driver.Whole, next.Wanted)
		}
	}
}

// Calls of a killed process go on at the called service, also those that began after its last state was written: its successor with that state
// gets its slots after a removal time, as without it.
func TestSlotsOfAKilledProcessAreNotTakenOverAtOnce(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 4}}), 1)
	m := p.members[0]
	p.run(5 * time.Second)
	state := m.p.LastState(0) // nothing is in flight
	m.asks("acme", 4, time.Minute)
	p.run(2 * time.Second)
	require.EqualValues(t, 4, p.running("acme"))
	p.kill(m)
	next := p.join(m.p.Cfg.ID)
	require.True(t, next.p.Inherit(p.now, []LastState{state}))
	next.asks("acme", 4, time.Minute)
	p.run(10 * time.Second)
	require.EqualValues(t, 4, p.most["acme"])
	p.run(20 * time.Second)
	require.EqualValues(t, 4, next.tag("acme").running())
}
