package throttle

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/gate"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Throttle grants tokens at one processor's share of a limit. It is a Limiter.
// All methods may be called from any number of goroutines at once.
type Throttle struct {
	options
	limit Limit
	rank  uint64 // see native
	gate  gate.Gate

	page    atomic.Pointer[page]
	bucket  bucket.Bucket
	shortAt atomic.Int64 // when a caller was refused or made to wait last
	owed    owed
	lacked  atomic.Int64 // the largest draw refused since the last Demand, with a hard limit

	maxCost int // of the limit: Limit.maxCost copies it, which makes the frames of waiting callers larger

	// Guarded by the lock.
	queue     queue
	reserver  reserver // nil: nothing is reserved for callers outside the queue
	stay      int64    // units that serve has left in the bucket for others; a field, because waiting callers have small stacks
	retimed   int64    // when retime looked last; retimeDue: it is to look again
	serving   bool     // serve is under way
	retimeDue bool
	timer     Timer
	usage     bucket.Demand
	away      *bucket.Away  // nil: no refused caller has said that it comes again
	ramp      *localRamp    // nil: there is none, or the pool's moves the share
	backoff   *localBackoff // nil: the limit is not adaptive
	issue     issue

	tags *tagSet // nil: there are no quotas
}

var _ Limiter = (*Throttle)(nil)

// New returns a Throttle for a limit. A limit with Max 0 never refuses and never
// waits. The error names every field of the limit that is out of bounds.
func New(limit Limit, opts ...Option) (*Throttle, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	t := &Throttle{options: newOptions(opts), limit: limit.withDefaults(), rank: nextRank()}
	t.maxCost = t.limit.maxCost()
	if err := t.checkQuotas(); err != nil {
		return nil, err
	}
	t.gate.Begin(t.common, limit.Max == 0, t.sharer, t.pausesChanged)
	if limit.Max == 0 {
		return t, nil
	}
	t.timer = t.gate.AfterFunc(centuries, t.onTimer)
	t.beginIssue()
	t.beginBackoff()
	if t.limit.Strict && t.sharer != nil && t.issue.from == nil {
		return nil, fmt.Errorf("throttle: strict is true, allowed: false with a sharer that cannot issue tokens (%T)", t.sharer)
	}
	t.bucket.Begin(t.limit.bucket(), t.gate.Now)
	t.shortAt.Store(-never)
	t.page.Store(newPage(t, 0))
	t.beginTags()
	switch s := t.sharer.(type) {
	case nil:
		t.fixed(WholeShare)
	case *Static:
		t.fixed(s.share)
	default:
		s.Attach(rateHolder{t})
	}
	return t, nil
}

// Limit returns the limit with its defaults filled in.
func (t *Throttle) Limit() Limit { return t.limit }

// Unlimited reports whether the Throttle has no limit at all.
func (t *Throttle) Unlimited() bool { return t.limit.Max == 0 }

// TryAcquire takes n tokens if they are at hand and nobody waits. It never waits;
// when it succeeds it takes no lock, and allocates nothing but a page of half a
// kilobyte for every 4,096 tokens.
func (t *Throttle) TryAcquire(n int) (Permit, bool) {
	if t.tags != nil {
		return t.tags.other.TryAcquire(n)
	}
	if n <= 0 || t.limit.Max == 0 {
		return Permit{n: max(n, 0)}, n >= 0 && !t.gate.Closed.Load()
	}
	var now int64 // as read does, which the compiler does not inline
	if t.gate.Clock == nil {
		now = int64(time.Since(t.gate.Base))
	} else {
		now = t.gate.Now()
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
	t.gate.Waits.CountRefusal(t.reasonNow(n, now))
	return Permit{}, false
}

// short notes that a caller was refused n tokens or has to wait for them, and
// tells the sharer, at most once in ten milliseconds.
func (t *Throttle) short(n int, now int64) {
	t.gate.Refused.Add(min(int64(n), int64(t.limit.maxCost())))
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

// put puts a lease in force. The lock is held.
func (t *Throttle) put(now int64, l Lease) {
	until := int64(never)
	if !l.Until.IsZero() {
		until = int64(l.Until.Sub(t.gate.Base))
	}
	change := t.bucket.Replace(now, until, t.inForce(l))
	if t.limit.Hard {
		t.queue.Refit(func(w *waiter) bool { return t.fits(t.units(w)) })
	}
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

// inForce returns the part of a lease that concerns this limit.
func (t *Throttle) inForce(l Lease) Lease {
	l.Share = min(max(l.Share, 0), limit.MaxShare)
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
// The lock is held.
func (t *Throttle) publish() {
	t.noteHeld()
	switch {
	case t.gate.Pauses.Until > 0 && t.gate.Paused(t.gate.Now()):
		t.bucket.Shut(t.gate.Pauses.Until)
	case t.queue.First != nil || t.gate.Closed.Load():
		t.bucket.Shut(0)
	case t.issuing():
		t.bucket.Open(t.issuedLaw())
	default:
		t.bucket.Open(t.bucket.Law())
	}
}

// Close stops granting, fails all waiting callers with ErrClosed, and then runs the functions that OnClose added, for at most five seconds.
// Call it when nothing draws any more: after the server has stopped. Calling it again does nothing.
func (t *Throttle) Close() error {
	return t.gate.Close(func() {
		if t.limit.Max == 0 {
			return
		}
		t.publish()
		t.bucket.Fence()
		t.timer.Stop()
		t.ramp.stop()
		t.backoff.stop()
		t.tags.stop()
		t.failAll()
	})
}

// errorOf makes an error of a refusal.
func (t *Throttle) errorOf(r limit.Refusal) *Error {
	e := &Error{Reason: r.Reason, Limit: t.name, Tag: t.gate.Tag, Cost: r.Cost, RetryAfter: r.RetryAfter, Frozen: r.Frozen, by: t}
	if e.Reason == ReasonTooLarge {
		e.Largest = t.limit.maxCost()
	}
	return e
}

// refuse is errorOf for a refusal that is counted. It is not inlined, which keeps the frames of waiting callers small.
//
//go:noinline
func (t *Throttle) refuse(r Reason, n int, retry time.Duration) *Error {
	t.gate.Waits.CountRefusal(r)
	return t.errorOf(limit.Refusal{Reason: r, Cost: n, RetryAfter: retry})
}
