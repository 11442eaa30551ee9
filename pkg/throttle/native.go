package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
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
	drawer
	counter
	// position orders the locks: an attempt holds those of all its sources.
	position() uint64
	// common returns the gate of the limiter.
	common() *gate.Gate
	// book books n tokens used without a draw; a negative n gives tokens back. of is what the limit and other tags of it have dropped as
	// debt; book returns that with its own.
	book(n int, of drop) drop
	// part returns the limiter as a part of an attempt.
	part() part
}

// A drawer draws for callers that do not wait.
type drawer interface {
	// peek reports whether n tokens are at hand for a caller that comes now.
	peek(n int) bool
	// take takes n tokens if they are at hand, and notes no refusal.
	take(n int) (Permit, bool)
	// untake undoes take as if it had never happened.
	untake(p Permit)
	// why returns the reason for refusing n tokens.
	why(n int) Reason
}

// A counter counts what callers meet, and names it.
type counter interface {
	// noteRefused notes that n tokens were refused, which is demand. waited is false for a draw that does not wait.
	noteRefused(n int, waited bool)
	// countWait and countRefusal count a wait and a refusal by reason.
	countWait(r Reason)
	countRefusal(r Reason)
	// watch begins to watch a wait; over is called when it has ended.
	watch(ctx context.Context, r Reason, n int) (over func(n int, err error))
	// errorOf makes the error of a refusal.
	errorOf(r sharing.Refusal) *Error
}

var ranks atomic.Uint64

// nextRank returns the position of a new limiter in the order of locks.
func nextRank() uint64 { return ranks.Add(1) }

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

// whyNow returns the reason for refusing n tokens to a caller that comes now.
func whyNow(l native, n int) Reason {
	if r, never := l.part().Impossible(n); never {
		return r
	}
	l.Lock()
	defer l.Unlock()
	w := newcomer(l, n)
	return l.Refusal(&w).Reason
}

// win waits until the attempt on these parts has drawn n tokens of each, or with upTo as many as all have.
func win(ctx context.Context, a *attempt, parts []part, n int, upTo bool) (int, error) {
	over := func(int, error) {}
	counted := false // a call waits once, at however many limiters
	a.Waits = func(at int, r Reason, n int) {
		over(0, nil)
		l := nativeOf(parts[at])
		if !counted {
			l.countWait(r)
			counted = true
		}
		_, aside := l.(interface{ waitsAside() })
		a.Aside.Store(aside)
		over = l.watch(ctx, r, n)
	}
	k, failed := a.Win(ctx, n, upTo)
	var err error
	if failed != nil {
		err = failure(ctx, nativeOf(parts[failed.At]), failed)
	}
	over(k, err)
	return k, err
}

// nativeOf returns the limiter behind a part.
func nativeOf(p part) native {
	l, _ := p.Source.(native) // every part is made by native.part
	return l
}

// failure counts the refusal of an attempt by l, and returns its error.
func failure(ctx context.Context, l native, f *waitqueue.Failure) error {
	if f.Demand > 0 {
		l.noteRefused(f.Demand, true)
	}
	if !f.Ended || waitqueue.DeadlinePassed(ctx) {
		l.countRefusal(f.Refusal.Reason)
	}
	e := l.errorOf(f.Refusal)
	if f.Ended {
		return ended(ctx, e)
	}
	return e
}
