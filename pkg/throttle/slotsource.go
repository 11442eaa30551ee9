package throttle

import (
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// This file makes an InFlight a child of an All; see join.Source.

// slots settles one permit, of n slots.
type slots struct {
	done atomic.Bool
	of   *InFlight
	n    int
}

// settle gives the slots back, whatever the call used.
func (s *slots) settle(int64, int, int) {
	if !s.done.CompareAndSwap(false, true) {
		return
	}
	s.of.gate.Lock()
	defer s.of.gate.Unlock()
	s.of.inUse -= s.n
	s.of.serve()
}

// A slotSource is an InFlight as a child of an All.
type slotSource struct{ *InFlight }

var _ native = slotSource{}

func (f slotSource) Part() part { return part{Source: f, Gate: &f.gate} }

// Lock and Unlock are those of the InFlight.
func (f slotSource) Lock()   { f.gate.Lock() }
func (f slotSource) Unlock() { f.gate.Unlock() }

func (f slotSource) Largest() int { return f.max }

func (f slotSource) Peek(n int) bool {
	f.Lock()
	defer f.Unlock()
	return f.AtHand(&waiter{Age: waitqueue.Latest}) >= n
}

func (f slotSource) Draw(n int) (Permit, bool) {
	f.Lock()
	defer f.Unlock()
	return f.Take(&waiter{Age: waitqueue.Latest}, n)
}

func (f slotSource) AtHand(w *waiter) int { return f.atHand(w, f.gate.Now()) }

func (f slotSource) atHand(w *waiter, now int64) int {
	if !f.queue.IsNext(w) || f.gate.Closed.Load() || f.gate.Paused(now) {
		return 0
	}
	return max(f.allowed()-f.inUse, 0)
}

// Due knows only whether the share is ever enough, and when a pause is over.
func (f slotSource) Due(w *waiter) (time.Duration, bool) {
	over, known := f.gate.PauseLeft(f.gate.Now())
	if !f.gate.Paused(f.gate.Now()) {
		over, known = 0, true
	}
	return over, known && (over > 0 || w.Least <= f.allowed())
}

func (f slotSource) Earns(int) (takes, ahead time.Duration) { return 0, 0 }

func (f slotSource) Refusal(w *waiter) sharing.Refusal {
	return sharing.Refusal{Reason: f.reason(), Cost: w.N, RetryAfter: f.retryAfter(), Frozen: f.thawing()}
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

func (f slotSource) Stand(w *waiter) {
	if w.Queued() {
		return
	}
	f.queue.Insert(w)
	f.noteHeld()
	f.note()
	f.serve()
	f.poke()
}

func (f slotSource) Leave(w *waiter, _ int) {
	if !w.Queued() {
		return
	}
	f.queue.Remove(w)
	f.noteHeld()
	f.serve()
}

func (f slotSource) Take(w *waiter, n int) (Permit, bool) {
	if f.AtHand(w) < n {
		return Permit{}, false
	}
	f.inUse += n
	f.granted += int64(n)
	f.note()
	return Permit{n: n, by: &slots{of: f.InFlight, n: n}}, true
}

func (f slotSource) Untake(w *waiter, p Permit) {
	f.inUse -= p.n
	f.granted -= int64(p.n)
	if w == nil {
		f.serve()
	}
}

func (f slotSource) book(int, drop) drop { return drop{} } // a finished call has no slot

func (f slotSource) NoteRefused(n int, _ bool) {
	f.gate.Refused.Add(int64(min(n, f.max)))
	f.poke()
}

// note records the largest number of slots wanted at once. The lock is held.
func (f *InFlight) note() { f.peak = max(f.peak, f.wanted()) }

// wanted returns how many slots calls hold and wait for, without those that tags may not have. The lock is held.
func (f *InFlight) wanted() int {
	if f.tags != nil && !f.queue.Empty() {
		return f.inUse + f.tags.allowed()
	}
	return f.inUse + f.queue.Tokens
}

func (f *InFlight) poke() {
	if f.sharer != nil && f.gate.Now() >= f.stopped.Load() { // a larger share would not help
		f.sharer.Poke()
	}
}

// serve wakes the first attempt if there are slots for it. The lock is held.
func (f *InFlight) serve() {
	if f.tags != nil && !f.queue.Empty() {
		f.tags.order()
	}
	if w := f.queue.First; w != nil && (slotSource{f}).AtHand(w) >= w.Least {
		w.Attempt.Wake()
	}
}

// countsCalls is hook.CountsCalls.
func countsCalls(l Limiter) (name string, ok bool) {
	if c, ok := unwrapTo[interface{ countsCalls() (string, bool) }](l); ok {
		return c.countsCalls()
	}
	return "", false
}

func (f *InFlight) countsCalls() (string, bool) { return f.name, !f.Unlimited() }

func (j *multi) countsCalls() (string, bool) {
	for _, p := range j.Children {
		if name, ok := countsCalls(p.Limiter); ok {
			return name, true
		}
	}
	return "", false
}
