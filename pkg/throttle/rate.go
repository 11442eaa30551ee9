package throttle

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/bucket"
	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A rateLimiter grants tokens at one processor's share of a limit: it is a Throttle without quotas. It knows nothing of tags. These use
// a reserver to keep tokens for callers outside its queue.
type rateLimiter struct {
	options
	seat  seat
	limit Limit
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
	timer     sharing.Timer
	usage     bucket.Demand
	away      *bucket.Away  // nil: no refused caller has said that it comes again
	ramp      *localRamp    // nil: there is none, or the pool's moves the share
	backoff   *localBackoff // nil: the limit is not adaptive
	issue     issue
	announced announced
}

// begin prepares a rateLimiter whose options and limit are set. self is the Throttle, in errors. pausesChanged is called when pauses have
// changed, with the lock.
func (t *rateLimiter) begin(self Limiter, pausesChanged func(now int64)) error {
	t.seat.take(rateSource{t}, seat{
		Seat: join.Seat[Permit]{Rank: nextRank(), Gate: &t.gate, LockFree: rateSource{t}}, of: &t.options, self: self, label: t.common.Tag,
	})
	t.maxCost = t.limit.maxCost()
	t.gate.Begin(t.common, t.limit.Max == 0, t.sharer, pausesChanged)
	if t.limit.Max == 0 {
		return nil
	}
	t.timer = t.gate.AfterFunc(centuries, t.onTimer)
	t.beginIssue()
	t.beginBackoff()
	if t.limit.Strict && t.sharer != nil && t.issue.from == nil {
		return errors.New("throttle: strict is true, allowed: false without a pool: the share of Replicas cannot issue tokens")
	}
	t.bucket.Begin(t.limit.bucket(), t.gate.Now)
	t.shortAt.Store(-never)
	t.page.Store(newPage(t, 0))
	return nil
}

// draw takes n tokens if they are at hand and nobody waits, without a lock. pos is the position of the permit.
func (t *rateLimiter) draw(n int, now int64) (pos int64, ok bool) {
	if n > t.bucket.Largest { // more would not fit into the units
		return 0, false
	}
	return t.bucket.Draw(int64(n)<<(t.bucket.Shift&63), now)
}

// denyNow ends a TryAcquire that found too few tokens without a lock.
func (t *rateLimiter) denyNow(n int, now int64) (Permit, bool) {
	if n <= t.bucket.Largest { // what can never be granted is no demand
		if t.issue.from != nil {
			if p, ok := t.takeIssued(n, now, true); ok {
				return p, true
			}
		}
		t.lacks(n)
		t.short(n, now)
	}
	t.gate.Waits.CountRefusal(t.reasonNow(n, now))
	return Permit{}, false
}

// short notes that a caller was refused n tokens or has to wait for them, and
// tells the sharer, at most once in ten milliseconds.
func (t *rateLimiter) short(n int, now int64) {
	t.gate.Refused.Add(min(int64(n), int64(t.limit.maxCost())))
	t.noteShort(now)
}

func (t *rateLimiter) noteShort(now int64) {
	if now < t.bucket.Current().Paused {
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
func (t *rateLimiter) put(now int64, l limit.Lease) {
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
func (t *rateLimiter) inForce(l limit.Lease) limit.Lease {
	l.Share = min(max(l.Share, 0), sharing.MaxShare)
	if t.limit.Hard {
		l.Share = min(l.Share, wholeShare)
	}
	l.Issuing = l.Issuing && t.issue.from != nil
	if l.Issuing || t.limit.Strict && t.sharer != nil {
		l.Share = 0
	}
	return l
}

// publish opens the gate to draws when nobody waits and shuts it otherwise.
// The lock is held.
func (t *rateLimiter) publish() {
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

// stop stops granting, and fails all waiting callers. The lock is held.
func (t *rateLimiter) stop() {
	if t.limit.Max == 0 {
		return
	}
	t.publish()
	t.bucket.Fence()
	t.timer.Stop()
	t.ramp.stop()
	t.backoff.stop()
	t.failAll()
}

// perSecond returns the tokens per second of the share in force. Where tokens are issued, and without a share, it is that of the limit.
func (t *rateLimiter) perSecond(now int64) float64 {
	t.gate.Lock()
	defer t.gate.Unlock()
	if !t.bucket.Law().Valid(now) || t.issuing() {
		return t.limit.Rate()
	}
	return t.lawRate()
}

// lawRate returns the tokens per second of the law in force. The lock is held.
func (t *rateLimiter) lawRate() float64 {
	return float64(t.bucket.Law().Rate) / (1 << bucket.RateBits) / float64(int64(1)<<t.bucket.Shift) * 1e9
}

// refuse is errorOf for a refusal that is counted. It is not inlined, which keeps the frames of waiting callers small.
//
//go:noinline
func (t *rateLimiter) refuse(r Reason, n int, retry time.Duration) *Error {
	t.gate.Waits.CountRefusal(r)
	return t.seat.errorOf(sharing.Refusal{Reason: r, Cost: n, RetryAfter: retry})
}
