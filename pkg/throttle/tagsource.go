package throttle

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A tagBucketSource is the tag bucket of a tag as a child of an All. Callers that lack tokens of the tag stand in its queue, first come first served,
// and in no other.
type tagBucketSource struct{ *tag }

var (
	_ native  = tagBucketSource{}
	_ tagSide = tagBucketSource{}
)

func (g tagBucketSource) Part() part {
	return part{Source: g, Gate: &g.t.gate, Of: g.t.seat.Rank, TagBucket: g, Soonest: g.soonest, TryLock: g.mu.TryLock}
}

// tagAt returns the tag whose tag bucket has the seat; nil: it is another seat, or none.
func tagAt(s *join.Seat[Permit]) *tag {
	if s == nil {
		return nil
	}
	own, _ := s.Source.(tagBucketSource)
	return own.tag
}

// Lock and Unlock are those of the tag.
func (g tagBucketSource) Lock()   { g.mu.Lock() }
func (g tagBucketSource) Unlock() { g.mu.Unlock() }

func (g tagBucketSource) Largest() int { return int(min(g.largest.Load(), math.MaxInt)) }

func (g tagBucketSource) Peek(n int) bool {
	g.Lock()
	defer g.Unlock()
	return g.AtHand(&waiter{Age: waitqueue.Latest}) >= n
}

func (g tagBucketSource) Draw(n int) (Permit, bool) {
	g.Lock()
	defer g.Unlock()
	return g.Take(&waiter{Age: waitqueue.Latest}, n)
}

func (g tagBucketSource) AtHand(w *waiter) int {
	if !g.tagBucket.Holds() {
		return math.MaxInt
	}
	if w.Promised == 0 && !g.queue.IsNext(w) || g.t.gate.Closed.Load() {
		return 0
	}
	level := g.tagBucket.AtHand(g.t.gate.Now())
	if w.Promised > 0 { // its own tokens, and those that are promised to no caller
		return int(min(level, max(int64(w.Promised), level-(g.promised-int64(w.Promised))), math.MaxInt))
	}
	return int(min(max(level-g.promisedBefore(w), 0), math.MaxInt))
}

// promisedBefore is the number of tokens promised to other callers, which w must leave alone. An attempt that stands in several queues may take
// them, because their owners may be waiting elsewhere. The lock is held.
func (g *tag) promisedBefore(w *waiter) int64 {
	if w.Many {
		return 0
	}
	return g.promised - int64(w.Promised)
}

// kept is the number of promised tokens that the tag bucket must not lose. The lock is held.
func (g *tag) kept(now int64) int64 { return min(g.promised, g.tagBucket.AtHand(now)) }

// before returns how many tokens go to callers before w. The lock is held.
func (g tagBucketSource) before(w *waiter) int64 {
	if w.Promised > 0 {
		return 0
	}
	return int64(g.queue.Before(w)) + g.promisedBefore(w)
}

func (g tagBucketSource) Due(w *waiter) (time.Duration, bool) {
	d, _, known := g.tagBucket.Due(g.t.gate.Now(), g.before(w)+int64(w.Least))
	return d, known
}

// soonest is Due for a caller that lets nobody pass. The lock is held.
func (g tagBucketSource) soonest(w *waiter) time.Duration {
	first := *w
	first.Late = false
	wait, _ := g.Due(&first)
	return wait
}

// LetPass implements waitqueue.tagbucket.Bucket. The lock is held.
func (g tagBucketSource) LetPass(w *waiter, late bool) {
	if w.Late = late; w.Queued() && g.queue.Move(w) {
		g.serve(g.t.gate.Now())
	}
}

// Promised reports whether tokens are promised to others than w. The lock is held.
func (g tagBucketSource) Promised(w *waiter) bool { return g.promised > int64(w.Promised) }

// First reports whether w comes next. The lock is held.
func (g tagBucketSource) First(w *waiter) bool { return g.queue.IsNext(w) }

// Promise promises the tokens of w to it, or ends the promise. The lock is held.
func (g tagBucketSource) Promise(w *waiter, on bool) {
	n := 0
	if on && g.tagBucket.Holds() {
		n = w.Least
	}
	was := w.Promised
	g.promised += int64(n - was)
	if w.Promised = n; n < was {
		g.serve(g.t.gate.Now())
	}
}

// Earns leads by nothing for a tag that cannot lack tokens.
func (g tagBucketSource) Earns(n int) (takes, ahead time.Duration) {
	takes = g.tagBucket.Earns(int64(n))
	if g.tagBucket.Holds() {
		ahead = takes
	}
	return takes, ahead
}

func (g tagBucketSource) Refusal(w *waiter) sharing.Refusal {
	now, n := g.t.gate.Now(), g.before(w)+int64(w.Least)
	r := sharing.Refusal{Reason: g.lacks(now, n), Cost: w.N, RetryAfter: g.tagBucket.Expect(now, n)}
	r.Fallback = r.Reason == ReasonBudget && g.tagBucket.FallsBack()
	return r
}

// lacks returns why n tokens cannot be taken. The tag's lock is held.
func (g *tag) lacks(now, n int64) Reason {
	r := g.tagBucket.Lacks(now, n)
	if g.many && r == ReasonQuota {
		return ReasonNames // none of the names need be at its total
	}
	return r
}

func (g tagBucketSource) Stand(w *waiter) {
	if !w.Queued() {
		g.queue.Insert(w)
	} else if !g.queue.Move(w) {
		return
	}
	now := g.t.gate.Now()
	g.serve(now)
	if g.queue.First == w {
		g.poke(now)
	}
}

func (g tagBucketSource) Leave(w *waiter, n int) {
	drawn := n >= 0
	if !w.Queued() && !drawn {
		return
	}
	if w.Queued() {
		g.queue.Remove(w)
	}
	if drawn {
		g.promised -= int64(w.Promised)
		w.Promised = 0
	}
	g.serve(g.t.gate.Now())
}

func (g tagBucketSource) Take(w *waiter, n int) (Permit, bool) {
	if g.AtHand(w) < n {
		return Permit{}, false
	}
	now := g.t.gate.Now()
	d, ok := g.tagBucket.Take(now, int64(n))
	if !ok {
		return Permit{}, false
	}
	g.used.Add(int64(n))
	g.calls++
	return Permit{n: n, by: &tagBucketDraw{tag: g.tag, draw: d}}, true
}

func (g tagBucketSource) Untake(w *waiter, p Permit) {
	now := g.t.gate.Now()
	if s, ok := p.by.(*tagBucketDraw); ok {
		g.tagBucket.Return(now, s.draw, int64(p.n))
		g.used.Add(-int64(p.n))
		g.calls--
	}
	if w == nil {
		g.changed(now)
	}
}

// serve wakes the first caller in the queue if there are tokens for it. Otherwise it arranges for that to happen when tokens come, or when
// promised tokens are drawn. The lock is held.
func (g *tag) serve(now int64) {
	w := g.queue.First
	if w == nil {
		g.tagBucket.Reach(now, 0, g.kept(now))
		if g.timer != nil {
			g.timer.Stop()
		}
		return
	}
	g.tagBucket.Reach(now, int64(w.Least), max(int64(w.Least), g.kept(now)))
	promised := g.promisedBefore(w)
	if g.tagBucket.AtHand(now)-promised >= int64(w.Least) || g.t.gate.Closed.Load() {
		w.Attempt.Wake()
		return
	}
	d, _, known := g.tagBucket.Due(now, promised+int64(w.Least))
	if !known || d >= sharing.Never || promised+int64(w.Least) > g.tagBucket.Room() {
		if g.timer != nil {
			g.timer.Stop()
		}
		return // the pool's next grant serves the queue, or the draw of promised tokens
	}
	if g.timer == nil {
		g.timer = g.t.gate.AfterFunc(max(d, 1), g.onTimer)
		return
	}
	g.timer.Reset(max(d, 1))
}

func (g *tag) onTimer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.t.gate.Now()
	if w := g.queue.First; w != nil {
		w.Attempt.Wake() // it may have to learn that it is no longer known when tokens come
		if _, _, known := g.tagBucket.Due(now, int64(w.Least)); !known {
			g.poke(now)
		}
	}
	g.serve(now)
}

// retime wakes callers that will not have their tokens before their deadlines. It is called when the bound has fallen, the pool has
// reported how little it has, or an older caller has come.
func (g *tag) retime(now int64) {
	before := int64(0)
	for w := range g.queue.All() {
		if d, _, _ := g.tagBucket.Due(now, before+g.promisedBefore(w)+int64(w.Least)); w.Misses(now, d) {
			w.Attempt.Wake()
			continue
		}
		before += int64(w.Least)
	}
}

// poke tells the pool that the tag lacks tokens.
func (g *tag) poke(now int64) { g.t.noteShort(now) }

func (g tagBucketSource) NoteRefused(n int, _ bool) {
	g.refused.Add(int64(n))
	g.poke(g.t.gate.Now())
}

func (g tagBucketSource) countWait(r Reason)    { g.held.log.CountWait(r) }
func (g tagBucketSource) countRefusal(r Reason) { g.turnAway(r) }

// complete makes an error one of the tag's quota.
func (g tagBucketSource) complete(e *Error) {
	e.by = g.set.viewOf(g.tag)
	if e.Reason == ReasonTooLarge {
		e.Largest = g.t.maxCost
	}
	g.bounds(e)
}

// bounds lowers the largest draw that an error names to that of the tag's quota.
func (g *tag) bounds(e *Error) {
	if most := g.largest.Load(); e.Reason == ReasonTooLarge && most < int64(e.Largest) {
		e.Largest, e.LargestBy = int(most), g.largestBy()
	}
}

// largestBy names the setting that bounds the largest draw.
func (g *tag) largestBy() string {
	by, _ := g.largestFrom.Load().(string)
	return "quotas." + g.set.setting(g.name) + "." + by
}

// A tagBucketDraw settles what an attempt took from a tag bucket. It is settled at most once.
type tagBucketDraw struct {
	tag  *tag
	draw tagBucketOrigin
}

func (d *tagBucketDraw) settle(_ int64, n, used int) {
	d.settleBeside(0, n, max(used, 0), drop{})
}

func (d *tagBucketDraw) settleBeside(_ int64, n, used int, of drop) drop {
	return d.tag.dropped(d.tag.settled(d.draw, n, used, of.own), of)
}
