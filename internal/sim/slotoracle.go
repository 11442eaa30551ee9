package sim

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A slotState is the callers and the checks' view of calls in flight. The slices are by tag.
type slotState struct {
	running *caller   // that runs now
	ready   []*caller // that were woken, in turn

	calls  []*slotCall // in flight
	ended  []*slotCall // lately; see known
	totals [][]slotTotal
	count  []int // of calls that are not excused

	judged  time.Duration   // since when the pool is healthy; never: it is not
	lacking []time.Duration // since when a tag is below its reservation; never: it is not
	free    []time.Duration // since when slots are free, the longest first
	served  []time.Duration // slot-time
	looked  time.Duration   // at it
}

// A slotTotal is a tag's total in force from a moment on; 0: it has none.
type slotTotal struct {
	from  time.Duration
	total int
}

// A slotCall is a call in flight at the called service. It ends there, whatever becomes of its process.
type slotCall struct {
	p           *process
	t           int
	began, ends time.Duration
	excused     bool // its process had not reached the store for a removal time
}

func (w *world) prepareSlotOracle() {
	p := w.plan.slots
	if p == nil {
		return
	}
	s := &w.slots
	n := len(p.tags)
	s.totals, s.count, s.lacking, s.served, s.judged = make([][]slotTotal, n), make([]int, n), make([]time.Duration, n), make([]time.Duration, n), never
	for t := range p.tags {
		s.totals[t] = []slotTotal{{never, p.of(t).Total}}
	}
}

// setTotal notes that an operator has changed a total.
func (s *slotState) setTotal(now time.Duration, t, total int) {
	s.totals[t] = append(s.totals[t], slotTotal{now, total})
}

// allowed returns the largest total of a tag in force since a moment; 0: there was none.
func (s *slotState) allowed(t int, since time.Duration) (most int) {
	for i, x := range s.totals[t] {
		if i+1 < len(s.totals[t]) && s.totals[t][i+1].from < since {
			continue
		}
		if x.total == 0 {
			return 0
		}
		most = max(most, x.total)
	}
	return most
}

// hasTotal reports whether a tag has had a total since a moment.
func (s *slotState) hasTotal(t int, since time.Duration) bool {
	for i, x := range s.totals[t] {
		if x.total > 0 && (i+1 == len(s.totals[t]) || s.totals[t][i+1].from >= since) {
			return true
		}
	}
	return false
}

// slotRemoval is the earliest true time after which a store removes a process that it has not heard of.
func (w *world) slotRemoval() time.Duration {
	return wire.Removal(w.plan.leases[0]) * million / (million + maxDrift)
}

// noteSync notes that a request of a process has reached the store, and was granted. A late one of an earlier incarnation says nothing of the
// claim under which calls are in flight.
func (w *world) noteSync(m *message, status driver.Status) {
	p := m.p
	if w.plan.slots == nil || p == nil || status != driver.Granted || m.req.Incarnation != p.incarnation {
		return
	}
	w.excuseCalls()
	p.synced = w.now
}

// excuseCalls excuses the calls of processes that have not reached the store for a removal time, as docs/reliability.md says.
func (w *world) excuseCalls() {
	s := &w.slots
	s.calls = slices.DeleteFunc(s.calls, func(c *slotCall) bool {
		if c.ends <= w.now {
			s.ended = append(s.ended, c)
		}
		return c.ends <= w.now
	})
	s.ended = slices.DeleteFunc(s.ended, func(c *slotCall) bool { return w.now-c.ends > w.slotBound(firstIntervals) })
	clear(s.count)
	for _, c := range s.calls {
		if !c.excused && w.now-c.p.synced > w.slotRemoval() {
			c.excused = true
			w.counters.SlotExcused++
		}
		if !c.excused {
			s.count[c.t]++
		}
	}
}

// noteBegin checks a call that begins.
func (w *world) noteBegin(p *process, t int, ends time.Duration) {
	s := &w.slots
	s.calls = append(s.calls, &slotCall{p: p, t: t, began: w.now, ends: ends})
	w.countServed()
	w.excuseCalls()
	w.counters.SlotCalls++
	if w.trace != nil {
		w.tracef("%s begins a call of %q until %v: %v in flight", p, w.plan.slots.tags[t].name, ends, s.count)
	}
	sum := 0
	for _, n := range s.count {
		sum += n
	}
	if sum > w.plan.slots.slots {
		w.violatef(CheckSlots, "%s begins call %d of %d in flight: %v by tag", p, sum, w.plan.slots.slots, s.count)
	}
	if total := s.allowed(t, w.now-w.outdated()); total > 0 {
		if s.count[t] == total {
			w.counters.SlotsFull++
		}
		if s.count[t] > total {
			w.violatef(CheckSlotTotal, "%s begins call %d of %q in flight, its total is %d", p, s.count[t], w.plan.slots.tags[t].name, total)
		}
	}
	if s.judged == never {
		return
	}
	if w.plan.slots.of(t).Reserved > 0 {
		return // it may be first where its reserved slots are, whatever it has elsewhere
	}
	for u := range s.lacking {
		at := p.flight.waitsSince[u]
		if u == t || s.lacking[u] == never || at == never || p.flight.waits[u] == 0 || s.hasTotal(u, w.now-w.outdated()) {
			continue // the last one has just been served; the slots of a total may be those of another processor
		}
		if waits := w.now - max(at, s.lacking[u]); waits > w.slotBound(firstIntervals) && w.known(p, u) < w.plan.slots.of(u).Reserved {
			w.violatef(CheckSlotReserved, "%s begins a call of %q, %v in flight, and %q has waited there for %v below its reservation of %d",
				p, w.plan.slots.tags[t].name, s.count, w.plan.slots.tags[u].name, waits, w.plan.slots.of(u).Reserved)
		}
	}
}

// known returns how many calls of a tag a process may know of: at other ones also those that ended lately.
func (w *world) known(p *process, t int) (n int) {
	for _, c := range w.slots.calls {
		if c.t == t {
			n++
		}
	}
	for _, c := range w.slots.ended {
		if c.t == t && c.p != p {
			n++
		}
	}
	return n
}

// slotInterval is the longest time between two syncs of a process in a healthy pool.
func (w *world) slotInterval() time.Duration {
	return slowest(wire.Interval(w.plan.leases[0], len(w.procs)))
}

// slotBound is some of them, and the time that messages take.
func (w *world) slotBound(intervals int) time.Duration {
	return time.Duration(intervals)*w.slotInterval() + 100*time.Millisecond
}

// How many intervals things may last in a healthy pool. Two are promised, of a steady demand; here it changes. A tag without a total that waits
// somewhere is first there after firstIntervals. A slot is free for at most idleIntervals: the demand of a processor counts for two more reports
// after it has ended, and two processors sync after that, which a part of a slot makes longer. A tag that has a total, or whose reserved slots are
// lent at another processor, waits for the longest call, and for lentIntervals until the slot has come. Processors that wait for fewer reserved
// slots than there are processors take turns, a lease each.
const (
	firstIntervals = 4
	idleIntervals  = 10
	lentIntervals  = 30
)

// turns is how long all other processors can have turns at the slots reserved for a tag.
func (w *world) turns(t int) time.Duration {
	n := w.plan.slots.of(t).Reserved
	return time.Duration((len(w.procs)-1)/max(n, 1)) * slowest(w.plan.leases[0])
}

// lacksSince returns since when a tag has been below its reservation while somebody waits; never: it is not.
func (w *world) lacksSince(t int) time.Duration {
	since := never
	if w.slots.lacking[t] == never {
		return never
	}
	for _, p := range w.procs {
		if at := p.flight.waitsSince[t]; at != never && (since == never || at < since) {
			since = at
		}
	}
	if since == never {
		return never
	}
	return max(since, w.slots.lacking[t])
}

// longestCall is the longest that a call may take.
func (w *world) longestCall() (longest time.Duration) {
	for _, t := range w.plan.slots.tags {
		longest = max(longest, t.longest)
	}
	return longest
}

// countServed counts slot-time up to now.
func (w *world) countServed() {
	s := &w.slots
	for t, n := range s.count {
		s.served[t] += time.Duration(n) * (w.now - s.looked)
	}
	s.looked = w.now
}

// checkSlots checks a healthy pool after each event.
func (w *world) checkSlots() {
	if w.plan.slots == nil || w.slots.judged == never {
		return
	}
	s := &w.slots
	w.countServed()
	w.excuseCalls()
	free := w.plan.slots.slots
	for t, n := range s.count {
		free -= n
		switch {
		case n >= w.plan.slots.of(t).Reserved:
			s.lacking[t] = never
		case s.lacking[t] == never:
			s.lacking[t] = w.now
		}
	}
	s.noteFree(free, w.now)
	oldest := w.now
	if len(s.free) > 0 {
		oldest = s.free[0]
	}
	interval := w.slotInterval()
	for t := range s.count {
		total := s.allowed(t, w.now-w.outdated())
		mayHave := free > 0 && (total == 0 || s.count[t] < total)
		for _, p := range w.procs {
			since(&p.flight.waitsSince[t], w.now, p.flight.waits[t] > 0)
			since(&p.flight.idleSince[t], w.now, p.flight.waits[t] > 0 && mayHave)
			if at := max(p.flight.idleSince[t], oldest); p.flight.idleSince[t] != never {
				w.counters.SlotIdle = max(w.counters.SlotIdle, float64(w.now-at)/float64(interval))
				if w.now-at > w.slotBound(idleIntervals) {
					w.violatef(CheckSlotIdle, "%d slots have been free for %v, %v in flight, and %d callers of %q wait at %s",
						free, w.now-at, s.count, p.flight.waits[t], w.plan.slots.tags[t].name, p)
				}
			}
		}
		if at := w.lacksSince(t); at != never {
			waits := w.now - at - w.longestCall()
			w.counters.SlotWait = max(w.counters.SlotWait, waits.Seconds()/interval.Seconds())
			if waits > w.slotBound(lentIntervals)+w.turns(t) {
				w.violatef(CheckSlotReserved, "%q has waited below its reservation for %v more than any call takes, %v in flight",
					w.plan.slots.tags[t].name, waits, s.count)
			}
		}
	}
}

// noteFree notes how many slots are free. A call that begins elsewhere takes the one that has been free for the longest.
func (s *slotState) noteFree(free int, now time.Duration) {
	s.free = s.free[max(0, len(s.free)-max(free, 0)):]
	for len(s.free) < free {
		s.free = append(s.free, now)
	}
}

// since keeps since when something is so.
func since(at *time.Duration, now time.Duration, so bool) {
	switch {
	case !so:
		*at = never
	case *at == never:
		*at = now
	}
}
