package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// rounding is the error of shares from being whole numbers of 1e-9.
const rounding = 2

// looksInARow is how often in a row the pool must be found whole.
const looksInARow = 10

// heal switches the faults off and waits for the pool to be whole again.
func (w *world) heal() {
	w.calmDown()
	if w.plan.slots != nil {
		w.healSlots()
		return
	}
	newest := w.onRecord()
	for _, p := range w.procs {
		newest = max(newest, p.loaded)
	}
	w.awaitHealth(w.now)
	resumed := never
	if w.violation == nil && w.plan.pauses > 0 && looksAtUse(w.plan.limit) {
		resumed = w.resumeForGood() // nobody draws in a pause, and the ramp cannot reach its end
	}
	if w.violation == nil && w.plan.noted {
		w.awaitLimit(newest)
	}
	if w.violation == nil && w.plan.pauses > 0 {
		if resumed == never {
			resumed = w.resumeForGood()
		}
		w.run(max(w.now, resumed))
	}
	if w.violation == nil && w.plan.permits {
		w.awaitPermits()
	}
}

// looksAtUse reports whether the limit has a ramp that rises only while it is used.
func looksAtUse(l throttle.Limit) bool {
	switch l.Mode.(type) {
	case throttle.RampOnlyIfUsed, throttle.RampGoBackN:
		return l.Ramps()
	}
	return false
}

// resumeForGood is an operator who ends all pauses once the pool is whole. A pause that the store has just lost would come back earlier. It
// returns the time from which nobody may be paused, which is checked then.
func (w *world) resumeForGood() time.Duration {
	w.resumeAll()
	by := w.now + slowest(2*driver.MaxLease/4)
	w.at(by, w.checkResumed)
	return by
}

// awaitLimit waits until every processor applies the same limit with the ramp at its end. The limit is the newest override on record or
// loaded by one of them.
func (w *world) awaitLimit(newest driver.Version) {
	start := w.now
	limit := start + slowest(2*w.plan.limit.RampUpDuration+30*time.Second)
	for w.violation == nil {
		why := w.unsettled(newest)
		if why == "" {
			w.tracef("one limit in force after %v", w.now-start)
			return
		}
		if w.now > limit {
			w.violatef(CheckRecovery, "%v after the shares are whole: %s", w.now-start, why)
		}
		w.run(w.now + time.Second/2)
	}
}

// unsettled says how the processors' limit differs from the expected one, or "".
func (w *world) unsettled(newest driver.Version) string {
	v := w.onRecord()
	if w.store.lost < w.limits.savedAt {
		newest = max(newest, w.limits.last) // which the store still has
	}
	if v < newest {
		return fmt.Sprintf("the override on record has version %d, somebody has loaded %d", v, newest)
	}
	rate := w.recorded()
	for _, p := range w.procs {
		view := p.proc.View(p.clock.read(w.now))
		has := view.Ceiling / period(p.limit).Seconds()
		if view.Override.Max != w.saved(v).Max || has < rate*(1-1e-9) || has > rate*(1+1e-9) {
			return fmt.Sprintf("%s goes by %.6g per second and the override %v, on record are %.6g and %v", p, has, view.Override, rate, w.saved(v))
		}
	}
	return ""
}

// awaitPermits checks that permits flow, if the pool issues them.
func (w *world) awaitPermits() {
	is := &w.store.rec.Permits
	if !is.Issuing {
		return
	}
	const slots = 20
	held := time.Duration(max(0, max(is.Hold*1000, is.Last)-w.store.logical(w))) // including reservations of dead processes
	w.run(w.now + slowest(held+2*is.Spacing+2*time.Second))
	before := w.counters.Permits // not the calls: they also pay debt
	w.run(w.now + slowest(slots*is.Spacing))
	if n := w.counters.Permits - before; w.violation == nil && is.Issuing && n < slots*3/4 {
		w.violatef(CheckRecovery, "of %d slots, %v apart, %d were reserved", slots, is.Spacing, n)
	}
}

// awaitHealth checks the pool until it is whole, or should have been.
func (w *world) awaitHealth(start time.Duration) {
	lease := slices.Max(w.plan.leases)
	limit := start + slowest(2*wire.Removal(w.plan.longestLease())+3*wire.Clamp(lease))
	looks := 0
	var first time.Duration
	for look := start; w.violation == nil; look += slowest(lease / 10) {
		w.run(look)
		why := w.unhealthy()
		switch {
		case why != "" && look > limit:
			w.violatef(CheckRecovery, "%v after the last fault: %s", look-start, why)
		case why != "":
			looks = 0
			continue
		case looks == 0:
			first = look
		}
		if looks++; looks == looksInARow {
			w.healed = first - start
			w.tracef("whole again after %v", w.healed)
			return
		}
	}
}

// calmDown ends every fault: partitions heal, late messages are lost, halted processes continue, one process per ID remains, and all are
// busy.
func (w *world) calmDown() {
	w.calm = true
	w.tracef("the faults are off")
	w.queue.Discard(func(at time.Duration, e *event) bool {
		return (e.kind == eventArrive || e.kind == eventDeliver) && at > w.now+time.Second
	})
	w.store.down = false
	if w.store.deaf {
		w.store.deaf = false
		w.store.newIdentity()
	}
	w.store.resume(w)
	seen := map[string]bool{}
	w.rng.fault.Shuffle(len(w.procs), func(i, j int) { w.procs[i], w.procs[j] = w.procs[j], w.procs[i] })
	for _, p := range append([]*process(nil), w.procs...) {
		if p.left || seen[p.id] {
			w.kill(p)
			continue
		}
		seen[p.id] = true
		p.cut = [2]time.Duration{}
		p.demand = driver.Whole
		if p.halted() {
			w.goOn(p)
		}
		w.turn(p)
	}
	if len(w.procs) == 0 {
		w.join(w.newID())
	}
}

// unhealthy says why the pool is not healthy yet, or "".
func (w *world) unhealthy() string {
	n := driver.Share(len(w.procs))
	fair := driver.Whole / n
	var sum driver.Share
	issuing := 0
	for _, p := range w.procs {
		v := p.proc.View(p.clock.read(w.now))
		if v.State == string(protocol.StateHolding) && v.Issuing && v.Frozen == 0 && w.store.rec.Permits.Issuing {
			issuing++
			continue
		}
		switch {
		case v.State != string(protocol.StateHolding):
			return fmt.Sprintf("%s is %s, frozen %v %s", p, v.State, v.Frozen, v.FrozenBy)
		case v.Degraded:
			return fmt.Sprintf("%s is degraded", p)
		case (v.Share+rounding)*n*100 < driver.Whole*95 || (v.Share-rounding)*n*100 > driver.Whole*105:
			return fmt.Sprintf("%s holds %v, %v is fair; %s", p, v.Share, fair, w.shares())
		}
		sum += v.Share
	}
	if issuing == len(w.procs) {
		return "" // there are no shares
	}
	if sum < driver.Whole/100*99 {
		return fmt.Sprintf("%v in use; %s", sum, w.shares())
	}
	return ""
}
