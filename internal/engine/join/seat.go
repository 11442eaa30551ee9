package join

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Source is a limiter as an All sees it. Attempts draw by the methods of waitqueue.Source; the other methods are called without the lock.
type Source[P any] interface {
	waitqueue.Source[P]
	// Part returns the limiter as a part of an attempt.
	Part() waitqueue.Part[P]
	// Peek reports whether n tokens are at hand for a caller that comes now, and Draw takes them if they are. Neither notes a refusal.
	Peek(n int) bool
	Draw(n int) (P, bool)
	// NoteRefused notes that n tokens were refused, which is demand. waited is false for a draw that does not wait.
	NoteRefused(n int, waited bool)
}

// A Merger is a Source that becomes another one if a second child of the same rank is drawn from in the same draw.
type Merger[P Permit] interface {
	// Merge returns p, which has this source, for the draws of both.
	Merge(p, with Child[P]) Child[P]
}

// A Seat is what every Source has: its place in the order of locks, its gate, and the counts of what callers meet. No method needs the lock.
type Seat[P any] struct {
	Rank   uint64 // orders the locks: an attempt holds those of all its sources
	Gate   *gate.Gate
	Source Source[P]
	// LockFree is the source if draws that do not wait take no lock; nil: they do.
	LockFree LockFree[P]
	Owner    Owner
	// PerCall says that a draw of no tokens takes one, and Aside that its callers are counted beside the limit's queue.
	PerCall, Aside bool
}

// A LockFree undoes, and explains, draws that do not wait without a lock; see Seat.
type LockFree[P any] interface {
	Undraw(p P)
	Why(n int) limit.Reason
}

// An Owner counts, shows and explains what callers meet at its Seat.
type Owner interface {
	// CountWait and CountRefusal count by reason.
	CountWait(r limit.Reason)
	CountRefusal(r limit.Reason)
	// Watch begins to watch a wait; over is called when it has ended.
	Watch(ctx context.Context, r limit.Reason, n int) (over func(n int, err error))
	// Refused returns the error of a refusal. ended says that ctx ended while the call waited.
	Refused(ctx context.Context, r sharing.Refusal, ended bool) error
}

// Newcomer returns the place of a caller that comes now for n tokens. The lock is held.
func Newcomer[P any](s Source[P], n int) waitqueue.Waiter[P] {
	w := s.Part().Place(n, n, time.Time{})
	w.Age = waitqueue.Latest
	return w
}

// Untake undoes Source.Draw as if it had never happened.
func (s *Seat[P]) Untake(p P) {
	if s.LockFree != nil {
		s.LockFree.Undraw(p)
		return
	}
	s.Source.Lock()
	defer s.Source.Unlock()
	s.Source.Untake(nil, p)
}

// Why returns the reason for refusing n tokens to a caller that comes now.
func (s *Seat[P]) Why(n int) limit.Reason {
	if s.LockFree != nil {
		return s.LockFree.Why(n)
	}
	if r, never := s.Impossible(n); never {
		return r
	}
	s.Source.Lock()
	defer s.Source.Unlock()
	w := Newcomer(s.Source, n)
	return s.Source.Refusal(&w).Reason
}

// Impossible reports whether a draw of n tokens is refused for good, and why.
func (s *Seat[P]) Impossible(n int) (r limit.Reason, never bool) {
	return waitqueue.Part[P]{Source: s.Source, Gate: s.Gate}.Impossible(n)
}

// failed counts the refusal of an attempt, and returns its error.
func (s *Seat[P]) failed(ctx context.Context, f *waitqueue.Failure) error {
	if f.Demand > 0 {
		s.Source.NoteRefused(f.Demand, true)
	}
	if !f.Ended || waitqueue.DeadlinePassed(ctx) {
		s.Owner.CountRefusal(f.Refusal.Reason)
	}
	return s.Owner.Refused(ctx, f.Refusal, f.Ended)
}
