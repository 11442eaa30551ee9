package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// This file makes an InFlight a child of an All; see native.

// slots settles one permit.
type slots struct {
	done atomic.Bool
	of   *InFlight
}

// settle gives the slots back, whatever the call used.
func (s *slots) settle(_ int64, n, _ int) {
	if !s.done.CompareAndSwap(false, true) {
		return
	}
	s.of.gate.Lock()
	defer s.of.gate.Unlock()
	s.of.inUse -= n
	s.of.serve()
}

// A slotChild is an InFlight as a child of an All.
type slotChild struct{ *InFlight }

var _ native = slotChild{}

func (f slotChild) position() uint64 { return f.rank }

// Lock and Unlock are those of the InFlight.
func (f slotChild) Lock()   { f.gate.Lock() }
func (f slotChild) Unlock() { f.gate.Unlock() }

func (f slotChild) peek(n int) bool {
	f.gate.Lock()
	defer f.gate.Unlock()
	return f.AtHand(&waiter{Age: waitqueue.Latest}) >= n
}

func (f slotChild) take(n int) (Permit, bool) {
	f.gate.Lock()
	defer f.gate.Unlock()
	return f.DrawFor(&waiter{Age: waitqueue.Latest}, n)
}

func (f slotChild) untake(p Permit) { f.Undo(p) }

func (f slotChild) Undo(p Permit) {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.UndrawFor(nil, p)
	f.serve()
}

func (f slotChild) Impossible(n int) (r Reason, never bool) {
	switch {
	case f.gate.Closed.Load():
		return ReasonClosed, true
	case n > f.max:
		return ReasonTooLarge, true
	}
	return "", false
}

func (f slotChild) AtHand(w *waiter) int {
	if !f.queue.IsNext(w) || f.gate.Closed.Load() || f.gate.Paused(f.gate.Now()) {
		return 0
	}
	return max(f.allowed()-f.inUse, 0)
}

// DueFor knows only whether the share is ever enough, and when a pause is over.
func (f slotChild) DueFor(w *waiter) (time.Duration, bool) {
	over, known := f.gate.PauseLeft(f.gate.Now())
	if !f.gate.Paused(f.gate.Now()) {
		over, known = 0, true
	}
	return over, known && (over > 0 || w.Least <= f.allowed())
}

func (f slotChild) Earns(int) time.Duration { return 0 }

func (f slotChild) Lead(int) time.Duration { return 0 }

func (f slotChild) Refusal(w *waiter) limit.Refusal {
	return limit.Refusal{Reason: f.reason(), Cost: w.N, RetryAfter: f.retryAfter(), Frozen: f.thawing()}
}

// retryAfter returns for how long there are certainly no slots. It covers a pause with a known end, and a freeze of the pool while no share
// is in force. Otherwise it is 0. The lock is held.
func (f *InFlight) retryAfter() time.Duration {
	over, known := f.gate.PauseLeft(f.gate.Now())
	if !known {
		return 0
	}
	return max(over, f.thawing())
}

// thawing returns how much longer the pool is frozen while no share is in force; else 0. The lock is held.
func (f *InFlight) thawing() time.Duration {
	if f.valid() {
		return 0
	}
	return f.gate.Thawing(f.lease, f.gate.Now())
}

// left returns the time until then.
func (f *InFlight) left(then time.Time) time.Duration { return then.Sub(f.gate.Present()) }

func (f slotChild) Thawing() time.Duration { return f.thawing() }

func (f slotChild) Left(then time.Time) time.Duration { return f.left(then) }

func (f slotChild) Seat(n, least int, _ time.Time) waiter { return waiter{N: n, Least: least} }

func (f slotChild) Stand(w *waiter) {
	if w.Queued() {
		return
	}
	f.queue.Insert(w)
	f.noteHeld()
	f.note()
	f.serve()
	f.poke()
}

func (f slotChild) Leave(w *waiter) {
	if !w.Queued() {
		return
	}
	f.queue.Remove(w)
	f.noteHeld()
	f.serve()
}

func (f slotChild) DrawFor(w *waiter, n int) (Permit, bool) {
	if f.AtHand(w) < n {
		return Permit{}, false
	}
	f.inUse += n
	f.granted += int64(n)
	f.note()
	return Permit{n: n, by: &slots{of: f.InFlight}}, true
}

func (f slotChild) UndrawFor(_ *waiter, p Permit) {
	f.inUse -= p.n
	f.granted -= int64(p.n)
}

func (f slotChild) Drawn(w *waiter) { f.Leave(w) }

func (f slotChild) ask(int) {}

func (f slotChild) NoteRefused(n int) {
	f.gate.Refused.Add(int64(min(n, f.max)))
	f.poke()
}

func (f slotChild) why(n int) Reason {
	f.gate.Lock()
	defer f.gate.Unlock()
	if r, never := f.Impossible(n); never {
		return r
	}
	return f.reason()
}

// note records the largest number of slots wanted at once. The lock is held.
func (f *InFlight) note() { f.peak = max(f.peak, f.inUse+f.queue.Tokens) }

func (f *InFlight) poke() {
	if f.sharer != nil && f.gate.Now() >= f.stopped.Load() { // a larger share would not help
		f.sharer.Poke()
	}
}

// serve wakes the first attempt if there are slots for it. The lock is held.
func (f *InFlight) serve() {
	if w := f.queue.First; w != nil && (slotChild{f}).AtHand(w) >= w.Least {
		w.Attempt.Wake()
	}
}

func (f slotChild) CountWait(r Reason)    { f.gate.Waits.CountWait(r) }
func (f slotChild) CountRefusal(r Reason) { f.gate.Waits.CountRefusal(r) }

func (f slotChild) AfterFunc(d time.Duration, g func()) Timer { return f.gate.AfterFunc(d, g) }

func (f slotChild) OnClosing(ring func()) (stop func()) { return f.onClosing(ring) }

func (f slotChild) Watch(ctx context.Context, r Reason, n int) (over func(n int, err error)) {
	v := f.watch(ctx, r, n)
	return v.end
}

func (f slotChild) Refuse(r limit.Refusal) error                     { return f.errorOf(r) }
func (f slotChild) Ended(ctx context.Context, r limit.Refusal) error { return ended(ctx, f.errorOf(r)) }
