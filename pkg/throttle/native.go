package throttle

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// A waiter is a caller in the queue of a limiter; a queue holds the waiters of one limiter.
type (
	waiter   = waitqueue.Waiter[Permit]
	queue    = waitqueue.Queue[Permit]
	attempt  = waitqueue.Attempt[Permit]
	tagQueue = waitqueue.TagQueue[Permit]
	part     = waitqueue.Part[Permit]
)

// A native is a limiter of this package as All sees it. Attempts draw from its Source; the other methods are called without the lock.
type native interface {
	waitqueue.Source[Permit]
	// seated returns what it has in common with all others.
	seated() *seat
	// part returns the limiter as a part of an attempt.
	part() part
	// peek reports whether n tokens are at hand for a caller that comes now, and take takes them if they are. Neither notes a refusal.
	peek(n int) bool
	take(n int) (Permit, bool)
	// noteRefused notes that n tokens were refused, which is demand. waited is false for a draw that does not wait.
	noteRefused(n int, waited bool)
	// book books n tokens used without a draw; a negative n gives tokens back. of is what the limit and other tags of it have dropped as
	// debt; book returns that with its own.
	book(n int, of drop) drop
}

// newcomer returns the place of a caller that comes now for n tokens. The lock is held.
func newcomer(l native, n int) waiter {
	w := l.part().Place(n, n, time.Time{})
	w.Age = waitqueue.Latest
	return w
}

// undo gives back a permit as if it had never been drawn.
func undo(l native, p Permit) {
	l.Lock()
	defer l.Unlock()
	l.Untake(nil, p)
}

// win waits until the attempt on these parts has drawn n tokens of each, or with upTo as many as all have.
func win(ctx context.Context, a *attempt, parts []part, n int, upTo bool) (int, error) {
	over := func(int, error) {}
	counted := false // a call waits once, at however many limiters
	a.Waits = func(at int, r Reason, n int) {
		over(0, nil)
		s := seatOf(parts[at])
		if !counted {
			s.countWait(r)
			counted = true
		}
		a.Aside.Store(s.aside)
		over = s.watch(ctx, r, n)
	}
	k, failed := a.Win(ctx, n, upTo)
	var err error
	if failed != nil {
		err = failure(ctx, seatOf(parts[failed.At]), failed)
	}
	over(k, err)
	return k, err
}

// seatOf returns the seat of the limiter behind a part.
func seatOf(p part) *seat {
	l, _ := p.Source.(native) // every part is made by native.part
	return l.seated()
}

// failure counts the refusal of an attempt by a limiter, and returns its error.
func failure(ctx context.Context, s *seat, f *waitqueue.Failure) error {
	if f.Demand > 0 {
		s.native.noteRefused(f.Demand, true)
	}
	if !f.Ended || waitqueue.DeadlinePassed(ctx) {
		s.countRefusal(f.Refusal.Reason)
	}
	e := s.errorOf(f.Refusal)
	if f.Ended {
		return ended(ctx, e)
	}
	return e
}
