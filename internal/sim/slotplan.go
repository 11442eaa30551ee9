package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// FirstSlotted is the first of the seeds whose runs limit calls in flight, with quotas of tags. They have no limit on a rate.
const FirstSlotted = 1 << 33

// SlottedDuration is the virtual time of such a run with faults.
const SlottedDuration = 2 * time.Minute

// A slotPlan is the plan of a run with calls in flight.
type slotPlan struct {
	slots  int
	quotas limit.Quotas
	tags   []slotTagPlan
	equal  bool          // no tag has a total, a reservation or a weight
	crowd  int           // the most callers of a tag at a process, divided by 2
	wants  time.Duration // mean between changes of the number of callers of a tag at a process; 0: the test sets it
	// changes is the mean between changes of a total; 0: nobody changes one. There are none where the store loses documents.
	changes time.Duration
}

// A slotTagPlan is what the callers of one tag do. The name is empty for all tags without a quota of their own.
type slotTagPlan struct {
	name               string
	shortest, longest  time.Duration // a call; its logarithm is uniform
	patience, thinking time.Duration // means, of waiting callers that give up, and of a pause between two calls; 0: neither
}

// of returns the configured quota of a tag.
func (s *slotPlan) of(t int) limit.Quota {
	_, q := s.quotas.Find(s.tags[t].name)
	return q
}

// drawSlots gives a run calls in flight instead of a rate. Pools of calls in flight are not cloned: nobody knows whose a call is then. Steps of
// the store's clock bring a removal nearer, which the checks of rates cover.
func (p *plan) drawSlots(seed uint64, r *rand.Rand) {
	if seed < FirstSlotted {
		return
	}
	s := &slotPlan{
		slots: []int{1 + r.IntN(4), 4 + r.IntN(13), 16 + r.IntN(25)}[r.IntN(3)],
		wants: logUniform(r, time.Second, 30*time.Second),
	}
	p.processors = 1 + r.IntN(8)
	if r.IntN(3) == 0 {
		s.drawEqual(r, p.processors)
	} else {
		s.drawQuotas(r)
	}
	s.crowd = 1 + r.IntN(max(2, s.slots/p.processors))
	p.extras, p.even, p.unused, p.loss = extras{slots: s, lastStates: p.lastStates}, false, 0, protocol.Stop
	p.limit = throttle.Limit{Max: 1}
	p.leases = p.leases[:1]
	p.longest = min(p.longest, p.leases[0])
	for _, f := range []Fault{FaultClone, FaultStep, FaultLimit} {
		p.faults[f] = false
	}
	if !s.equal && r.IntN(2) == 0 {
		s.changes = logUniform(r, 5*time.Second, time.Minute)
		for _, f := range []Fault{FaultWipe, FaultFlush, FaultFailover, FaultRollback} {
			p.faults[f] = false
		}
	}
}

// drawQuotas draws the tags: some with a total, some with a reservation, and one for all others. There are at most as many slots reserved as there
// are.
func (s *slotPlan) drawQuotas(r *rand.Rand) {
	s.quotas.Tags = map[string]limit.Quota{}
	left := s.slots
	for i := range 1 + r.IntN(5) {
		q := limit.Quota{Weight: 1 + r.IntN(4)*r.IntN(2)}
		if r.IntN(2) == 0 {
			q.Total = 1 + r.IntN(s.slots)
		}
		if r.IntN(2) == 0 && left > 0 {
			q.Reserved = 1 + r.IntN(left)
			if q.Total > 0 {
				q.Reserved = min(q.Reserved, q.Total)
			}
			left -= q.Reserved
		}
		if r.IntN(5) == 0 {
			q.Class = limit.ClassBatch
		}
		t := drawSlotTag(r)
		t.name = fmt.Sprint("t", i)
		s.quotas.Tags[t.name] = q
		s.tags = append(s.tags, t)
	}
	s.tags = append(s.tags, drawSlotTag(r))
	if r.IntN(3) == 0 {
		s.quotas.Other.Total = 1 + r.IntN(s.slots)
	}
}

// drawEqual draws equal tags, and enough slots for each process to have some.
func (s *slotPlan) drawEqual(r *rand.Rand, processors int) {
	s.equal, s.slots = true, 2*processors+8+r.IntN(20)
	s.quotas.Tags = map[string]limit.Quota{}
	for i := range 2 + r.IntN(7) {
		t := slotTagPlan{name: fmt.Sprint("t", i), shortest: logUniform(r, 100*time.Millisecond, 5*time.Second)}
		t.longest = logUniform(r, t.shortest, 10*time.Second)
		s.quotas.Tags[t.name] = limit.Quota{}
		s.tags = append(s.tags, t)
	}
}

func drawSlotTag(r *rand.Rand) (t slotTagPlan) {
	t.shortest = logUniform(r, 100*time.Millisecond, 20*time.Second)
	t.longest = logUniform(r, t.shortest, 30*time.Second)
	if r.IntN(3) == 0 {
		t.patience = logUniform(r, 50*time.Millisecond, 10*time.Second)
	}
	if r.IntN(3) == 0 {
		t.thinking = logUniform(r, 10*time.Millisecond, 5*time.Second)
	}
	return t
}

// changeTotals lets an operator raise, lower and restore totals from time to time.
func (w *world) changeTotals() {
	s := w.plan.slots
	w.after(exponential(w.rng.tags, s.changes), func() {
		if w.calm {
			return
		}
		r := w.rng.tags
		t := r.IntN(len(s.tags))
		q := s.of(t)
		q.Total = max(1, q.Reserved) + r.IntN(s.slots)
		if r.IntN(4) == 0 {
			w.changeQuota(t, nil)
		} else {
			w.changeQuota(t, &q)
		}
		w.changeTotals()
	})
}
