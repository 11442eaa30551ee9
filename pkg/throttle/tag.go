package throttle

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/engine/tagbucket"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// A tag is the state that a Throttle keeps for one tag with a quota, or for all others together.
type tag struct {
	seat // its rank is above that of the Throttle
	name string
	key  uint64
	set  *tagSet
	t    *rateLimiter

	// Totals in tokens: granted less given back, refused, and waited for at present.
	used, refused, waiting atomic.Int64
	// barred counts tokens refused because a tag was paused. They are no demand: they would be refused whatever the tag may use.
	barred atomic.Int64
	// holds reports whether a draw can lack tokens of the tag. It is set under the lock.
	holds atomic.Bool
	// largest is the most that one draw can ever take, by the configured quota or, if that allows more, the one in force: a change may end.
	// It is set under the lock.
	largest atomic.Int64
	// largestFrom names the field of the quota that largest comes from, as a string. It is set with largest.
	largestFrom atomic.Value
	// gone is true when another tag has taken its place in the set. It is set under the set's lock and this one's.
	gone atomic.Bool
	// outranked is true while tags of a higher class use the tokens that this one asks for.
	outranked atomic.Bool
	// under is true while every draw for it was for a tag of the first level before it, which counts for it in the plan; see forLevels.
	under atomic.Bool

	inForce atomic.Pointer[Quota]

	mu        sync.Mutex
	tagBucket *tagbucket.Bucket
	queue     queue // of draws that lack tokens of the tag
	// promised counts tokens in the tag bucket that are kept for draws waiting for the limit.
	promised int64
	timer    sharing.Timer
	pace     pace
	grant    sharing.TagGrant // the pool's last grant, or the local plan
	reported sharing.TagReport
	last     int64 // time of the last use
	again    bool  // the pool may know an earlier tag of this name, and has had no report of this one
	many     bool  // it counts for several names, because there are too many to tell apart
	pins     int   // its users beside single draws: waits, and every All that has it
	// demand and use are in tokens per second, as of the plan's last look.
	demand, use float64
	calls       int64            // granted, less those that were cancelled
	average     fairtags.Average // of what a call costs
	averaged    int64            // calls that are in it
	slow        *tagBackoff      // nil: the limit is not adaptive
	held        tagHeld          // has a lock of its own

	// Guarded by the set's lock: its part of tagSet.weights.
	weight int
	// Guarded by the Throttle's lock.
	tagQueue *tagQueue
	// Guarded by the plan's lock.
	sampled sample
}

func newTag(s *tagSet, name string, q Quota) *tag {
	t := s.t
	g := &tag{name: name, key: tagname.Key(name), set: s, t: t}
	g.take(tagBucketSource{g}, seat{
		Seat: join.Seat[Permit]{Rank: nextRank(), Gate: &t.gate, Aside: true}, of: &t.options, label: cmp.Or(name, t.gate.Tag), side: tagBucketSource{g},
	})
	g.inForce.Store(&q)
	g.queue.SeveralFirst()
	g.tagBucket = tagbucket.New(tagbucket.Terms{
		Quota: q, Pooled: s.pooled, Part: s.part, Debt: t.limit.MaxDebt,
		Wall: t.gate.Present().Add(-time.Duration(t.gate.Now())),
	})
	g.holds.Store(g.tagBucket.Holds())
	g.putLargest()
	g.tagQueue = waitqueue.NewTagQueue[Permit](s.fairPart(q))
	g.grant.Tag, g.last = name, t.gate.Now()
	g.held.log = s.logOf(name)
	if t.backoff != nil {
		g.slow = &tagBackoff{}
	}
	return g
}

// quota returns the quota in force. It must not be changed.
func (g *tag) quota() *Quota { return g.inForce.Load() }

// batch reports whether the tag is in the lower class at present. The tag's lock is held.
func (g *tag) batch(now int64) bool { return g.quota().Class == ClassBatch || g.tagBucket.Lowered(now) }

// changed updates the tag after tokens have come or gone. The tag's lock is held.
func (g *tag) changed(now int64) {
	g.holds.Store(g.tagBucket.Holds())
	g.putLargest()
	g.serve(now)
}

// putLargest records the most that one draw can take. The tag's lock is held, or g is not shared yet.
func (g *tag) putLargest() {
	most, by := g.tagBucket.Largest()
	if _, q := g.set.configuration.Find(g.name); most < tagbucket.Endless {
		if n, of := tagbucket.Largest(q); n > most {
			most, by = n, of
		}
	}
	if g.largest.Swap(most) != most { // it is at least 1
		g.largestFrom.Store(by)
	}
}

// A pace compares a tag's draws with the rate that it should get here. It matters only while others lack tokens: then a tag above its rate
// stands back.
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

// within reports whether a draw of n tokens keeps to the rate.
func (p *pace) within(now int64, n int) bool {
	if p.rate <= 0 { // there is no plan yet
		return true
	}
	p.turn(now)
	return p.level >= min(float64(n), p.room())
}

// spend counts n tokens, below 0 for returned ones. An excess over the rate is forgotten after a second.
func (p *pace) spend(now int64, n int) {
	if p.rate > 0 {
		p.turn(now)
		p.level = max(p.level-float64(n), -p.rate)
	}
}

// A shortage is a tag that was recently refused tokens of the limit, although it keeps to its rate.
type shortage[T any] struct {
	by    atomic.Pointer[T]
	until atomic.Int64
	n     atomic.Int64 // tokens
}

const (
	// lackFor is how long a shortage counts after the last refusal.
	lackFor = int64(time.Second)
	// maxShort is how many tags can be short at once. Of more, some get only the tokens that others leave.
	maxShort = 16
)

// A shortages lists the tags that are short at present. It has no lock: draws without a lock write it, so it may change at any moment,
// under any reader.
type shortages[T any] struct {
	list [maxShort]shortage[T]
	// until is when the last shortage ends at the latest.
	until atomic.Int64
}

// any reports whether a tag can be short at a time.
func (s *shortages[T]) any(now int64) bool { return s.until.Load() > now }

// at returns the tag at place i if it is short now, and how many tokens it wants; nil: it is not short.
func (s *shortages[T]) at(i int, now int64) (g *T, n int64) {
	if p := &s.list[i]; p.until.Load() > now {
		return p.by.Load(), p.n.Load()
	}
	return nil, 0
}

// lacks notes that g, which keeps to its rate, was refused n tokens, or would be if others left none.
func (s *shortages[T]) lacks(g *T, n int, now int64) {
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

// satisfied reverts lacks: g is above its rate.
func (s *shortages[T]) satisfied(g *T) {
	for i := range s.list {
		if s.list[i].by.Load() == g {
			s.list[i].until.Store(0)
		}
	}
}

// other returns a tag other than g that lacks tokens; nil: there is none.
func (s *shortages[T]) other(g *T, now int64) *T {
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

// kept returns how many units of the bucket a waiter leaves for tags whose draws do not wait. Otherwise waiting callers would take every
// token as it comes, and a tag that asks now and then would find none, although it keeps to its rate. The only cost is the time in which
// these tokens come, once. Nothing is kept if the bucket holds no more than the waiter asks for, or for a draw that it never holds. None of
// these tags leaves anything to the others: the tokens that it takes now come back before they can have taken all of theirs.
func (s *tagSet) kept(now int64, w *waiter) (units int64) {
	t := s.t
	if !s.short.any(now) {
		return 0
	}
	capacity := t.bucket.Law().Capacity
	for i := range maxShort {
		g, n := s.short.at(i, now)
		switch {
		case g == nil:
			continue
		case w.TagQueue != g.tagQueue:
		case w.Queued():
			continue
		case int64(w.Least) <= n:
			return 0
		}
		if of := t.bucket.Units(int(min(n, int64(t.bucket.Largest)))); of <= capacity && n <= int64(t.bucket.Largest) {
			units += of
		}
	}
	return max(min(units, capacity-t.units(w)), 0)
}

var _ reserver = (*tagSet)(nil)

// keptUntil implements reserver.
func (s *tagSet) keptUntil() int64 { return s.short.until.Load() }

// passes reports whether tokens are kept for the tag of w, as many as it asks for.
func (s *tagSet) passes(now int64, w *waiter) bool {
	if s.t.issuing() || !s.short.any(now) {
		return false
	}
	for i := range maxShort {
		if g, n := s.short.at(i, now); g != nil && g.tagQueue == w.TagQueue {
			return int64(w.Least) <= n
		}
	}
	return false
}

// coming is the estimate of the last plan.
func (s *tagSet) coming() int { return int(s.waits.Load()) }

// cut starts the attribution of refusals over.
func (s *tagSet) cut() { s.blame.forget() }
