package waitqueue

import (
	"context"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Child is a limiter as an Attempt sees it. It can say how long a draw has to wait, and keep a place for it, without granting anything.
type Child[P any] interface {
	// An attempt holds the locks of all its children at once, in the order of their ranks.
	sync.Locker
	Caller[P]
	Teller[P]
	Keeper[P]
}

// A Caller has the methods that are called without the lock, or that do not depend on it.
type Caller[P any] interface {
	// Undo gives back a permit that an attempt drew, as if it had never been drawn. The lock is not held.
	Undo(p P)
	// NoteRefused notes that n tokens were refused, which is demand.
	NoteRefused(n int)
	// CountWait and CountRefusal count a wait and a refusal by reason.
	CountWait(r limit.Reason)
	CountRefusal(r limit.Reason)
	// OnClosing calls ring once when the limiter is closed. No lock is held.
	OnClosing(ring func()) (stop func())
	// Watch begins to watch a wait; over is called when it has ended. No lock is held.
	Watch(ctx context.Context, r limit.Reason, n int) (over func(n int, err error))
	// Refuse makes the error of a refusal, and Ended that of a call whose context has ended.
	Refuse(r limit.Refusal) error
	Ended(ctx context.Context, r limit.Refusal) error
}

// A Teller answers questions. The lock is held.
type Teller[P any] interface {
	// Impossible reports whether a draw of n tokens is refused for good, and why.
	Impossible(n int) (r limit.Reason, never bool)
	// AtHand returns how many tokens w can take now: none while others stand before it.
	AtHand(w *Waiter[P]) int
	// DueFor returns how long w has to wait at its place, not counting tokens given back. If the wait is unknown, such as when the share in
	// force is not enough, ok is false. Then d is a lower bound, or 0.
	DueFor(w *Waiter[P]) (d time.Duration, ok bool)
	// Earns returns how long it takes to earn n tokens; 0 for slots, which are not earned but given back.
	Earns(n int) time.Duration
	// Lead returns how long n tokens may be collected before the draw: as long as it takes to earn them, unless some would be void by then.
	Lead(n int) time.Duration
	// Refusal returns why w is refused as things stand. RetryAfter covers only the store's freeze, or a pause of slots.
	Refusal(w *Waiter[P]) limit.Refusal
	// Thawing returns the rest of the store's freeze, while no share is in force; else 0.
	Thawing() time.Duration
	// Left returns the time until then.
	Left(then time.Time) time.Duration
	// AfterFunc calls f once d has passed.
	AfterFunc(d time.Duration, f func()) limit.Timer
}

// A Keeper changes an attempt's places and tokens. The lock is held.
type Keeper[P any] interface {
	// Seat prepares a place for a draw that asks for n tokens and can go on with least. The zero deadline means none.
	Seat(n, least int, deadline time.Time) Waiter[P]
	// Stand gives w its place in the queue, or moves it to its present one.
	Stand(w *Waiter[P])
	// Leave gives up the place of w, if it has one; for good if it is Over.
	Leave(w *Waiter[P])
	// DrawFor takes n tokens that are at hand for w, which keeps its place.
	DrawFor(w *Waiter[P], n int) (P, bool)
	// UndrawFor undoes a draw at once.
	UndrawFor(w *Waiter[P], p P)
	// Drawn ends the place of w, which has drawn its tokens.
	Drawn(w *Waiter[P])
}

// A Part is a child of an attempt, with the cost of a draw there.
type Part[P any] struct {
	Child Child[P]
	// Price is what n tokens of the attempt cost at the child. nil: n.
	Price func(n int) int
	// Of marks the child as a stock whose tokens are drawn together with those of the limit at this position. A caller that waits for that
	// limit needs no place at the stock, but tokens promised to it. 0: it is no such stock.
	Of uint64
	// Position is that of a limit, for Of. Alone reports whether only callers of the same tag wait there. The lock is held.
	Position uint64
	Alone    func(w *Waiter[P]) bool
	// TryLock is Lock if nobody holds the lock. It is set where Of is.
	TryLock func() bool
	// Stock is the child, if it is a stock of tokens; nil: it has none.
	Stock Stock[P]
}

// A Stock can promise tokens. The lock is held.
type Stock[P any] interface {
	// Promise promises the tokens of w to it, so that others do not find them at hand, or ends that.
	Promise(w *Waiter[P], on bool)
	// Promised reports whether tokens are promised to others than w, and First whether w comes next.
	Promised(w *Waiter[P]) bool
	First(w *Waiter[P]) bool
}

func (p Part[P]) price(n int) int {
	if p.Price == nil {
		return n
	}
	return p.Price(n)
}
