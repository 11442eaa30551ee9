package throttle

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Throttle grants tokens at one processor's share of a limit. It is a Limiter.
// All methods may be called from any number of goroutines at once.
type Throttle struct {
	plumbing
	limit Limit
	scale scale
	rank  uint64    // see member
	base  time.Time // origin of all times here; monotonic

	// The draw reads gate, forfeited and granted, and swaps granted. gate is the
	// present segment, or a segment that is over while callers wait in the queue.
	gate      atomic.Pointer[segment]
	page      atomic.Pointer[page]
	_         [64]byte // the words below change with every draw
	granted   atomic.Int64
	forfeited atomic.Int64
	contended atomic.Int64 // when a swap failed last
	_         [64]byte
	refused   atomic.Int64 // tokens refused since the beginning
	shortAt   atomic.Int64 // when a caller was refused or made to wait last
	lacked    atomic.Int64 // the largest draw refused since the last Demand, with a hard limit
	closed    atomic.Bool
	held      heldLog
	pausing   sync.Mutex // held while it is paused without a pool

	mu       sync.Mutex
	now      func() int64 // nanoseconds since base
	seg      *segment     // the present segment
	queue    queue
	timer    Timer
	credited int64 // units given back since the beginning
	kept     int64 // position in granted up to which permits cannot be given back any more
	void     int64 // units in granted that nobody was granted: fences, and what was collected in vain
	usage    usageLog
	ramp     *localRamp // nil: there is none, or the pool's moves the share
	slow     *slowing   // nil: the limit is not adaptive
	issue    issue
	pauses   pauses
}

var (
	_ Limiter     = (*Throttle)(nil)
	_ PauseHolder = (*Throttle)(nil)
)

// New returns a Throttle for a limit. A limit with Max 0 never refuses and never
// waits. The error names every field of the limit that is out of bounds.
func New(limit Limit, opts ...Option) (*Throttle, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	t := &Throttle{plumbing: newPlumbing(opts), limit: limit.withDefaults(), rank: nextRank()}
	t.now = t.read
	if limit.Max == 0 {
		return t, nil
	}
	t.begin()
	t.beginIssue()
	t.beginSlowing()
	if t.limit.Strict && t.sharer != nil && t.issue.from == nil {
		return nil, fmt.Errorf("throttle: strict is true, allowed: false with a sharer that cannot issue tokens (%T)", t.sharer)
	}
	t.scale = newScale(t.limit)
	t.shortAt.Store(-never)
	t.seg = newSegment(t.limit, t.scale, Lease{Reason: ReasonNoShare}, 0, 0, 0)
	t.gate.Store(t.seg)
	t.page.Store(newPage(t, 0))
	switch s := t.sharer.(type) {
	case nil:
		t.fixed(WholeShare)
	case *Static:
		t.fixed(s.share)
	default:
		s.Attach(t)
	}
	return t, nil
}

// Limit returns the limit with its defaults filled in.
func (t *Throttle) Limit() Limit { return t.limit }

// Unlimited tells whether the Throttle has no limit at all.
func (t *Throttle) Unlimited() bool { return t.limit.Max == 0 }

// TryAcquire takes n tokens if they are at hand and nobody waits. It never waits;
// when it succeeds it takes no lock, and allocates nothing but a page of half a
// kilobyte for every 4,096 tokens.
func (t *Throttle) TryAcquire(n int) (Permit, bool) {
	if n <= 0 || t.limit.Max == 0 {
		return Permit{n: max(n, 0)}, !t.closed.Load()
	}
	var now int64 // as read does, which the compiler does not inline
	if t.clock == nil {
		now = int64(time.Since(t.base))
	} else {
		now = t.read()
	}
	if n <= t.scale.largest { // more would not fit into the units
		if pos, ok := t.draw(int64(n)<<(t.scale.shift&63), now); ok {
			return Permit{n: n, pos: pos, by: t.cell(pos)}, true
		}
	}
	if t.issue.from != nil && n <= t.scale.largest {
		if p, ok := t.takeIssued(n, now); ok {
			return p, true
		}
	}
	if n <= t.scale.largest { // what can never be granted is no demand
		t.lacks(n)
		t.short(n, now)
	}
	t.held.refusal(t.reasonNow(n, now))
	return Permit{}, false
}

// draw takes units if they are at hand at now, and returns the position of the
// draw in the total of all grants.
//
// Order matters: granted is read before everything else, and every change of the
// segment or of forfeited that could let a draw take too much ends with a change
// of granted. So a draw that saw anything older fails to swap.
func (t *Throttle) draw(units, now int64) (pos int64, ok bool) {
	for {
		granted := t.granted.Load()
		s := t.gate.Load()
		if now < s.start {
			now = t.read() // the segment is newer than the clock reading
		}
		if now >= s.until && (!skip(ruleLeaseAtDraw) || s.rate == 0) {
			return 0, false
		}
		forfeited := t.forfeited.Load()
		level := s.at(now) - forfeited - granted
		if over := level - s.capacity; over > 0 {
			if !t.forfeited.CompareAndSwap(forfeited, forfeited+over) {
				continue
			}
			level = s.capacity
		}
		if level < units {
			return 0, false
		}
		if t.granted.CompareAndSwap(granted, granted+units) {
			return granted, true
		}
		now = t.standBack()
	}
}

// standBack is called when a swap has failed, because another processor draws too,
// and returns the time. Once may be chance, and the draw goes on at once. When another
// swap failed a moment ago it waits some ten microseconds: leaving the word to the
// other processor for a while lets it draw from its own cache, which is faster for
// both together than taking the word from each other at every draw (Dice, Hendler and
// Mirsky, "Lightweight contention management for efficient compare-and-swap
// operations", Euro-Par 2013, constant back-off).
func (t *Throttle) standBack() (now int64) {
	now = t.read()
	if last := t.contended.Swap(now); now-last > int64(100*time.Microsecond) {
		return now
	}
	for range 500 { // clock readings, not a time: the clock of a test may stand still
		now = t.read()
	}
	return now
}

// short notes that a caller was refused n tokens or has to wait for them, and
// tells the sharer, at most once in ten milliseconds.
func (t *Throttle) short(n int, now int64) {
	t.refused.Add(min(int64(n), int64(t.limit.maxCost())))
	t.noteShort(now)
}

func (t *Throttle) noteShort(now int64) {
	if now < t.gate.Load().paused {
		return // a larger share would not help
	}
	last := t.shortAt.Load()
	if now-last < int64(10*time.Millisecond) && last >= 0 || !t.shortAt.CompareAndSwap(last, now) {
		return
	}
	if t.sharer != nil {
		t.sharer.Poke()
	}
}

// fence makes every draw fail that has read anything before this moment.
// t.mu is held.
func (t *Throttle) fence() {
	t.void++
	t.granted.Add(1)
	t.forfeited.Add(-1)
}

// Lease puts a share in force in place of the one before. It is called by the
// sharer; see Holder. When it returns no draw uses the old share any more.
func (t *Throttle) Lease(l Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() || t.limit.Max == 0 {
		return
	}
	now := t.now()
	t.put(now, t.lower(now, l))
}

// put puts what a lease comes to in force. t.mu is held.
func (t *Throttle) put(now int64, l Lease) {
	old := t.seg
	until := int64(never)
	if !l.Until.IsZero() {
		until = int64(l.Until.Sub(t.base))
	}
	l = t.inForce(l)
	t.seg = newSegment(t.limit, t.scale, l, now, until, old.by(now))
	if skip(ruleFallClamps) {
		t.seg.capacity = max(t.seg.capacity, old.capacity)
	}

	room := min(old.capacity, t.seg.capacity) // what overflowed before is lost, though nobody looked
	back := max(t.period(min(old.lease.Share, l.Share)), room)
	if l.Issuing && old.lease.Issuing && old.valid(now) {
		t.publish()
		t.serve(now)
		return // what was issued stays good
	}
	t.issue.clear()
	t.issue.look.Store(never)
	if !old.valid(now) || l.Share == 0 || old.lease.Issuing {
		room, back = 0, 0 // a processor whose share had ended starts empty
		t.void += t.queue.collected
		t.queue.collected = 0 // so does a draw that was collecting
	}
	if skip(ruleStartsEmpty) && !old.valid(now) {
		room = t.seg.capacity
		t.forfeited.Add(t.level(now) - room)
	}
	t.trim(now, room) // before the new segment is seen: no draw takes the old level by the new law
	t.publish()
	t.fence()
	if !t.limit.Hard {
		t.kept = max(t.kept, t.granted.Load()-back)
	} else if l.Share != old.lease.Share || !old.valid(now) {
		t.kept = t.granted.Load()
	}
	if l.Share != old.lease.Share || !old.valid(now) {
		t.retime(now)
	}
	t.serve(now)
}

// inForce is what of a lease concerns this limit.
func (t *Throttle) inForce(l Lease) Lease {
	l.Share = min(max(l.Share, 0), MaxShare)
	if t.limit.Hard {
		l.Share = min(l.Share, WholeShare)
	}
	l.Issuing = l.Issuing && t.issue.from != nil
	if l.Issuing || t.limit.Strict && t.sharer != nil {
		l.Share = 0
	}
	return l
}

// level is what the bucket holds at now, below 0 for debt. t.mu is held; draws
// may lower it at any moment while the gate is open.
func (t *Throttle) level(now int64) int64 {
	return t.seg.by(now) - t.forfeited.Load() - t.granted.Load()
}

// publish opens the gate to draws when nobody waits and shuts it otherwise.
// t.mu is held.
func (t *Throttle) publish() {
	t.noteHeld()
	switch {
	case t.pauses.until > 0 && t.paused(t.now()):
		t.gate.Store(&segment{behind: t.seg, paused: t.pauses.until})
	case !t.queue.empty() || t.closed.Load():
		t.gate.Store(&segment{behind: t.seg})
	case t.issuing():
		t.gate.Store(t.law())
	default:
		t.gate.Store(t.seg)
	}
}

// trim forfeits what the bucket holds above room at now. t.mu is held.
func (t *Throttle) trim(now, room int64) {
	for {
		forfeited := t.forfeited.Load()
		over := t.seg.by(now) - forfeited - t.granted.Load() - room
		if over <= 0 || t.forfeited.CompareAndSwap(forfeited, forfeited+over) {
			return
		}
	}
}

// Close stops granting, fails everyone who waits with ErrClosed, and then runs
// what OnClose added, for at most five seconds. Call it when nothing draws any
// more: after the server has stopped. Calling it again does nothing.
func (t *Throttle) Close() error {
	t.mu.Lock()
	if t.closed.Swap(true) {
		t.mu.Unlock()
		return nil
	}
	if t.limit.Max > 0 {
		t.publish()
		t.fence()
		t.timer.Stop()
		t.ramp.stop()
		t.slow.stop()
		t.failAll()
	}
	t.mu.Unlock()
	t.audience.dismiss()
	return t.afterClose()
}

// refusal returns the error for a draw of n tokens.
func (t *Throttle) refusal(r Reason, n int, retry time.Duration) *Error {
	return &Error{Reason: r, Limit: t.name, Tag: t.tag, Cost: n, RetryAfter: retry, by: t}
}

// refuse is refusal for an error that the caller gets, and counts it.
func (t *Throttle) refuse(r Reason, n int, retry time.Duration) *Error {
	t.held.refusal(r)
	return t.refusal(r, n, retry)
}
