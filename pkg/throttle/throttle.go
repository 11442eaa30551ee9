package throttle

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// A Throttle grants tokens at one processor's share of a limit. It is a Limiter.
// All methods may be called from any number of goroutines at once.
type Throttle struct {
	plumbing
	limit Limit
	rank  uint64    // see native
	base  time.Time // origin of all times here; monotonic

	page    atomic.Pointer[page]
	bucket  bucket.Bucket
	refused atomic.Int64 // tokens refused since the beginning
	shortAt atomic.Int64 // when a caller was refused or made to wait last
	lacked  atomic.Int64 // the largest draw refused since the last Demand, with a hard limit
	closed  atomic.Bool
	held    heldLog
	pausing sync.Mutex // held while it is paused without a pool

	mu     sync.Mutex
	now    func() int64 // nanoseconds since base
	queue  queue
	timer  Timer
	usage  bucket.Demand
	ramp   *localRamp // nil: there is none, or the pool's moves the share
	slow   *slowing   // nil: the limit is not adaptive
	issue  issue
	pauses pauses
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
	t.bucket.Begin(t.limit.bucket(), t.read)
	t.shortAt.Store(-never)
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
	if n <= t.bucket.Largest { // more would not fit into the units
		if pos, ok := t.bucket.Draw(int64(n)<<(t.bucket.Shift&63), now); ok {
			return Permit{n: n, pos: pos, by: t.cell(pos)}, true
		}
	}
	if t.issue.from != nil && n <= t.bucket.Largest {
		if p, ok := t.takeIssued(n, now); ok {
			return p, true
		}
	}
	if n <= t.bucket.Largest { // what can never be granted is no demand
		t.lacks(n)
		t.short(n, now)
	}
	t.held.refusal(t.reasonNow(n, now))
	return Permit{}, false
}

// short notes that a caller was refused n tokens or has to wait for them, and
// tells the sharer, at most once in ten milliseconds.
func (t *Throttle) short(n int, now int64) {
	t.refused.Add(min(int64(n), int64(t.limit.maxCost())))
	t.noteShort(now)
}

func (t *Throttle) noteShort(now int64) {
	if now < t.bucket.Gate().Paused {
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
	until := int64(never)
	if !l.Until.IsZero() {
		until = int64(l.Until.Sub(t.base))
	}
	change := t.bucket.Replace(now, until, t.inForce(l))
	if change.Issuing {
		t.publish()
		t.serve(now)
		return // what was issued stays good
	}
	t.issue.Clear()
	t.issue.look.Store(never)
	if change.Emptied { // so does a draw that was collecting
		t.bucket.Waste(t.queue.Collected)
		t.queue.Collected = 0
	}
	t.bucket.Cut(now, change)
	t.publish()
	t.bucket.Seal(change)
	if change.Moved {
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

// publish opens the gate to draws when nobody waits and shuts it otherwise.
// t.mu is held.
func (t *Throttle) publish() {
	t.noteHeld()
	switch {
	case t.pauses.until > 0 && t.paused(t.now()):
		t.bucket.Shut(t.pauses.until)
	case !t.queue.Empty() || t.closed.Load():
		t.bucket.Shut(0)
	case t.issuing():
		t.bucket.Open(t.issuedLaw())
	default:
		t.bucket.Open(t.bucket.Law())
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
		t.bucket.Fence()
		t.timer.Stop()
		t.ramp.stop()
		t.slow.stop()
		t.failAll()
	}
	t.mu.Unlock()
	t.audience.dismiss()
	return t.afterClose()
}

// errorOf makes an error of a refusal.
func (t *Throttle) errorOf(r limit.Refusal) *Error {
	return &Error{Reason: r.Reason, Limit: t.name, Tag: t.tag, Cost: r.Cost, RetryAfter: r.RetryAfter, Frozen: r.Frozen, by: t}
}

// refuse is errorOf for a refusal that is counted.
func (t *Throttle) refuse(r Reason, n int, retry time.Duration) *Error {
	t.held.refusal(r)
	return t.errorOf(limit.Refusal{Reason: r, Cost: n, RetryAfter: retry})
}
