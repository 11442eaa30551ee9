package protocol

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
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
