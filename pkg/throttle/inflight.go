package throttle

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/gate"
	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
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
// claimed meanwhile, so that nobody else is granted it. So the slots in use
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
	options
	max     int
	rank    uint64                   // see native
	alone   []waitqueue.Part[Permit] // for draws on this limiter alone
	gate    gate.Gate
	stopped atomic.Int64 // until when a pause holds it, for who has no lock

	// Guarded by the lock.
	queue   queue // of attempts, also for draws on this limiter alone
	lease   Lease
	inUse   int
	granted int64
	waker   Timer // for the end of a pause; nil: there is none
	// What was wanted at most since the last report, and between the two before it.
	peak, before int
	// What was refused in all at the last report and the one before it.
	refusals, refusalsBefore int64
}

var _ Limiter = (*InFlight)(nil)

// NewInFlight returns an InFlight with so many slots for the whole pool: 0 to 1e9; the
// error says so otherwise. 0 means no limit.
func NewInFlight(slots int, opts ...Option) (*InFlight, error) {
	if slots < 0 || slots > maxTokens {
		return nil, fmt.Errorf("throttle: slots in flight is %d, allowed: 0 (no limit) to 1000000000", slots)
	}
	f := &InFlight{options: newOptions(opts), max: slots, rank: nextRank(), lease: Lease{Share: WholeShare}}
	f.alone = []waitqueue.Part[Permit]{{Child: slotChild{f}}}
	f.gate.Begin(f.common, slots == 0, f.sharer, f.pausesChanged)
	if f.sharer != nil && slots > 0 {
		f.lease = Lease{Reason: ReasonNoShare}
		f.sharer.Attach(slotHolder{f})
	}
	return f, nil
}

// Unlimited tells whether there is no limit at all.
func (f *InFlight) Unlimited() bool { return f.max == 0 }

// TryAcquire takes n slots if they are free and nobody waits. It never waits.
func (f *InFlight) TryAcquire(n int) (Permit, bool) {
	if n <= 0 || f.max == 0 {
		return Permit{n: max(n, 0)}, n >= 0 && !f.gate.Closed.Load()
	}
	p, ok := slotChild{f}.take(n)
	if !ok {
		if n <= f.max { // what can never be granted is no demand
			slotChild{f}.NoteRefused(n)
		}
		f.gate.Waits.CountRefusal(slotChild{f}.why(n))
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
	if err := negative(n); err != nil {
		return Permit{}, err
	}
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	if n <= 0 || f.max == 0 {
		if f.gate.Closed.Load() {
			f.gate.Waits.CountRefusal(ReasonClosed)
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
	return f.gate.Close(func() {
		for w := range f.queue.All() {
			w.Attempt.Wake()
		}
		if f.waker != nil {
			f.waker.Stop()
		}
	})
}

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
	// Waiting counts the callers in the queue, and those held back before they draw (ExternalWait).
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
	f.gate.Lock()
	defer f.gate.Unlock()
	st := InFlightStatus{
		Name: f.name, Max: f.max, Lease: f.lease, Slots: f.allowed(), InUse: f.inUse, Waiting: f.queue.Len + f.gate.Waits.Beside(),
		Granted: f.granted, Refused: f.gate.Refused.Load(), Closed: f.gate.Closed.Load(),
		Paused: f.gate.Pauses.Status(f.gate.Now(), f.gate.Base), Pauses: f.gate.Pauses.Count,
	}
	if !f.valid() {
		st.Lease.Share = 0
	}
	return st
}

// Throttled tells whether a draw of one slot would have to wait, and why.
func (f *InFlight) Throttled() (Throttling, bool) {
	f.gate.Lock()
	defer f.gate.Unlock()
	if !f.gate.Closed.Load() && (f.max == 0 || f.queue.Empty() && f.inUse < f.allowed() && !f.gate.Paused(f.gate.Now())) {
		return Throttling{}, false
	}
	th := Throttling{Reason: f.reason(), Limit: f.name, Tag: f.gate.Tag, Waiting: f.queue.Len}
	th.Paused = f.gate.Pauses.Status(f.gate.Now(), f.gate.Base)
	th.RetryAfter, th.Frozen = f.retryAfter(), f.thawing()
	return th, true
}

// allowed returns how many slots the share in force is good for. The lock is held.
func (f *InFlight) allowed() int {
	if !f.valid() {
		return 0
	}
	return limit.SlotsOf(f.lease.Share, f.max)
}

// valid tells whether the share is in force. The lock is held.
func (f *InFlight) valid() bool {
	return f.lease.Share > 0 && (f.lease.Until.IsZero() || f.left(f.lease.Until) > 0)
}

// reason says what holds a draw back. The lock is held.
func (f *InFlight) reason() Reason {
	if f.gate.Closed.Load() {
		return ReasonClosed
	}
	r, _ := f.outlook().At(f.gate.Now())
	return r
}

// errorOf makes an error of a refusal.
func (f *InFlight) errorOf(r limit.Refusal) *Error {
	e := &Error{Reason: r.Reason, Limit: f.name, Tag: f.gate.Tag, Cost: r.Cost, RetryAfter: r.RetryAfter, Frozen: r.Frozen, by: f}
	if e.Reason == ReasonTooLarge {
		e.Largest = f.max
	}
	return e
}
