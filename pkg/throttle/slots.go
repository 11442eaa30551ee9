package throttle

import (
	"sync"
	"sync/atomic"
	"time"
)

// This file is an InFlight as a member of an All; see member.

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
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.inUse -= n
	s.of.serve()
}

func (f *InFlight) position() uint64   { return f.rank }
func (f *InFlight) mutex() *sync.Mutex { return &f.mu }

func (f *InFlight) peek(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.atHand(&waiter{age: latest}) >= n
}

func (f *InFlight) take(n int) (Permit, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drawFor(&waiter{age: latest}, n)
}

func (f *InFlight) untake(p Permit) { f.undo(p) }

func (f *InFlight) undo(p Permit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.undrawFor(nil, p)
	f.serve()
}

func (f *InFlight) impossible(n int) *Error {
	switch {
	case f.closed.Load():
		return f.refusal(ReasonClosed, n)
	case n > f.max:
		return f.refusal(ReasonTooLarge, n)
	}
	return nil
}

func (f *InFlight) atHand(w *waiter) int {
	if !f.queue.isNext(w) || f.closed.Load() || f.paused() {
		return 0
	}
	return max(f.allowed()-f.inUse, 0)
}

// dueFor knows only whether the share is ever enough, and when a pause is over.
func (f *InFlight) dueFor(w *waiter) (time.Duration, bool) {
	over, known := f.pauses.left(f.now())
	if skip(rulePause) {
		over, known = 0, true
	}
	return over, known && (over > 0 || w.least <= f.allowed())
}

func (f *InFlight) earns(int) time.Duration { return 0 }

func (f *InFlight) lead(int) time.Duration { return 0 }

func (f *InFlight) refusalOf(w *waiter) *Error {
	e := f.refusal(f.reason(), w.n)
	e.RetryAfter, e.Frozen = f.retryAfter(), f.thawing()
	return e
}

// retryAfter is how long there are no slots for sure: while a pause whose end is known goes on, or while the
// pool is frozen and no share is in force. Otherwise 0. f.mu is held.
func (f *InFlight) retryAfter() time.Duration {
	over, known := f.pauses.left(f.now())
	if !known {
		return 0
	}
	return max(over, f.thawing())
}

// thawing returns how long the pool is frozen yet, while no share is in force; else 0. f.mu is held.
func (f *InFlight) thawing() time.Duration {
	if f.valid() || f.lease.Frozen.IsZero() {
		return 0
	}
	return max(f.left(f.lease.Frozen), 0)
}

func (f *InFlight) left(then time.Time) time.Duration {
	if f.clock == nil {
		return time.Until(then)
	}
	return then.Sub(f.clock.Now())
}

func (f *InFlight) seat(b *bid, n, least int) waiter {
	return waiter{n: n, least: least, age: b.age, bid: b}
}

func (f *InFlight) stand(w *waiter) {
	if w.queued {
		return
	}
	f.queue.insert(w)
	f.noteHeld()
	f.note()
	f.serve()
	f.poke()
}

func (f *InFlight) leave(w *waiter) {
	if !w.queued {
		return
	}
	f.queue.remove(w)
	f.noteHeld()
	f.serve()
}

func (f *InFlight) drawFor(w *waiter, n int) (Permit, bool) {
	if f.atHand(w) < n {
		return Permit{}, false
	}
	f.inUse += n
	f.granted += int64(n)
	f.note()
	return Permit{n: n, by: &slots{of: f}}, true
}

func (f *InFlight) undrawFor(_ *waiter, p Permit) {
	f.inUse -= p.n
	f.granted -= int64(p.n)
}

func (f *InFlight) drawn(w *waiter) { f.leave(w) }

func (f *InFlight) ask(int) {}

func (f *InFlight) noteRefused(n int) {
	f.refused.Add(int64(min(n, f.max)))
	f.poke()
}

func (f *InFlight) why(n int) Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.impossible(n); e != nil {
		return e.Reason
	}
	return f.reason()
}

func (f *InFlight) counts() *heldLog { return &f.held }

// note keeps the largest number of slots that was wanted at once. f.mu is held.
func (f *InFlight) note() { f.peak = max(f.peak, f.inUse+f.queue.tokens) }

func (f *InFlight) poke() {
	if f.sharer != nil && f.now() >= f.stopped.Load() { // a larger share would not help
		f.sharer.Poke()
	}
}

// serve wakes the first bid if there are slots for it. f.mu is held.
func (f *InFlight) serve() {
	if w := f.queue.first; w != nil && f.atHand(w) >= w.least {
		w.bid.wake()
	}
}
