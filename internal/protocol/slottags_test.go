package protocol

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A tag with a total has that many calls in flight over the whole pool, however many want to, and the others have the rest of the slots.
func TestCallsInFlightOfATagAreHeldToItsTotal(t *testing.T) {
	for _, n := range []int{1, 4, 16} {
		for _, length := range []time.Duration{50 * time.Millisecond, time.Second, 5 * time.Second} {
			t.Run(fmt.Sprint(n, " of ", length), func(t *testing.T) {
				p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {Total: 4}}), n)
				for _, m := range p.members {
					m.asks("acme", 10, length)
					m.asks("", 20, length)
				}
				p.run(20 * time.Second)
				acme, others := p.served("acme"), p.served("")
				p.run(60 * time.Second)
				t.Logf("%.2f %.2f", (p.served("acme")-acme).Seconds()/60, (p.served("")-others).Seconds()/60)
				require.LessOrEqual(t, p.most["acme"], int64(4))
				require.GreaterOrEqual(t, (p.served("acme")-acme).Seconds()/60, 3.4)
				require.GreaterOrEqual(t, (p.served("acme")-acme+p.served("")-others).Seconds()/60, 0.95*16)
			})
		}
	}
}

// chaos changes what callers want, loses messages, kills and starts processes, and lets the store forget, at random.
func (p *slotPool) chaos(rng *rand.Rand) {
	lost := func(rate float64) func() (bool, bool) {
		return func() (bool, bool) { return rng.Float64() < rate, rng.Float64() < rate }
	}
	m := p.members[rng.IntN(len(p.members))]
	switch rng.IntN(10) {
	case 0:
		p.kill(m)
		if rng.IntN(2) == 0 {
			p.join(m.p.Cfg.ID).lost = lost(0.1) // another process under its name
		}
	case 1:
		if len(p.members) < 12 {
			p.join("")
		}
	case 2:
		m.lost = lost(rng.Float64())
	case 3:
		m.lost = nil
	case 4:
		m.p.Void(p.now)
	case 5:
		if rng.IntN(8) == 0 {
			p.record = driver.Record{}
			p.server += "'"
		}
	default:
		for _, tag := range []string{"acme", "team/1", "team/2", ""} {
			m.asks(tag, rng.IntN(12)*rng.IntN(2), time.Duration(1+rng.IntN(4000))*time.Millisecond)
		}
	}
	if len(p.members) == 0 {
		p.join("")
	}
}

// G15: no more calls of a tag are in flight over the whole pool than its total, at any moment, whatever happens to processes, messages and store.
func TestNoMoreCallsOfATagThanItsTotalAreInFlight(t *testing.T) {
	for seed := range uint64(testkit.Fewer(6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			q := ofSlots(map[string]limit.Quota{"acme": {Total: 5, Reserved: 2}})
			q.Match, q.Other = []limit.QuotaPattern{{Tag: "team/*", Quota: limit.Quota{Total: 3}}}, limit.Quota{Total: 9}
			p := newSlotPool(t, 12, q, 4)
			for range 100 {
				p.chaos(rng)
				p.run(time.Duration(rng.IntN(4000)) * time.Millisecond)
			}
			for tag, total := range map[string]int64{"acme": 5, "team/1": 3, "team/2": 3, "": 9} {
				require.LessOrEqual(t, p.most[tag], total, tag)
				require.GreaterOrEqual(t, p.most[tag], total/2, "it was asked for")
			}
			require.LessOrEqual(t, p.inFlight, int64(12))
		})
	}
}

// A total that an operator lowers below what is in flight takes effect as calls end: none begins above it once all processors know it. A total
// that comes where there was none counts the calls in flight.
func TestALoweredTotalTakesEffectAsCallsEnd(t *testing.T) {
	for name, q := range map[string]limit.Quota{"lowered": {Total: 8}, "new": {}} {
		t.Run(name, func(t *testing.T) {
			p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": q}), 4)
			for _, m := range p.members {
				m.asks("acme", 10, 3*time.Second)
			}
			p.run(20 * time.Second)
			before := p.running("acme")
			require.GreaterOrEqual(t, before, int64(8))
			p.save(QuotaChanges{}.with("acme", &limit.Quota{Total: 3}, QuotaOrder{}))
			p.run(2 * tagInterval)
			for range 3 * time.Second / tagStep { // calls that are in flight end
				now := p.running("acme")
				p.run(tagStep)
				require.LessOrEqual(t, p.running("acme"), max(now, 3))
			}
			p.most["acme"] = 0
			require.InDelta(t, 3, p.use("acme", 20*time.Second), 0.4)
			require.LessOrEqual(t, p.most["acme"], int64(3))
			p.save(QuotaChanges{})
			p.run(5 * time.Second)
			require.GreaterOrEqual(t, p.use("acme", 10*time.Second), 0.95*float64(min(before, 16)))
		})
	}
}

// G16: with 16 slots, four of them reserved, on four pods with a hog whose calls take 30 s, the tag has all four as soon as four slots have
// become free, and not later than two intervals after each. Until it asks for them, the hog has them.
func TestReservedSlotsComeAsCallsEnd(t *testing.T) {
	for _, pods := range [][]int{{0}, {1, 3}, {0, 1, 2, 3}} {
		for _, q := range []limit.Quota{{Reserved: 4}, {Reserved: 4, Total: 6}} {
			t.Run(fmt.Sprint(pods, q.Total), func(t *testing.T) {
				p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": q}), 4)
				for _, m := range p.members {
					m.asks("", 100, 30*time.Second)
				}
				p.run(35 * time.Second)
				require.EqualValues(t, 16, p.running(""), "it is lent")
				for _, i := range pods {
					p.members[i].asks("acme", 12/len(pods), time.Minute)
				}
				p.run(2 * tagInterval)
				reserved := 0.0
				for _, m := range p.members {
					reserved += m.tag("acme").grant.Reserved
				}
				require.GreaterOrEqual(t, reserved, 3.99)
				// acme has as many as slots have become free for two intervals, or all that are reserved.
				var ended []int64
				all := p.running("")
				for range 40 * time.Second / tagStep {
					p.run(tagStep)
					ended = append(ended, all-p.running(""))
					if k := len(ended) - int(2*tagInterval*11/10/tagStep); k > 0 {
						require.GreaterOrEqual(t, p.running("acme"), min(ended[k-1], 4), p.now)
					}
				}
				require.GreaterOrEqual(t, p.running("acme"), int64(4))
				parts := 0.0
				for _, m := range p.members {
					parts += m.tag("acme").grant.Part + m.tag("").grant.Part
				}
				require.InDelta(t, 16, parts, 0.5)
				for _, m := range p.members {
					m.asks("acme", 0, time.Minute)
				}
				p.run(100 * time.Second)
				require.EqualValues(t, 16, p.running(""), "it is lent again")
			})
		}
	}
}

// G17: tags with long calls and tags with short ones have the same slot-time, wherever their callers are.
func TestEqualTagsHaveEqualSlotTime(t *testing.T) {
	for name, pods := range map[string]func(tag, pod int) bool{
		"everywhere": func(int, int) bool { return true }, "on one": func(tag, pod int) bool { return tag%4 == pod },
	} {
		t.Run(name, func(t *testing.T) {
			tags := map[string]limit.Quota{}
			for i := range 8 {
				tags[fmt.Sprint("t", i)] = limit.Quota{}
			}
			p := newSlotPool(t, 16, ofSlots(tags), 4)
			for pod, m := range p.members {
				for i := range 8 {
					if pods(i, pod) {
						m.asks(fmt.Sprint("t", i), 6, 100*time.Millisecond*time.Duration(1+i*i*2))
					}
				}
			}
			p.run(60 * time.Second)
			var before [8]time.Duration
			for i := range before {
				before[i] = p.served(fmt.Sprint("t", i))
			}
			p.run(300 * time.Second)
			sum, squares := 0.0, 0.0
			for i := range before {
				use := (p.served(fmt.Sprint("t", i)) - before[i]).Seconds()
				sum, squares = sum+use, squares+use*use
			}
			require.GreaterOrEqual(t, sum, 0.95*16*300)
			require.GreaterOrEqual(t, sum*sum/8/squares, 0.95, "Jain's index")
		})
	}
}

// G16: a tag below its reservation over the pool gets the slot where it becomes free, whichever processor the plan gives the reserved slots to.
func TestATagBelowItsReservationComesFirstWhereItWaits(t *testing.T) {
	for slots, pods := range map[int]int{1: 6, 3: 7, 4: 2} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			p := newSlotPool(t, slots, ofSlots(map[string]limit.Quota{"acme": {Reserved: slots}}), pods)
			for _, m := range p.members {
				m.asks("acme", slots, time.Second)
				m.asks("", slots, 300*time.Millisecond)
			}
			p.run(30 * time.Second)
			require.GreaterOrEqual(t, p.use("acme", 100*time.Second), 0.95*float64(slots))
		})
	}
}

// A processor's place is among all that are live, at least itself.
func TestSlotPlace(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "c"}, "1")
	place := func() [3]int64 {
		turn, rank, live := p.SlotPlace()
		return [3]int64{turn, int64(rank), int64(live)}
	}
	require.Equal(t, [3]int64{0, 0, 1}, place())
	p.Answer.Roster, p.clock.time, p.Lease = []driver.RosterRow{{ID: "a"}, {ID: "c"}, {ID: "d"}}, 25_000_000, 10*time.Second
	require.Equal(t, [3]int64{2, 1, 3}, place())
	p.Lease = 0
	require.EqualValues(t, 25_000_000, p.turn())
	p.ReportSlots(0, []sharing.TagSlotReport{{Tag: "x", Running: 1}})
	require.Empty(t, p.tags.slots.tags, "its limit is none of calls in flight")
}

// Without the store a tag has its part of its total by this processor's share, and keeps what it has beyond that. One without a total is not bound.
func TestPartsOfTotalsWithoutTheStore(t *testing.T) {
	tags := tagging{}
	tags.policy.set(&limit.Quotas{})
	for _, total := range []int64{0, 8, 20} {
		tags.slots.tags = append(tags.slots.tags, slotTag{TagSlotReport: sharing.TagSlotReport{Total: total, InUse: 6}})
	}
	c := core{}
	c.degraded, c.held = true, driver.Whole/2
	parts := tags.takeParts(&c, 0)
	require.Equal(t, [3]int64{6, 6, 10}, [3]int64{parts[0].InUse, parts[1].InUse, parts[2].InUse})
	require.Equal(t, []sharing.TagSlotGrant{{}, {Bound: true, Granted: 4}, {Bound: true, Granted: 10}}, tags.slots.grants)
}

// The parts of tags by which they are served add up to the slots of the processor.
func TestTagsShareTheSlotsOfAProcessor(t *testing.T) {
	p := newSlotPool(t, 16, ofSlots(map[string]limit.Quota{"acme": {}}), 1)
	m := p.members[0]
	m.asks("acme", 20, time.Second)
	m.asks("", 20, time.Second)
	p.run(3 * time.Second)
	for _, tag := range []string{"acme", ""} {
		require.InDelta(t, 8, m.tag(tag).grant.Part, 0.1)
	}
}

// What a limiter reports is held to the bounds of requests, and callers of a blocked tag ask for nothing, unless it is a shadow.
func TestReportsOnSlotsAreBounded(t *testing.T) {
	q := ofSlots(map[string]limit.Quota{"blocked": {Blocked: true}, "shadow": {Blocked: true, Shadow: true}})
	for n, want := range map[int64]int64{-5: 0, 5: 5, wire.MaxTokens + 1: wire.MaxTokens} {
		p := newSlotPool(t, 16, q, 1).members[0].p
		p.ReportSlots(0, []sharing.TagSlotReport{{Tag: "x", Running: n, Demand: n, Waiting: n, Total: n, InUse: n, Wanted: n}})
		require.Equal(t, sharing.TagSlotReport{Tag: "x", Running: want, Demand: want, Waiting: want, Total: want, InUse: want, Wanted: want},
			p.tags.slots.tags[0].TagSlotReport)
		p.ReportSlots(0, []sharing.TagSlotReport{{Tag: "blocked", Running: 2, Demand: 5}, {Tag: "shadow", Running: 2, Demand: 5}, {Tag: "x", Running: 5}})
		demands := map[string]int64{}
		for i := range p.tags.slots.tags {
			demands[p.tags.slots.tags[i].Tag] = p.tags.slots.tags[i].Demand
		}
		require.Equal(t, map[string]int64{"blocked": 2, "shadow": 5, "x": 5}, demands)
	}
}

// The store is asked for tags that use or want slots of a total. If there are too many, those in use come first.
func TestWhichTagsTheStoreIsAskedFor(t *testing.T) {
	tag := func(key uint64, inUse, demand, total int64) slotTag {
		return slotTag{key: key, TagSlotReport: sharing.TagSlotReport{InUse: inUse, Wanted: demand, Demand: demand, Total: total}}
	}
	s := slotTags{sent: []slotTag{tag(1, 0, 5, 0), tag(2, 0, 0, 5), tag(3, 1, 0, 0), tag(4, 0, 1, 1)}}
	require.Equal(t, []driver.TagSlots{{Key: 3, InUse: 1}, {Key: 4, Wanted: 1, Demand: 1, Total: 1}}, s.ask(1))
	const most = wire.MaxTokens
	s.sent = []slotTag{tag(1, most, most, 5), tag(1, 1, 1, 0), tag(2, 1, 1, 0), tag(2, 1, 1, 4), tag(2, 1, 1, 3)}
	require.Equal(t, []driver.TagSlots{
		{Key: 1, InUse: most, Wanted: most, Demand: most, Total: 5}, {Key: 2, InUse: 3, Wanted: 3, Demand: 3, Total: 3},
	}, s.ask(1))

	s.sent = nil
	for i := range uint64(wire.MaxTagSlots + 10) {
		s.sent = append(s.sent, tag(i, int64(i%2), 1, 1))
	}
	require.Len(t, (&slotTags{sent: s.sent[:wire.MaxTagSlots]}).ask(1), wire.MaxTagSlots)
	asked := map[uint64]int{}
	for seq := range uint64(100) {
		list := s.ask(seq)
		require.Len(t, list, wire.MaxTagSlots)
		require.True(t, slices.IsSortedFunc(list, func(a, b driver.TagSlots) int { return cmp.Compare(a.Key, b.Key) }))
		for _, a := range list {
			asked[a.Key]++
		}
	}
	for i := range uint64(wire.MaxTagSlots + 10) {
		require.Equal(t, i%2 == 1, asked[i] == 100, "the others take turns")
		require.Greater(t, asked[i], 30)
	}
}

// A tag asks for what it could use of the pool's slots: no more than it may have here of its total, unless its calls have more.
func TestWhatATagAsksOfThePool(t *testing.T) {
	for name, c := range map[string]struct {
		tag        sharing.TagSlotReport
		rate, used float64
	}{
		"all of its demand":   {sharing.TagSlotReport{Running: 2, Demand: 9}, 9, 2},
		"what it has":         {sharing.TagSlotReport{Running: 2, Demand: 9, InUse: 4, Total: 5}, 4, 2},
		"what its calls have": {sharing.TagSlotReport{Running: 6, Demand: 9, InUse: 4, Total: 5}, 6, 6},
		"less than it has":    {sharing.TagSlotReport{Running: 2, Demand: 3, InUse: 4, Total: 5}, 3, 2},
		"another's slots":     {sharing.TagSlotReport{Running: 2, Demand: 9, Under: true}, 0, 0},
	} {
		tags := tagging{}
		tags.policy.set(&limit.Quotas{})
		busy := tags.slotBusy([]slotTag{{TagSlotReport: c.tag}}, func(g *slotTag) int64 { return g.InUse })
		var want []busyTag
		if c.rate > 0 {
			want = []busyTag{{rate: c.rate, used: c.used, limited: c.tag.Total > 0}}
		}
		require.Equal(t, want, append([]busyTag(nil), busy...), name)
	}
}
