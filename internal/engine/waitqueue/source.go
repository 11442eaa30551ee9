package waitqueue

import (
	"context"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Source grants the tokens of one limiter to attempts: those of a rate, of a tag, or slots. It says how long a draw has to wait, and keeps
// a place for it, without granting anything. An Attempt holds the locks of all its sources at once, in the order of their ranks. Every other
// method but Largest needs the lock.
type Source[P any] interface {
	sync.Locker
	// Largest returns the largest draw that can ever succeed. The lock need not be held.
	Largest() int
	// AtHand returns how many tokens w can take now: none while others stand before it.
	AtHand(w *Waiter[P]) int
	// Due returns how long w has to wait at its place, not counting tokens given back. If the wait is unknown, such as when the share in
	// force is not enough, ok is false. Then d is a lower bound, or 0.
	Due(w *Waiter[P]) (d time.Duration, ok bool)
	// Earns returns how long it takes to earn n tokens, and how much of that they may be collected ahead of the draw: less if some would be
	// void by then. Slots are not earned but given back: 0 and 0.
	Earns(n int) (takes, ahead time.Duration)
	// Refusal returns why w is refused as things stand. RetryAfter covers only the store's freeze, or a pause of slots.
	Refusal(w *Waiter[P]) sharing.Refusal
	// Stand gives w its place in the queue, or moves it to its present one.
	Stand(w *Waiter[P])
	// Leave ends the place of w, if it has one. n is how many tokens it has drawn there; below 0: it gives up.
	Leave(w *Waiter[P], n int)
	// Take takes n tokens that are at hand for w, which keeps its place.
	Take(w *Waiter[P], n int) (P, bool)
	// Untake undoes a draw for w at once. With a nil w it gives back a permit of an attempt that is over, as if it had never been drawn.
	Untake(w *Waiter[P], p P)
}

// gaveUp is the n of Leave for a place that is left without tokens.
const gaveUp = -1

// A Gate is the part that all limiters have in common. No method needs the lock.
type Gate interface {
	// IsClosed reports whether the limiter is closed.
	IsClosed() bool
	// OnClosing calls ring once when the limiter is closed. The lock must not be held.
	OnClosing(ring func()) (stop func())
	// Await waits until ready can be received from, and reports that; false: ctx has ended before. Waker returns a function to call after
	// each signal to the present caller's channel; nil: there is no need.
	Await(ctx context.Context, ready <-chan struct{}) bool
	Waker() (wake func())
	// Present returns the time on the limiter's clock, and At a time in nanoseconds since the limiter was made.
	Present() time.Time
	At(t time.Time) int64
	// AfterFunc calls f once d has passed.
	AfterFunc(d time.Duration, f func()) sharing.Timer
}

// A Part is a limiter in an attempt, with the cost of a draw there.
type Part[P any] struct {
	Source Source[P]
	Gate   Gate
	// TagQueue is that of its callers, in a fair queue.
	TagQueue *TagQueue[P]
	// Price is what n tokens of the attempt cost here, perhaps nothing. nil: n.
	Price func(n int) int
	// Of marks the part as a tag bucket whose tokens are drawn together with those of the limit at this position. A caller that waits for that
	// limit needs no place at the tag bucket, but tokens promised to it. 0: it is no such tag bucket.
	Of uint64
	// Position is that of a limit, for Of. Alone reports whether only callers of the same tag wait there. The lock is held.
	Position uint64
	Alone    func(w *Waiter[P]) bool
	// Soonest returns the shortest possible wait, by which deadlines are judged. nil: that of Due. The lock is held.
	Soonest func(w *Waiter[P]) time.Duration
	// TryLock is Lock if nobody holds the lock. It is set where Of is.
	TryLock func() bool
	// TagBucket is the source, if it is a tag bucket of tokens; nil: it has none.
	TagBucket TagBucket[P]
}

// A TagBucket can promise tokens. The lock is held.
type TagBucket[P any] interface {
	// Promise promises the tokens of w to it, so that others do not find them at hand, or ends that.
	Promise(w *Waiter[P], on bool)
	// LetPass sets Late of w, and finds its place again if it has one.
	LetPass(w *Waiter[P], late bool)
	// Promised reports whether tokens are promised to others than w, and First whether w comes next.
	Promised(w *Waiter[P]) bool
	First(w *Waiter[P]) bool
}

// Place returns a place for a draw of n tokens that can go on with least. The zero deadline means none. The lock is held.
func (p Part[P]) Place(n, least int, deadline time.Time) Waiter[P] {
	w := Waiter[P]{N: n, Least: least, TagQueue: p.TagQueue, Deadline: sharing.Never}
	if !deadline.IsZero() {
		w.Deadline = p.Gate.At(deadline)
	}
	return w
}

// Impossible reports whether a draw of n tokens is refused for good, and why. The lock need not be held.
func (p Part[P]) Impossible(n int) (r limit.Reason, never bool) {
	switch {
	case p.Gate.IsClosed():
		return limit.ReasonClosed, true
	case n > p.Source.Largest():
		return limit.ReasonTooLarge, true
	}
	return "", false
}

func (p Part[P]) soonest(w *Waiter[P]) time.Duration {
	if p.Soonest != nil {
		return p.Soonest(w)
	}
	d, _ := p.Source.Due(w)
	return d
}

func (p Part[P]) price(n int) int {
	if p.Price == nil {
		return n
	}
	return max(p.Price(n), 0)
}

// asks returns how many tokens must be at hand for a draw of n. A draw of none asks for those of one, and one that costs none here asks for
// a token: so it passes nothing that would hold back the least draw.
func (p Part[P]) asks(n int) int { return max(p.price(max(n, 1)), 1) }
