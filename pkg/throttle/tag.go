package throttle

import (
	"sync"
	"sync/atomic"
	"time"

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
}

// lackFor is how long a shortage counts after the last refusal.
const lackFor = int64(time.Second)

// lacks notes that g, which keeps to its rate, was refused.
func (s *tagSet) lacks(g *tag, now int64) {
	i := 1
	if first := s.short[0].by.Load(); first == g || s.short[0].until.Load() <= now {
		i = 0
	}
	s.short[i].by.Store(g)
	s.short[i].until.Store(now + lackFor)
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
