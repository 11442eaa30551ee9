package throttle

import (
	"math"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/fairslots"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A slotTag is the state that an InFlight keeps for one tag with a quota, or for all others together. The lock of the InFlight guards it.
type slotTag struct {
	name  string
	quota Quota
	gone  bool // another tag has taken its name, or it has been idle for long
	under bool // its last call or waiter had another tag before it
	// largest is the most that one draw can ever take, by the configured quota or, if that allows more, the one in force: a change may end.
	largest atomic.Int64

	running int // slots that its calls hold
	waiting int // slots that callers wait for
	barred  int // of these, those of callers that a pause holds
	leading int // of both, those of calls and callers whose first tag it is
	ready   int // of these, those of waiters that are not set aside
	// short: a waiter is set aside because the tag lacks slots for it. No later caller of the tag passes it.
	short bool

	turn     fairslots.Turn
	stepped  int64 // the time of its last step; see slotTags.contended
	tagQueue *tagQueue
	first    *tagSlots // of its permits in use, the oldest
	last     *tagSlots

	// The most slots wanted since the last report, and between it and the one before.
	peak, before int
	asked        int64 // the demand of the last report
	granted      int64 // by the pool: how many it may use here; less after a report that asks for less
	free         int   // how many answers in a row have found slots of the total free
	grant        sharing.TagSlotGrant
	calls        int64 // granted, less those that were undone
	refused      int64
}

// unbound is the cap of a tag without a total.
const unbound = math.MaxInt

// bound reports whether the tag has a total.
func (g *slotTag) bound() bool { return g.quota.Total > 0 && !g.quota.Shadow }

// room returns how many more slots the tag may use here now, of so many at most.
func (s *slotTags) room(g *slotTag) int {
	switch {
	case g.quota.Blocked && !g.quota.Shadow:
		return -g.running
	case !g.bound():
		return unbound
	case s.pooled:
		return int(g.granted) - g.running
	}
	return s.part(g.quota.Total) - g.running
}

// spare returns how many slots of the tag nobody uses or waits for.
func (s *slotTags) spare(g *slotTag) int {
	room := s.room(g)
	if room == unbound {
		return room
	}
	return room - g.ready
}

// reserved returns how many slots are reserved for the tag here.
func (s *slotTags) reserved(g *slotTag) float64 {
	if s.pooled {
		return g.grant.Reserved
	}
	return float64(s.part(g.quota.Reserved))
}

// weight returns the tag's part of the slots here relative to those of others that wait. It is the part that the pool has planned, unless that is
// all that the tag asks for: in a moment it may ask for more.
func (s *slotTags) weight(g *slotTag) float64 {
	w := float64(max(g.quota.Weight, 1))
	if g.quota.Class == ClassBatch {
		w *= lowerClassPart
	}
	w *= float64(s.f.max) / float64(s.weights)
	if part := g.grant.Part; part > 0 && part < float64(g.running+g.waiting) {
		return part
	}
	return max(w, g.grant.Part)
}

// lowerClassPart is the part of slots that a tag of the lower class has beside one of the first with the same weight.
const lowerClassPart = 1.0 / 20

// step counts the slots in use up to now, but only those of the time in which callers waited.
func (s *slotTags) step(g *slotTag, now int64) {
	if at := s.contended(now); at > g.stepped {
		g.turn.Step(float64(at)/1e9, g.running, s.weight(g))
		g.stepped = at
	}
}

// start returns the tag's place in the order of service. A tag comes behind the one served last by as much as all slots can be used in a
// lease, at most.
func (s *slotTags) start(g *slotTag, now int64) float64 {
	s.step(g, now)
	g.turn.Forget(s.served + usedFor*float64(s.f.max)/s.weight(g))
	first := s.reserved(g)
	if s.pooled {
		first = g.grant.First
	}
	return g.turn.Start(g.running, first)
}

// usedFor is for how many seconds a tag that has used slots comes behind others: a lease by default.
const usedFor = 10

// lead counts n slots for the tag at a place among those of a call.
func (g *slotTag) lead(at, n int) {
	if at == 0 {
		g.leading += n
	}
	if n > 0 {
		g.under = at > 0
	}
}

// isUnder reports whether all calls and callers have another tag before it.
func (g *slotTag) isUnder() bool { return g.under && g.leading == 0 }

// wanted returns how many slots its calls hold, and callers wait for that no pause holds.
func (g *slotTag) wanted() int { return g.running + g.waiting - g.barred }

// note records the most slots wanted at once.
func (g *slotTag) note(more int) { g.peak = max(g.peak, g.wanted()+more) }

// idle reports whether nothing is known of the tag that would be lost with it.
func (g *slotTag) idle(pooled bool) bool {
	return g.running == 0 && g.waiting == 0 && (!pooled || g.peak == 0 && g.before == 0 && g.granted == 0)
}

// A tagSlots settles one permit of tags.
type tagSlots struct {
	slots
	tags  *[]*slotTag
	since int64 // when it was drawn
	// prev and next are its neighbours in the list of the first tag.
	prev, next *tagSlots
}

// settle gives the slots back, whatever the call used.
func (p *tagSlots) settle(int64, int, int) {
	if !p.done.CompareAndSwap(false, true) {
		return
	}
	f := p.of
	f.gate.Lock()
	defer f.gate.Unlock()
	f.inUse -= p.n
	tags := *p.tags
	tags[0].drop(p)
	f.tags.end(tags, p.n, false)
	f.serve()
}

// add puts a permit into the tag's list, behind the others.
func (g *slotTag) add(p *tagSlots) {
	if p.prev = g.last; p.prev != nil {
		p.prev.next = p
	} else {
		g.first = p
	}
	g.last = p
}

// drop takes a permit out of the tag's list.
func (g *slotTag) drop(p *tagSlots) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		g.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		g.last = p.prev
	}
	p.prev, p.next = nil, nil
}

func (s *slotTags) newTag(name string, q Quota) *slotTag {
	g := &slotTag{name: name, tagQueue: waitqueue.NewTagQueue[Permit](1)}
	s.keep(g, q)
	return g
}

// putLargest records the most that one draw can take.
func (s *slotTags) putLargest(g *slotTag) {
	most := 0
	_, configured := s.configured.Find(g.name)
	for _, q := range []Quota{configured, g.quota} {
		if q.Total == 0 || q.Shadow {
			most = s.f.max
		}
		most = max(most, q.Total)
	}
	g.largest.Store(int64(min(most, s.f.max)))
}
