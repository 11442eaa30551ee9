package throttle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/inflight"
	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
)

// An InFlight limits how many calls a pool has in flight at once. It is a Limiter
// whose tokens are slots: a permit holds its slots until it is settled or
// cancelled, whatever the value, and a permit that is never settled holds them for
// ever. Callers that wait are served first come first served. Nobody knows when a call
// will end, so a deadline that is too near is told only when it has passed. All methods
// may be called from any number of goroutines at once.
//
// # Shares
//
// Without a Sharer an InFlight has all slots. With one, which must be its own (a pool of its
// own, for a *consensus.Member), it has share x max of them,
// rounded down: the slots of all processors together are never more than max. (A share is itself
// rounded down, to 1e-9; up to 1,000 slots it counts as 1e-9 more, so that a third of
// three slots is one. That keeps the sum at max for less than a million
// processors.) Up to 1,000 slots a pool divides them in whole ones, and none is lost. Where there are
// fewer than processors that want one, these take turns, of a lease (10 s) each; one whose call goes on
// keeps its slot until the call has ended. A limit of several times the number of
// processors needs no turns, and so loses no time to them.
//
// A slot is granted only while the lease is good and fewer slots are in use than the
// share allows. Calls under way are never stopped: when a share falls or a lease
// ends they run on, and nothing is granted until enough have ended. What they use stays
// claimed meanwhile (Holder.InUse), so that nobody else is granted it. So the slots in use
// are never more than max, as long as every processor with calls under way reaches the
// store at least once in a removal time: 15 s by default. One that does not, because it is cut
// off or stopped, loses its claim then, and others may be granted what its calls still
// use; so may they while shares are used without the store's consent (consensus.Degrade), and
// a removal time after another process has come with the same ID. A draw of more slots than
// the processor's part waits until others want fewer; where several processors wait for such
// draws at once, a deadline has to end one of them.
// A processor that leaves with calls under way keeps its claim until the pool removes
// it, and the slots of one that died come back in the same way.
type InFlight struct {
	plumbing
	max     int
	rank    uint64                   // see native
	alone   []waitqueue.Part[Permit] // for draws on this limiter alone
	closed  atomic.Bool
	refused atomic.Int64
	held    heldLog
	base    time.Time  // origin of the times in held and pauses; monotonic
	pausing sync.Mutex // held while it is paused without a pool

	mu      sync.Mutex
	queue   queue // of attempts, also for draws on this limiter alone
	lease   Lease
	inUse   int
	granted int64
	pauses  pauses
	stopped atomic.Int64 // pauses.until, for who has no lock
	waker   Timer        // for the end of a pause; nil: there is none
	// What was wanted at most since the last report, and between the two before it.
	peak, before int
	// What was refused in all at the last report and the one before it.
	refusals, refusalsBefore int64
}

var (
	_ Limiter     = (*InFlight)(nil)
	_ PauseHolder = (*InFlight)(nil)
	_ Slotted     = (*InFlight)(nil)
)

// NewInFlight returns an InFlight with so many slots for the whole pool: 0 to 1e9; the
// error says so otherwise. 0 means no limit.
func NewInFlight(slots int, opts ...Option) (*InFlight, error) {
	if slots < 0 || slots > maxTokens {
		return nil, fmt.Errorf("throttle: slots in flight is %d, allowed: 0 (no limit) to 1000000000", slots)
	}
	f := &InFlight{plumbing: newPlumbing(opts), max: slots, rank: nextRank(), lease: Lease{Share: WholeShare}}
	f.alone = []waitqueue.Part[Permit]{{Child: slotChild{f}}}
	f.base = time.Now()
	if f.clock != nil {
		f.base = f.clock.Now()
	}
	if f.sharer != nil && slots > 0 {
		f.lease = Lease{Reason: ReasonNoShare}
		f.sharer.Attach(f)
	}
	return f, nil
}

// MaxSlots is how many slots the whole pool has, 0 to 1e9; 0: no limit. It never changes.
func (f *InFlight) MaxSlots() int { return f.max }

// Unlimited tells whether there is no limit at all.
func (f *InFlight) Unlimited() bool { return f.max == 0 }

// TryAcquire takes n slots if they are free and nobody waits. It never waits.
func (f *InFlight) TryAcquire(n int) (Permit, bool) {
	if n <= 0 || f.max == 0 {
		return Permit{n: max(n, 0)}, !f.closed.Load()
	}
	p, ok := slotChild{f}.take(n)
	if !ok {
		if n <= f.max { // what can never be granted is no demand
			slotChild{f}.NoteRefused(n)
		}
		f.held.refusal(slotChild{f}.why(n))
	}
	return p, ok
}

// Acquire waits until n slots are free; see Limiter.
//
// Errors: *Error with ReasonTooLarge when n is above the slots of the whole pool; an
// error that is both ErrThrottled and context.DeadlineExceeded when the deadline
// passed in the queue; ErrClosed; the cause of ctx when it was cancelled.
func (f *InFlight) Acquire(ctx context.Context, n int) (Permit, error) {
	return f.acquire(ctx, n, false)
}

// AcquireUpTo waits until at least one slot is free and takes as many as are, at
// most n; see Limiter. Errors as Acquire.
func (f *InFlight) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return f.acquire(ctx, n, true)
}

func (f *InFlight) acquire(ctx context.Context, n int, upTo bool) (Permit, error) {
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	if n <= 0 || f.max == 0 {
		if f.closed.Load() {
			f.held.refusal(ReasonClosed)
			return Permit{}, f.errorOf(limit.Refusal{Reason: ReasonClosed, Cost: n})
		}
		return Permit{n: max(n, 0)}, nil
	}
	if !upTo {
		if p, ok := (slotChild{f}).take(n); ok {
			return p, nil
		}
	}
	a := waitqueue.NewAttempt(ctx, f.alone)
	if _, err := a.Win(ctx, n, upTo); err != nil {
		return Permit{}, err
	}
	return a.Permits()[0], nil
}

// Close stops granting, fails everyone who waits with ErrClosed, and then runs what
// OnClose added, for at most five seconds. Permits can still be settled. Calling it
// again does nothing.
func (f *InFlight) Close() error {
	f.mu.Lock()
	if f.closed.Swap(true) {
		f.mu.Unlock()
		return nil
	}
	for w := f.queue.First; w != nil; w = w.Next() {
		w.Attempt.Wake()
	}
	if f.waker != nil {
		f.waker.Stop()
	}
	f.mu.Unlock()
	f.audience.dismiss()
	return f.afterClose()
}

// Lease puts a share in force in place of the one before. It is called by the
// sharer; see Holder. When it returns no slot is granted by the old share any more.
func (f *InFlight) Lease(l Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.Share = min(max(l.Share, 0), WholeShare)
	f.lease = l
	f.noteHeld()
	f.serve()
}

// Demand tells the sharer which part of the slots this processor would use if it
// could; see Holder. It is what was in use and waited at most since the report before
// the last, and the whole when TryAcquire was refused since then; so it is never below
// what is in use.
func (f *InFlight) Demand(time.Duration) int64 {
	if f.max == 0 {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := int64(min(max(f.peak, f.before), f.max))
	refused := f.refused.Load()
	short := refused > f.refusalsBefore
	f.before, f.peak = f.peak, f.inUse+f.queue.Tokens
	f.refusalsBefore, f.refusals = f.refusals, refused
	if short {
		return WholeShare
	}
	return (wanted*WholeShare + int64(f.max) - 1) / int64(f.max) // rounded up, to be enough
}

// Debt tells how long a processor that leaves has to keep its claim: for ever, while
// calls are under way, for nobody knows when they end; see Holder.
func (f *InFlight) Debt() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse > 0 && f.max > 0 {
		return never
	}
	return 0
}

// InUse tells which share the calls under way need; see Holder.
func (f *InFlight) InUse() int64 {
	if f.max == 0 {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return inflight.Share(min(f.inUse, f.max), f.max)
}

// Limit is the zero Limit: slots are no rate; see Holder.
func (f *InFlight) Limit() Limit { return Limit{} }

// Flow is zero: slots do not ramp; see Holder.
func (f *InFlight) Flow() Flow { return Flow{} }

// Spacing is 0: slots in flight are not issued one by one; see Holder.
func (f *InFlight) Spacing() (time.Duration, bool) { return 0, false }

// An InFlightStatus is what an InFlight is doing at one moment.
type InFlightStatus struct {
	// Name is the limit's name, Max the slots of the whole pool; 0: no limit.
	Name string
	Max  int
	// Lease is the share in force; Slots what it allows.
	Lease Lease
	Slots int
	// InUse counts the slots that were granted and have not come back. It is above
	// Slots after the share fell, until enough calls have ended.
	InUse int
	// Waiting counts the callers in the queue, and those held back before they draw (HoldBack).
	Waiting int
	// Granted and Refused count slots since the InFlight was made.
	Granted, Refused int64
	// Paused is the pause that holds it back, with when it goes on here; nil: none does.
	// Pauses counts those that have.
	Paused *Paused
	Pauses int64
	// Closed tells that nothing is granted any more.
	Closed bool
}

// Status returns what the InFlight is doing.
func (f *InFlight) Status() InFlightStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := InFlightStatus{
		Name: f.name, Max: f.max, Lease: f.lease, Slots: f.allowed(), InUse: f.inUse, Waiting: f.queue.Len + f.held.outside,
		Granted: f.granted, Refused: f.refused.Load(), Closed: f.closed.Load(),
		Paused: f.pauses.status(f.now(), f.base), Pauses: f.pauses.count,
	}
	if !f.valid() {
		st.Lease.Share = 0
	}
	return st
}

// Throttled tells whether a draw of one slot would have to wait, and why.
func (f *InFlight) Throttled() (Throttling, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed.Load() && (f.max == 0 || f.queue.Empty() && f.inUse < f.allowed() && !f.paused()) {
		return Throttling{}, false
	}
	th := Throttling{Reason: f.reason(), Limit: f.name, Tag: f.tag, Waiting: f.queue.Len}
	th.Paused = f.pauses.status(f.now(), f.base)
	th.RetryAfter, th.Frozen = f.retryAfter(), f.thawing()
	return th, true
}

// allowed returns how many slots the share in force is good for. f.mu is held.
func (f *InFlight) allowed() int {
	if !f.valid() {
		return 0
	}
	return inflight.Slots(f.lease.Share, f.max)
}

// valid tells whether the share is in force. f.mu is held.
func (f *InFlight) valid() bool {
	return f.lease.Share > 0 && (f.lease.Until.IsZero() || f.left(f.lease.Until) > 0)
}

// reason says what holds a draw back. f.mu is held.
func (f *InFlight) reason() Reason {
	if f.closed.Load() {
		return ReasonClosed
	}
	r, _ := f.outlook().at(f.now())
	return r
}

// now is the time since the InFlight was made.
func (f *InFlight) now() int64 { return -int64(f.left(f.base)) }

// errorOf makes an error of a refusal.
func (f *InFlight) errorOf(r limit.Refusal) *Error {
	return &Error{Reason: r.Reason, Limit: f.name, Tag: f.tag, Cost: r.Cost, RetryAfter: r.RetryAfter, Frozen: r.Frozen, by: f}
}
