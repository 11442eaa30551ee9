package sim

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// slottedSeeds is how many runs with calls in flight there are for each run of a rate.
const slottedSeeds = 0.3

// TestSlotSeeds makes runs with calls in flight: none breaks a promise.
func TestSlotSeeds(t *testing.T) {
	n := max(1, int(slottedSeeds*float64(setting(t, "SEEDS", unlessSet()))))
	n = int(setting(t, "SLOT_SEEDS", uint64(n)))
	cfg := configured(t)
	cfg.Found = func(r Result) { fmt.Fprintf(os.Stderr, "seed %d: %v\n", r.Seed, r.Violation) }
	sum := Sweep(cfg, FirstSlotted+setting(t, "FIRST", 1)-1, n, 20)
	c := &sum.Counters
	t.Logf("%d seeds (%.1f seeds/s), %d calls, %d took the last slot of a total, %d changes of totals, %d calls excused; "+
		"longest wait below a reservation %.1f intervals more than the longest call, longest time of a free slot %.1f, least Jain's index %.3f",
		c.Runs, float64(c.Runs)/sum.Real.Seconds(), c.SlotCalls, c.SlotsFull, c.SlotChanges, c.SlotExcused, c.SlotWait, c.SlotIdle, c.Jain)
	for _, v := range sum.Violations {
		t.Errorf("%s\n%v\n%s", replay(v.Seed, cfg.Processors), v.Violation, v.Plan)
	}
	if n < 50 || len(sum.Violations) > 0 {
		return
	}
	for what, n := range map[string]uint64{"took the last slot of a total": c.SlotsFull, "was excused": c.SlotExcused} {
		require.NotZero(t, n, "no call %s", what)
	}
	require.NotZero(t, c.SlotChanges, "no total was changed")
	require.Positive(t, c.Jain, "no division was judged")
}

// slotWorld is a calm pool of so many processors whose tags call as told. Nobody calls before the test says so.
func slotWorld(t *testing.T, processors, slots int, tags ...slotTagPlan) *world {
	t.Helper()
	p := calmPlan(processors)
	p.leases = []time.Duration{10 * time.Second}
	p.slots = &slotPlan{slots: slots, tags: tags}
	p.slots.quotas.Tags = map[string]limit.Quota{}
	w := newWorld(1, p, traceTo(t))
	t.Cleanup(w.endAllCallers)
	return w
}

// start starts the processes, and judges the pool from then on as a healthy one.
func (w *world) startSlots() {
	w.prepareSlotOracle()
	for range w.plan.processors {
		w.join(w.newID())
	}
	w.run(w.now + time.Minute)
	w.judgeSlots()
}

// flying counts the calls of a tag in flight.
func (w *world) flying(t int) int {
	w.excuseCalls()
	return w.slots.count[t]
}

// TestReservedSlotsOverThePool: with 16 slots, four of them reserved, on four processors with a hog whose calls take 30 s, the tag has all four as
// soon as four slots have become free, and not later than two intervals after each.
func TestReservedSlotsOverThePool(t *testing.T) {
	for _, at := range [][]int{{0}, {1, 3}, {0, 1, 2, 3}} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			w := slotWorld(t, 4, 16, slotTagPlan{name: "acme", shortest: time.Minute, longest: time.Minute},
				slotTagPlan{shortest: 30 * time.Second, longest: 30 * time.Second})
			w.plan.slots.quotas.Tags["acme"] = limit.Quota{Reserved: 4}
			w.startSlots()
			for _, p := range w.procs {
				w.want(p, 1, 100)
				w.run(w.now + 3*time.Second) // not all of its calls end at once
			}
			w.run(w.now + 40*time.Second)
			require.Equal(t, 16, w.flying(1), "an idle reservation is lent")
			for _, i := range at {
				w.want(w.procs[i], 0, 12/len(at))
			}
			w.run(w.now + 2*w.slotInterval())
			const step = 100 * time.Millisecond
			hog, behind := w.flying(1), int(w.slotBound(2)/step)+1
			var free []int
			for range 35 * time.Second / step {
				w.run(w.now + step)
				free = append(free, hog-w.flying(1))
				if k := len(free) - 1 - behind; k >= 0 {
					require.GreaterOrEqual(t, w.flying(0), min(free[k], 4), "%v", w.now)
				}
			}
			require.GreaterOrEqual(t, w.flying(0), 4)
			for _, p := range w.procs {
				w.want(p, 0, 0)
			}
			w.run(w.now + 100*time.Second)
			require.Equal(t, 16, w.flying(1), "it is lent again")
			require.Nil(t, w.violation)
		})
	}
}

// TestEqualTagsHaveEqualSlots: eight equal tags with calls of 0.1 to 10 s have equal slot-time, wherever their callers are.
func TestEqualTagsHaveEqualSlots(t *testing.T) {
	for name, calls := range map[string]func(tag, process int) bool{
		"everywhere": func(int, int) bool { return true }, "on one": func(tag, process int) bool { return tag%4 == process },
	} {
		t.Run(name, func(t *testing.T) {
			var tags []slotTagPlan
			for i := range 8 {
				length := time.Duration(1+i*i*2) * 100 * time.Millisecond
				tags = append(tags, slotTagPlan{name: fmt.Sprint("t", i), shortest: length, longest: length + 1})
			}
			w := slotWorld(t, 4, 16, tags...)
			for _, tag := range tags {
				w.plan.slots.quotas.Tags[tag.name] = limit.Quota{}
			}
			w.startSlots()
			for k, p := range w.procs {
				for i := range tags {
					if calls(i, k) {
						w.want(p, i, 6)
					}
				}
			}
			w.run(w.now + time.Minute)
			w.judgeJain(300 * time.Second)
			require.Nil(t, w.violation)
			t.Log(w.counters.Jain)
		})
	}
}
