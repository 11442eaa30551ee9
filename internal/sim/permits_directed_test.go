package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// permitSchedules are the directed schedules of permits.
var permitSchedules = []directed{
	{
		// The slots of a lie further ahead than a freeze is long when the store forgets them.
		name: "a store forgets slots that lie far ahead", rule: "permit-reach",
		plan: func(p *plan) {
			p.noted, p.permits = true, true
			p.limit = throttle.Limit{Max: 1, Per: 10 * time.Second, Strict: true, MaxReserved: 4}
		},
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.join("b")
			w.until(t, func() bool { return a.drawer.th.Status().Issued.Reserved > 1 })
			w.store.restart(w, driver.Record{}, 0)
			w.run(w.now + 3*time.Minute)
		},
	},
	{
		// The slot of a comes later than the freeze ends.
		name: "a store forgets a slot that comes after its freeze", rule: "permit-hold",
		plan: func(p *plan) {
			p.noted, p.permits = true, true
			p.limit = throttle.Limit{Max: 1, Per: 20 * time.Second, Strict: true, MaxReserved: 2}
		},
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.join("b")
			w.until(t, func() bool { return a.drawer.th.Status().Issued.Reserved > 0 })
			w.store.restart(w, driver.Record{}, 0)
			w.run(w.now + 3*time.Minute)
		},
	},
	{
		// a hears no answer any more, and asks by an override that is outdated.
		name: "who goes by an outdated override names its spacing", rule: "spacing-by",
		plan: func(p *plan) {
			p.noted, p.permits = true, true
			p.limit = throttle.Limit{Max: 1, Per: 10 * time.Second, Strict: true}
		},
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.join("b")
			spaced := func(by time.Duration) func() bool {
				return func() bool { return w.store.rec.Permits.Issuing && w.store.rec.Permits.Spacing == by }
			}
			w.until(t, spaced(10*time.Second))
			w.override(protocol.Override{Max: 1, Per: time.Second})
			began := w.now
			w.until(t, spaced(time.Second))
			require.Less(t, w.now-began, 3*time.Second, "a higher limit is in force with the next syncs")
			w.cut(a, down)
			w.override(protocol.Override{Max: 1, Per: 20 * time.Second})
			w.until(t, spaced(20*time.Second))
			end := w.now + 5*time.Second
			w.until(t, func() bool { return !spaced(20*time.Second)() || w.now > end })
			if w.violation == nil && !spaced(20*time.Second)() {
				w.violatef(CheckPermit, "the spacing is %v again, the override says %v", w.store.rec.Permits.Spacing, 20*time.Second)
			}
		},
	},
	{
		// a has reserved a slot when its machine is suspended, and goes on long after it.
		name: "a suspended machine has reserved a permit",
		found: "A permit was good long after its slot (seed 23, by an outdated limit): a machine that had been suspended kept what it had " +
			"reserved, timed by a clock that had stood still. What is issued ends with the lease when the watchdog looks.",
		plan: func(p *plan) {
			p.noted, p.permits = true, true
			p.limit = throttle.Limit{Max: 1, Per: 3 * time.Second, Strict: true, MaxReserved: 3}
		},
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			reserved := func() int { return a.drawer.th.Status().Issued.Reserved }
			w.until(t, func() bool { return reserved() > 0 })
			w.halt(a, 20*time.Second, true)
			w.cutOff(a)
			w.run(w.now + 20*time.Second + watch)
			if n := reserved(); n > 0 {
				w.violatef(CheckPermit, "%d slots are good still that came while the machine was suspended", n)
			}
		},
	},
}
