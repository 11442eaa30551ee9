package throttle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/stock"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
)

// A tag is what a Throttle knows of one tag with a quota, or of all others together.
type tag struct {
	name string
	key  uint64
	t    *Throttle
	rank uint64 // see native; above that of the Throttle

	// Totals in tokens: granted less given back, refused, and waited for at present.
	used, refused, waiting atomic.Int64
	// barred is how many of those refused were so for a pause of a tag, which is no demand: they would be refused whatever the tag may use.
	barred atomic.Int64
	// holds tells whether a draw can lack tokens of the tag. It is set with the lock.
	holds atomic.Bool
	// largest is the most that one draw can ever take. It is set with the lock.
	largest atomic.Int64
	// largestFrom is the field of the quota that largest is from, a string. It is set with largest.
	largestFrom atomic.Value
	// gone says that another tag has taken its place in the set. It is set with the set's lock and this one's.
	gone atomic.Bool
	// outranked says that tags of a higher class use what it asks for.
	outranked atomic.Bool

	inForce atomic.Pointer[Quota]

	mu    sync.Mutex
	stock *stock.Stock
	queue queue // of draws that lack tokens of the tag
	// promised are tokens in the stock of draws that wait for the limit.
	promised int64
	timer    Timer
	pace     pace
	grant    TagGrant // the last one of the pool, or what was planned without it
	told     TagReport
	last     int64 // when it was used last
	anew     bool  // the pool may know another tag of this name, and has not been told of this one
	many     bool  // it counts for several names, because there are more than are told apart
	pins     int   // who uses it beside single draws: waits, and every All that has it
	// demand and use are those of the last look of the plan, in tokens per second.
	demand, use float64
	calls       int64            // granted, less those that were cancelled
	average     fairtags.Average // of what a call costs
	averaged    int64            // calls that are in it
	slow        *tagBackoff      // nil: the limit is not adaptive
	held        tagHeld          // has a lock of its own

	// Guarded by the Throttle's lock.
	lane *lane
	// Guarded by the plan's lock.
	sampled sample
}

func newTag(s *tagSet, name string, q Quota) *tag {
	t := s.t
	g := &tag{name: name, key: tagname.Key(name), t: t, rank: nextRank()}
	g.inForce.Store(&q)
	g.queue.SeveralFirst()
	g.stock = stock.New(stock.Terms{Quota: q, Pooled: s.pooled, Part: s.part, Debt: t.limit.MaxDebt, Wall: t.gate.Present().Add(-time.Duration(t.gate.Now()))})
	g.holds.Store(g.stock.Holds())
	g.putLargest()
	g.lane = waitqueue.NewLane[Permit](s.fairPart(q))
	g.grant.Tag, g.last = name, t.gate.Now()
	g.held.log = s.logOf(name)
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
	g.putLargest()
	g.serve(now)
}

// putLargest notes the most that one draw can take. The tag's lock is held, or nobody else knows of g yet.
func (g *tag) putLargest() {
	if most := g.stock.Largest(); g.largest.Swap(most) != most || g.largestFrom.Load() == nil {
		g.largestFrom.Store(g.stock.LargestBy())
	}
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

const (
	// lackFor is how long a shortage counts after the last refusal.
	lackFor = int64(time.Second)
	// maxShort is how many tags can be short at once. Of more, some get what others leave.
	maxShort = 16
)

// A shortages is the tags that are short at present. It has no lock: draws that take none write it, so what it says may change at any
// moment, whoever looks.
type shortages struct {
	list [maxShort]shortage
	// until is when the last one is over, at the latest.
	until atomic.Int64
}

// any tells whether a tag can be short at a time.
func (s *shortages) any(now int64) bool { return s.until.Load() > now }

// at returns the tag of a place that is short now, and how many tokens it wants; nil: there is none.
func (s *shortages) at(i int, now int64) (g *tag, n int64) {
	if p := &s.list[i]; p.until.Load() > now {
		return p.by.Load(), p.n.Load()
	}
	return nil, 0
}

// lacks notes that g, which keeps to its rate, was refused n tokens, or would be if others left none.
func (s *shortages) lacks(g *tag, n int, now int64) {
	place := &s.list[maxShort-1]
	for i := len(s.list) - 1; i >= 0; i-- {
		p := &s.list[i]
		if p.by.Load() == g {
			place = p
			break
		}
		if p.until.Load() <= now {
			place = p
		}
	}
	place.by.Store(g)
	place.n.Store(int64(n))
	place.until.Store(now + lackFor)
	if s.until.Load() < now+lackFor {
		s.until.Store(now + lackFor)
	}
}

// sated takes back what lacks has noted: g is above its rate.
func (s *shortages) sated(g *tag) {
	for i := range s.list {
		if s.list[i].by.Load() == g {
			s.list[i].until.Store(0)
		}
	}
}

// other returns a tag other than g that lacks tokens; nil: there is none.
func (s *shortages) other(g *tag, now int64) *tag {
	if !s.any(now) {
		return nil
	}
	for i := range s.list {
		if other, _ := s.at(i, now); other != nil && other != g {
			return other
		}
	}
	return nil
}

// kept is how many units of the bucket a waiter leaves there for tags whose draws do not wait. Who waits would take every token as
// it comes, and a tag that asks now and then would find none, although it keeps to its rate. It costs nobody anything but
// the time in which these tokens come, once. A bucket that holds no more than the waiter asks for has no room for that, and
// for a draw that it never holds nothing is kept. Nor does one of these tags leave anything to the others: what it takes now comes back
// before they can have taken all of theirs. It may be another number the next time. The lock is held.
func (t *Throttle) kept(now int64, w *waiter) int64 {
	if t.tags == nil {
		return 0
	}
	return t.keptForTags(now, w)
}

// keptForTags is kept where there are quotas. It is not inlined: the frames of those who wait would be larger, and with them the stack
// of a goroutine for each message.
//
//go:noinline
func (t *Throttle) keptForTags(now int64, w *waiter) (units int64) {
	if t.issuing() || !t.tags.short.any(now) {
		return 0
	}
	capacity := t.bucket.Law().Capacity
	for i := range maxShort {
		g, n := t.tags.short.at(i, now)
		switch {
		case g == nil:
			continue
		case w.Lane != g.lane:
		case w.Queued():
			continue
		case int64(w.Least) <= n:
			return 0
		}
		if of := t.bucket.Units(int(min(n, int64(t.bucket.Largest)))); of <= capacity && n <= int64(t.bucket.Largest) {
			units += of
		}
	}
	return max(min(units, capacity-w.Units), 0)
}

// keptFor is how long anything can be kept yet.
func (t *Throttle) keptFor(now int64) time.Duration {
	return time.Duration(max(t.tags.short.until.Load()-now, 1))
}

// isNext tells whether it is w's turn: nobody stands before it, or it comes now and asks for what is kept for its tag. So nobody who waits
// is overtaken, for none of them may have that. The lock is held.
func (t *Throttle) isNext(now int64, w *waiter) bool {
	if t.queue.IsNext(w) {
		return true
	}
	if t.tags == nil || w.Queued() || w.Lane == nil || t.issuing() || !t.tags.short.any(now) {
		return false
	}
	for i := range maxShort {
		if g, n := t.tags.short.at(i, now); g != nil && g.lane == w.Lane {
			return int64(w.Least) <= n
		}
	}
	return false
}
