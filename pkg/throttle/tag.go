package throttle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/lanes"
	"github.com/numaproj-contrib/numathrottle/internal/quota"
	"github.com/numaproj-contrib/numathrottle/internal/stock"
)

// A tag is what a Throttle knows of one tag with a quota, or of all others together.
type tag struct {
	name string
	key  uint64
	t    *Throttle
	rank uint64 // see native; above that of the Throttle

	// Totals in tokens: granted less given back, refused, and waited for at present.
	used, refused, waiting atomic.Int64
	// held is how many of those refused were so for a pause of a tag, which is no demand: they would be refused whatever the tag may use.
	held atomic.Int64
	// holds tells whether a draw can lack tokens of the tag. It is set with the lock.
	holds atomic.Bool
	// largest is the most that one draw can ever take. It is set with the lock.
	largest atomic.Int64
	// gone says that another tag has taken its place in the set. It is set with the set's lock and this one's.
	gone atomic.Bool
	// outranked says that tags of a higher class use what it asks for.
	outranked atomic.Bool

	inForce atomic.Pointer[Quota]

	mu    sync.Mutex
	stock *stock.Stock
	queue queue // of draws that lack tokens of the tag
	timer Timer
	pace  pace
	grant TagGrant // the last one of the pool, or what was planned without it
	told  TagReport
	last  int64 // when it was used last
	anew  bool  // the pool may know another tag of this name, and has not been told of this one
	pins  int   // who uses it beside single draws: waits, and every All that has it
	// demand and use are those of the last look of the plan, in tokens per second.
	demand, use float64
	calls       int64            // granted, less those that were cancelled
	average     fairtags.Average // of what a call costs
	averaged    int64            // calls that are in it
	slow        *tagBackoff      // nil: the limit is not adaptive

	// Guarded by the Throttle's lock.
	lane lanes.Lane
	// Guarded by the plan's lock.
	sampled sample
}

func newTag(s *tagSet, name string, q Quota) *tag {
	t := s.t
	g := &tag{name: name, key: quota.Key(name), t: t, rank: nextRank()}
	g.inForce.Store(&q)
	g.stock = stock.New(stock.Terms{Quota: q, Pooled: s.pooled, Part: s.part, Wall: t.gate.Present().Add(-time.Duration(t.gate.Now()))})
	g.holds.Store(g.stock.Holds())
	g.largest.Store(g.stock.Largest())
	g.lane.SetWeight(s.fairPart(q))
	g.grant.Tag, g.last = name, t.gate.Now()
	if t.backoff != nil {
		g.slow = &tagBackoff{}
	}
	return g
}

// quota is the one in force. It must not be changed.
func (g *tag) quota() *Quota { return g.inForce.Load() }

// batch tells whether the tag is in the lower class at present. The tag's lock is held.
func (g *tag) batch(now int64) bool { return g.quota().Class == Batch || g.stock.Lowered(now) }

// changed goes on after tokens have come or gone. The tag's lock is held.
func (g *tag) changed(now int64) {
	g.holds.Store(g.stock.Holds())
	g.largest.Store(g.stock.Largest())
	g.serve(now)
}

// A pace is how a tag's draws stand against the rate that it should get here. It matters only while others lack
// tokens: who is above its rate stands back then.
type pace struct {
	rate, level float64
	at          int64
}

// room is how many tokens a tag can be behind its rate.
func (p *pace) room() float64 { return max(p.rate/4, 1) }

// turn brings the level up to now.
func (p *pace) turn(now int64) {
	p.level = min(p.level+p.rate*float64(now-p.at)/float64(time.Second), p.room())
	p.at = now
}

// within tells whether a draw of n tokens keeps to the rate.
func (p *pace) within(now int64, n int) bool {
	if p.rate <= 0 { // there is no plan yet
		return true
	}
	p.turn(now)
	return p.level >= min(float64(n), p.room())
}

// spend counts n tokens, below 0 for what was given back. What goes above the rate is forgotten after a second.
func (p *pace) spend(now int64, n int) {
	if p.rate > 0 {
		p.turn(now)
		p.level = max(p.level-float64(n), -p.rate)
	}
}

// A shortage is a tag that was refused tokens of the limit lately, although it keeps to its rate.
type shortage struct {
	by    atomic.Pointer[tag]
	until atomic.Int64
	n     atomic.Int64 // tokens
}

// lackFor is how long a shortage counts after the last refusal.
const lackFor = int64(time.Second)

// lacks notes that g, which keeps to its rate, was refused n tokens, or would be if others left none.
func (s *tagSet) lacks(g *tag, n int, now int64) {
	i := 1
	if first := s.short[0].by.Load(); first == g || s.short[0].until.Load() <= now {
		i = 0
	}
	s.short[i].by.Store(g)
	s.short[i].n.Store(int64(n))
	s.short[i].until.Store(now + lackFor)
}

// sated takes back what lacks has noted: g is above its rate.
func (s *tagSet) sated(g *tag) {
	for i := range s.short {
		if s.short[i].by.Load() == g {
			s.short[i].until.Store(0)
		}
	}
}

// shortOther returns a tag other than g that lacks tokens; nil: there is none.
func (s *tagSet) shortOther(g *tag, now int64) *tag {
	for i := range s.short {
		if s.short[i].until.Load() > now {
			if other := s.short[i].by.Load(); other != g {
				return other
			}
		}
	}
	return nil
}

// kept is how many units of the bucket a waiter leaves there for tags whose draws do not wait. Who waits would take every token as
// it comes, and a tag that asks now and then would find none, although it keeps to its rate. It costs nobody anything but
// the time in which these tokens come, once. A bucket that holds no more than the waiter asks for has no room for that. The lock
// is held.
func (t *Throttle) kept(now int64, w *waiter) (units int64) {
	if t.tags == nil || t.issuing() {
		return 0
	}
	for i := range t.tags.short {
		s := &t.tags.short[i]
		if g := s.by.Load(); g != nil && s.until.Load() > now && w.Lane != &g.lane {
			units += t.bucket.Units(int(s.n.Load()))
		}
	}
	return max(min(units, t.bucket.Law().Capacity-w.Units), 0)
}

// isNext tells whether it is w's turn: nobody stands before it, or it comes now and asks for what is kept for its tag. So nobody who waits
// is overtaken, for none of them may have that. The lock is held.
func (t *Throttle) isNext(now int64, w *waiter) bool {
	if t.queue.IsNext(w) {
		return true
	}
	if t.tags == nil || w.Queued() || w.Lane == nil {
		return false
	}
	for i := range t.tags.short {
		s := &t.tags.short[i]
		if g := s.by.Load(); g != nil && &g.lane == w.Lane && s.until.Load() > now {
			return int64(w.Least) <= s.n.Load()
		}
	}
	return false
}
