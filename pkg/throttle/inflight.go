package throttle

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An InFlight limits how many calls a pool has in flight at once. It is a Limiter whose tokens are slots. A draw of zero takes a slot, too:
// the call is in flight. A permit holds its slots until it is settled (with any value) or cancelled; a permit that is never settled holds
// them for ever. Waiting callers are served first come, first served. Nobody knows when a call will end, so a deadline that is too near
// fails only when it has passed. All methods may be called from any number of goroutines at once.
//
// # Shares
//
// Without a Sharer an InFlight has all slots. With one it has share x max of them, rounded down, so the slots of all processors together
// are never more than max. The Sharer must be its own (a pool of its own, for a *consensus.Member). A share is itself rounded down, to
// 1e-9. Up to 1,000 slots it counts as 1e-9 more, so that a third of three slots is one. That keeps the sum at max for less than a million
// processors. Up to 1,000 slots a pool divides them in whole ones, and none is lost. If more processors than slots want one, they take
// turns of a lease (10 s) each. A processor whose call goes on keeps its slot until the call has ended. A limit of several times the number
// of processors needs no turns, and loses no time to them.
//
// A slot is granted only while the lease is good and fewer slots are in use than the share allows. Calls under way are never stopped: when
// a share falls or a lease ends they run on, and nothing is granted until enough have ended. Their slots stay claimed meanwhile, so that
// nobody else gets them. So slots in use never exceed max, as long as every processor with calls under way reaches the store at least once
// in a removal time (default 15 s). A processor that does not, because it is cut off or stopped, loses its claim then, and others may be
// granted the slots that its calls still use. The same can happen while shares are used without the store's consent (consensus.Degrade),
// and a removal time after another process has come with the same ID.
//
// A draw of more slots than the processor's part waits until others want fewer. If several processors wait for such draws at once, a
// deadline has to end one of them. A processor that leaves with calls under way keeps its claim until the pool removes it. The slots of one
// that died come back in the same way.
type InFlight struct {
	options
	seat    seat
	max     int
	alone   *join.Alone[Permit] // for draws on this limiter alone
	gate    gate.Gate
	stopped atomic.Int64 // end of the pause that holds it, for readers without the lock
	quotas  *Quotas      // of the configuration; nil: there are none

	// Guarded by the lock.
	queue   queue     // of attempts, also for draws on this limiter alone
	tags    *slotTags // nil: there are no quotas; never changed
	lease   limit.Lease
	inUse   int
	granted int64
	waker   sharing.Timer // for the end of a pause; nil: there is none
	// The most slots wanted since the last report, and between it and the one before.
	peak, before int
	// Total refusals at the last report, and at the one before it.
	refusals, refusalsBefore int64
}

var _ Limiter = (*InFlight)(nil)

// NewInFlight returns an [InFlight] with so many slots for the whole pool: 0 (no limit) to 1e9. Other values are an error, and so are quotas
// (see [WithQuotas]) that the slots cannot hold.
func NewInFlight(slots int, opts ...Option) (*InFlight, error) {
	if slots < 0 || slots > maxTokens {
		return nil, fmt.Errorf("throttle: slots in flight is %d, allowed: 0 (no limit) to 1000000000", slots)
	}
	set := newSettings(opts)
	f := &InFlight{options: set.options, max: slots, lease: limit.Lease{Share: wholeShare}, quotas: set.quotas}
	if err := f.checkQuotas(); err != nil {
		return nil, err
	}
	f.seat.take(slotSource{f}, seat{
		Seat: join.Seat[Permit]{Rank: nextRank(), Gate: &f.gate, PerCall: true}, of: &f.options, self: f, label: f.common.Tag,
	})
	f.alone = join.NewAlone(&f.seat.Seat)
	f.gate.Begin(f.common, slots == 0, f.sharer, f.pausesChanged)
	if slots > 0 {
		f.measure(f.metered)
	}
	if f.quotas != nil && slots > 0 {
		newSlotTags(f, *f.quotas)
	}
	if f.sharer != nil && slots > 0 {
		f.lease = limit.Lease{Reason: ReasonNoShare}
		f.sharer.Attach(slotHolder{f})
	}
	return f, nil
}

// Unlimited reports whether there is no limit at all.
func (f *InFlight) Unlimited() bool { return f.max == 0 }

// TryAcquire takes n slots if they are free and nobody waits. It never waits.
func (f *InFlight) TryAcquire(n int) (Permit, bool) {
	if n < 0 || f.max == 0 {
		return Permit{n: max(n, 0)}, n >= 0 && !f.gate.Closed.Load()
	}
	if f.tags != nil {
		return f.tags.other.TryAcquire(n)
	}
	slots := max(n, 1)
	p, ok := slotSource{f}.Draw(slots)
	if !ok {
		if slots <= f.max { // what can never be granted is no demand
			slotSource{f}.NoteRefused(slots, false)
		}
		f.seat.CountRefusal(f.seat.Why(slots))
	}
	p.n = min(p.n, n)
	return p, ok
}

// Acquire waits until n slots are free; see Limiter.
//
// Errors: *Error with [ReasonTooLarge] if n is above the slots of the whole pool. [ErrClosed]. The cause of ctx if it was cancelled. An error
// that is both [ErrThrottled] and context.DeadlineExceeded if the deadline passed in the queue.
func (f *InFlight) Acquire(ctx context.Context, n int) (Permit, error) {
	return f.acquire(ctx, n, false)
}

// AcquireUpTo waits until at least one slot is free and takes as many as are, at
// most n; see Limiter. Errors as Acquire.
func (f *InFlight) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return f.acquire(ctx, n, true)
}

func (f *InFlight) acquire(ctx context.Context, n int, upTo bool) (Permit, error) {
	if f.tags != nil {
		return f.tags.other.acquire(ctx, n, upTo)
	}
	return f.draw(ctx, slotSource{f}, f.alone, n, upTo)
}

// draw waits until n slots of a source are free, which alone draws from.
func (f *InFlight) draw(ctx context.Context, of native, alone *join.Alone[Permit], n int, upTo bool) (Permit, error) {
	if err := negative(n); err != nil {
		return Permit{}, err
	}
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	if f.max == 0 {
		if f.gate.Closed.Load() {
			f.seat.CountRefusal(ReasonClosed)
			return Permit{}, f.seat.errorOf(sharing.Refusal{Reason: ReasonClosed, Cost: n})
		}
		return Permit{n: n}, nil
	}
	slots := max(n, 1)
	p, ok := Permit{}, false
	if !upTo {
		p, ok = of.Draw(slots)
	}
	if !ok {
		var err error
		if p, err = alone.Acquire(ctx, slots, upTo); err != nil {
			return Permit{}, err
		}
	}
	p.n = min(p.n, n)
	return p, nil
}

// Close stops granting, fails all waiting callers with [ErrClosed], and then runs the functions of [OnClose], for at most five seconds. Permits
// can still be settled. Calling it again does nothing.
func (f *InFlight) Close() error {
	return f.gate.Close(func() {
		for w := range f.queue.All() {
			w.Attempt.Wake()
		}
		if f.waker != nil {
			f.waker.Stop()
		}
		if f.tags != nil && f.tags.timer != nil {
			f.tags.timer.Stop()
		}
	})
}

// An InFlightStatus is the state of an [InFlight] at one moment.
type InFlightStatus struct {
	// Name is the limit's name, Max the slots of the whole pool; 0: no limit.
	Name string
	Max  int
	// Lease is the share in force, and Slots the number of slots it allows.
	Lease limit.Lease
	Slots int
	// InUse counts the slots granted and not yet given back. It is above Slots after the share fell, until enough calls have ended.
	InUse int
	// Waiting counts the callers in the queue, and those held back before they draw.
	Waiting int
	// Granted and Refused count slots since the InFlight was made.
	Granted, Refused int64
	// Paused is the pause that holds it back, with when it goes on here; nil: none does. Pauses counts all that have.
	Paused *Paused
	Pauses int64
	// Tags are those in use, with quotas: by rising name, "" for all that have none of their own. nil without quotas.
	Tags []SlotTagStatus
	// Closed says that nothing is granted any more.
	Closed bool
}

// Status returns the present state of the [InFlight].
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
	if f.tags != nil {
		st.Tags = f.tags.status()
	}
	return st
}

// Throttled reports whether a draw of one slot would have to wait, and why. With quotas it is a draw without a tag.
func (f *InFlight) Throttled() (Throttling, bool) {
	if f.tags != nil {
		return f.tags.other.Throttled()
	}
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

// allowed returns how many slots the share in force allows. The lock is held.
func (f *InFlight) allowed() int {
	if !f.valid() {
		return 0
	}
	return sharing.SlotsOf(f.lease.Share, f.max)
}

// valid reports whether the share is in force. The lock is held.
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
