package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// lastStateSchedules are about processes that die, and what those after them take over.
var lastStateSchedules = []directed{
	{
		name: "who comes after a dead process has its share at once",
		plan: func(p *plan) { p.lastStates = true },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.kill(a)
			w.run(w.now + 2*time.Second)
			require.True(t, near(b, 50))
			began := w.now
			a = w.joinAt("a", a.place)
			w.until(t, func() bool { return near(a, 50) })
			require.Less(t, w.now-began, 2*wire.Interval(a.lease, 2))
			w.run(w.now + time.Minute)
		},
	},
	{
		name: "a pool of one goes on at once", plan: func(p *plan) { p.lastStates = true },
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			for range 3 {
				w.kill(a)
				began := w.now
				a = w.joinAt("a", a.place)
				w.until(t, func() bool { return near(a, 100) })
				require.Less(t, w.now-began, 2*wire.Interval(a.lease, 1))
			}
		},
	},
	{
		// One stops, the other is started in the same place and must wait for what may still be drawn.
		name: "the place of a process that is only stopped", plan: func(p *plan) { p.lastStates = true },
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			w.halt(a, time.Minute, false)
			b := w.joinAt("a", a.place)
			w.run(w.now + 5*time.Second)
			require.Zero(t, b.held)
			w.until(t, func() bool { return near(b, 100) })
			require.Same(t, a, a.place.holder)
		},
	},
	{
		name: "a late packet of a process that is dead", rule: "death-row", plan: func(p *plan) { p.lastStates = true },
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			late := a.proc.Request(a.clock.read(w.now), 1, protocol.Observation{Demand: driver.Whole})
			w.kill(a)
			b := w.joinAt("a", a.place)
			w.until(t, func() bool { return near(b, 100) })
			before := outline(&w.store.rec)
			w.store.rec.Sync(&late, w.store.moment(w))
			w.checkStep(&late, before)
			if sum := w.store.rec.Claims(); sum > driver.Whole {
				w.violatef(CheckRecord, "a process that is dead lifts the claims to %v", sum)
			}
		},
	},
	{
		// A copy of a machine is woken long after the cloning, and its process dies before it has spoken. The one after it
		// finds in its place what both had in common.
		name: "the death of a clone proves nothing of the other", rule: "death-clone", plan: func(p *plan) { p.lastStates = true },
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			q := w.clone(a)
			w.halt(q, time.Hour, false)
			w.run(w.now + 2*wire.Removal(a.lease))
			require.True(t, near(a, 100), "%v", a.held)
			require.Equal(t, a.incarnation, q.incarnation)
			w.kill(q)
			w.joinAt("a", q.place)
			w.run(w.now + time.Minute)
		},
	},
}
