package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A directed schedule is a story that random ones tell too rarely. The bound holds
// in it because of a rule: see TestMutants for what happens without.
type directed struct {
	name string
	rule string // see package mutants; empty: none that can be left out alone
	// found tells which violation was found by this schedule, or by the seed that it
	// tells again, and what it led to; empty when it was thought up.
	found string
	plan  func(p *plan)
	run   func(t *testing.T, w *world)
}

var schedules = slices.Concat(pauseSchedules, permitSchedules, drawSchedules, lastStateSchedules, []directed{
	{
		name: "an overlap ends with the next syncs", rule: "room",
		run: func(t *testing.T, w *world) {
			_, b := overlap(t, w, false)
			w.reach(b)
			w.run(w.now + 3*time.Second)
			w.plan.loss = protocol.Stop
			w.run(w.now + 20*time.Second)
		},
	},
	{
		name: "an overlap ends although one holder hears no answer", rule: "claim-falls",
		run: func(t *testing.T, w *world) {
			a, b := overlap(t, w, true)
			b.cut[up] = 0
			w.turn(b)
			w.run(w.now + 3*time.Second)
			require.False(t, near(a, 0))
			w.plan.loss = protocol.Stop
			w.run(w.now + 20*time.Second)
		},
	},
	{
		// It may go on without the store, but the store was there: the others have taken what it had.
		name: "a process that was stopped does not go on by itself", rule: "asked-on-time",
		plan: func(p *plan) { p.loss = protocol.Degrade },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.plan.loss = protocol.Stop // all is checked
			a.demand, b.demand = driver.Whole, driver.Whole
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.halt(a, 2*wire.Removal(a.lease), false)
			w.until(t, func() bool { return near(b, 100) })
			w.run(w.now + 2*wire.Removal(a.lease))
		},
	},
	{
		// Both go on without the store. Then one is stopped, the store comes back, and the other is given what it had.
		name: "a process that is stopped while the store is down does not go on", rule: "degraded-grace",
		found: "Shares overlapped (found by reading the code, told by a schedule): a process that went on without the store, was stopped, and was " +
			"removed by a store that had come back, drew until its next answer. A share without consent ends 0.6 leases after the last request.",
		plan: func(p *plan) { p.loss, p.together = protocol.Degrade, true },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			a.demand, b.demand = driver.Whole, driver.Whole
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.store.takeDown(w, 20*time.Second, true)
			w.until(t, func() bool { return a.degraded && b.degraded })
			require.True(t, near(a, 50) && near(b, 50), "%v and %v", a.held, b.held)
			w.halt(a, time.Minute, false)
			w.until(t, func() bool { return near(b, 100) })
			w.run(w.now + time.Minute)
			require.True(t, near(a, 50) || w.violation != nil, "%v", a.held)
		},
	},
	{
		// The store is emptied while nobody in the pool can reach it, but others can: it knows again what it would know of
		// a pool. Then a new processor is the first to ask, and all that were there go on without the store.
		name: "a pool is not new while somebody may go on without the store", rule: "outlasts",
		found: "Shares overlapped (seed 3756, with Degrade; a fault of the product): a store that was emptied while nobody in the pool could reach it " +
			"took the pool for new after a removal time, and gave the first who asked, a new processor, what the others used without the store. With " +
			"Degrade a pool is new only when the store has remembered for an hour and a quarter more.",
		plan: func(p *plan) { p.loss, p.together, p.knownNew = protocol.Degrade, true, true },
		run:  newcomerWhileOthersGoOn,
	},
	{
		name: "a pool is not new while somebody may go on without a store that learns the time late", rule: "outlasts",
		plan: func(p *plan) { p.loss, p.together, p.knownNew, p.store = protocol.Degrade, true, true, storeDeferred },
		run:  newcomerWhileOthersGoOn,
	},
	{
		// Packets of a processor that left come in long after its tombstone has gone,
		// and take room away; a's share is cut for it, and the answer that says so is
		// lost. Then the ghost's leave arrives.
		name: "late packets take room away",
		found: "Shares overlapped: a claim whose owner had not heard of its smaller answer yet was counted at the answer. " +
			"A claim falls only when less is reported in use.",
		run: func(t *testing.T, w *world) {
			ghost := newGhost(t, w)
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.run(w.now + 20*time.Second)
			w.cut(a, down)
			ghost.haunt(w, 0)
			ghost.haunt(w, 1)
			require.Greater(t, w.store.rec.Claims(), driver.Whole)
			w.until(t, func() bool { return w.lastAnswered(a) < percent(50) })
			w.store.rec.Leave(&ghost.leave, w.store.moment(w))
			w.run(w.now + 30*time.Second)
		},
	},
	{
		// a is stopped until just before its lease is over, sends a request and is
		// stopped again. The request arrives after a was removed, b got its share and
		// the store was wiped: the store believes that a uses its share. When a goes
		// on, the answer is there before it notices that it waited too long.
		name: "a lapsed share is reported to a wiped store", rule: "broken-lease",
		plan: func(p *plan) { p.rates = ratesHurtSafe },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			d := a.clock.when(a.until) - w.now - 100*time.Millisecond
			w.halt(a, d, false)
			w.run(w.now + d - 1)
			w.plan.up.least = 6 * time.Second
			w.run(w.now + 1)
			w.plan.up.least = time.Millisecond
			w.halt(a, time.Hour, false)
			w.until(t, func() bool { return near(b, 100) })
			w.cutOff(b)
			w.store.restart(w, driver.Record{}, 0)
			w.store.newIdentity()
			w.until(t, func() bool { return len(a.inbox) > 0 })
			answer := a.inbox[0]
			a.stopped, a.inbox = false, nil
			w.receive(answer)
			w.run(w.now + 30*time.Second)
		},
	},
	{
		// Of both parts of a clone every request is lost but one, and both remember
		// the same answer.
		name: "clones are answered in turn",
		found: "Shares overlapped (seed 26, with 60 % of all requests lost): a clone with an older memory passed for its original, " +
			"beyond one lease. A request names every unanswered one before it.",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			c := w.clone(a)
			w.cutOff(a)
			w.cutOff(c)
			w.run(w.now + 5*time.Second)
			before := a.until
			w.reach(a)
			w.until(t, func() bool { return a.until > before })
			w.cutOff(a)
			w.run(w.now + 2*time.Second)
			w.reach(c)
			w.run(w.now + 20*time.Second)
		},
	},
	{
		// A part of a clone that was never answered is heard when the row of their
		// incarnation was removed, and makes it again. The other part comes back with a
		// newer memory than the row.
		name: "a clone makes the row anew", rule: "recall",
		found: "Shares overlapped (seed 7883): a clone that had never had an answer made the row of its incarnation anew, and its original, " +
			"which remembered more than the row, took that for its own. A store that is behind names the newest request that it knows; " +
			"who has not sent it starts anew.",
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return a.outstanding })
			c := w.clone(a)
			a.mirror = nil
			w.cutOff(c)
			b := w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.run(w.now + time.Minute)
			w.cutOff(a)
			w.until(t, func() bool { return near(b, 100) })
			w.reach(c)
			w.until(t, func() bool { return near(c, 50) })
			w.reach(a)
			w.run(w.now + 20*time.Second)
		},
	},
	{
		// Of a clone one part is refused many times while the other one is stopped. Then
		// the other one is answered, and the first comes with more unanswered requests
		// than can be named.
		name: "a clone has sent more than can be named",
		found: "Shares overlapped (seed 19794): of a request that named as many unanswered ones as it could it was believed that the newest on " +
			"record was one of the others. A processor with as many as it can name sends the newest of them again.",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			c := w.clone(a)
			a.mirror = nil
			const down = 3 * time.Minute
			w.halt(a, down+time.Second, false)
			w.store.takeDown(w, down, true)
			w.run(w.now + down - time.Millisecond)
			require.GreaterOrEqual(t, c.seq, a.seq+wire.MaxUnanswered-1)
			w.cutOff(c)
			before := a.until
			w.until(t, func() bool { return a.until > before && near(a, 50) })
			w.cutOff(a)
			w.reach(c)
			w.run(w.now + 20*time.Second)
		},
	},
	{
		// One part of a clone has lowered its share, and b has what became free, when the store
		// goes back to before. The other part is heard first.
		name: "a clone, and a store that falls back",
		found: "Shares overlapped for a second (seed 2081): the store forgot within a lease of a cloning that one part had lowered its share, and " +
			"renewed that of the other. Not mended, for nobody has told it: said under Not guaranteed, and counted from a lease after the fallback on.",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			older, written := w.store.copied(), w.store.written
			c := w.clone(a)
			a.mirror = nil
			w.cutOff(c)
			a.demand = driver.Whole / 10
			w.until(t, func() bool { return near(b, 90) })
			w.cutOff(a)
			w.cutOff(b)
			w.store.restart(w, older, written)
			before := c.until
			w.reach(c)
			w.until(t, func() bool { return c.until > before && near(c, 50) })
			require.True(t, near(b, 90), "what a has given up")
			w.run(w.now + 3*time.Second)
			w.reach(a)
			w.reach(b)
			w.run(w.now + 40*time.Second)
		},
	},
	{
		// One part of a clone leaves after the other's share was renewed.
		name:  "a clone leaves",
		found: "Shares overlapped: the leave of a clone freed the claim that its original used. A leave carries what its sender remembers.",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			c := w.clone(a)
			w.cutOff(c)
			w.run(w.now + 10*time.Second)
			w.cutOff(a)
			c.cut[up] = 0
			w.leave(c)
			w.run(w.now + 10*time.Second)
		},
	},
	{
		// A request of a processor that has just left arrives: it holds nothing any more.
		name: "a late packet of a processor that has left", rule: "tombstone",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			late := a.proc.Request(a.clock.read(w.now), 1, protocol.Observation{Demand: driver.Whole})
			w.leave(a)
			w.until(t, func() bool { return near(b, 100) })
			before := outline(&w.store.rec)
			w.store.rec.Sync(&late, w.store.moment(w))
			w.checkStep(&late, before)
			if sum := w.store.rec.Claims(); sum > driver.Whole {
				w.violatef(CheckRecord, "a processor that has left lifts the claims to %v", sum)
			}
		},
	},
	{
		// The only process left was replaced by one that has died: the clock of its
		// pool goes on although nobody is granted anything.
		name: "the last one was replaced",
		found: "No recovery: the only process left waited for ever for the one that had replaced it and died, " +
			"because no refused request moved the logical clock. Now it does.",
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			b := w.join("a")
			w.until(t, func() bool { return near(b, 100) })
			w.kill(b)
			w.awaitHealth(w.now)
			require.True(t, w.violation != nil || near(a, 100))
		},
	},
	{
		// The same in a pool that has become one of short leases meanwhile.
		name: "the last one was replaced in a pool of shorter leases",
		found: "No recovery (seed 4132): alone in a pool whose lease had become shorter than its own, a replaced processor asked at gaps " +
			"that count as no time. It asks as often as the shortest lease needs.",
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			w.store.restart(w, driver.Record{}, 0)
			w.store.newIdentity()
			w.plan.leases = []time.Duration{driver.MinLease}
			w.cutOff(a)
			b := w.join("a")
			w.until(t, func() bool { return b.outstanding })
			w.run(w.now + 30*time.Second)
			w.kill(b)
			w.reach(a)
			w.awaitHealth(w.now)
			require.True(t, w.violation != nil || near(a, 100))
		},
	},
	{
		// Within one removal time the store's clock makes a step that passes for a
		// pause, and one by an hour.
		name: "two steps of the clock",
		found: "Shares overlapped: a leap that counted as one clamp and a small step within one removal time removed a row in use. " +
			"A gap beyond the clamp counts as no time.",
		plan: func(p *plan) { p.rates = ratesHurtSafe },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.cutOff(a)
			w.run(w.now + time.Second)
			w.store.step(wire.Clamp(driver.DefaultLease) * 9 / 10)
			w.run(w.now + 2*time.Second)
			w.store.step(time.Hour)
			w.run(w.now + 20*time.Second)
		},
	},
})

func TestDirected(t *testing.T) {
	for _, s := range schedules {
		t.Run(s.name, func(t *testing.T) {
			w := s.play(t)
			if w.violation != nil {
				t.Errorf("%v\n%s", w.violation, s.found)
			}
			require.True(t, max(w.counters.Peak, w.store.rec.Claims()) > 0 || w.counters.Permits > 0, "nobody held anything")
		})
	}
}

// newcomerWhileOthersGoOn empties the store while nobody can reach it but a new processor.
func newcomerWhileOthersGoOn(t *testing.T, w *world) {
	a, b := w.join("a"), w.join("b")
	a.demand, b.demand = driver.Whole, driver.Whole
	w.until(t, func() bool { return near(a, 50) && near(b, 50) })
	w.cutOff(a)
	w.cutOff(b)
	w.until(t, func() bool { return a.degraded && b.degraded })
	w.store.restart(w, driver.Record{}, 0)
	w.run(w.now + wire.Removal(w.plan.longestLease()) + 10*time.Second)
	c := w.join("c")
	c.demand = driver.Whole
	w.run(w.now + 3*time.Second)
	w.reach(a)
	w.reach(b)
	w.until(t, func() bool { return near(a, 33) && near(b, 33) && near(c, 33) })
}
