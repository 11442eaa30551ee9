package throttle

import (
	"github.com/numaproj-contrib/numathrottle/internal/engine/join"
	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// A waiter is a caller in the queue of a limiter; a queue holds the waiters of one limiter.
type (
	waiter   = waitqueue.Waiter[Permit]
	queue    = waitqueue.Queue[Permit]
	tagQueue = waitqueue.TagQueue[Permit]
	part     = waitqueue.Part[Permit]
)

// A native is a limiter of this package as All sees it.
type native interface {
	join.Source[Permit]
	// book books n tokens used without a draw; a negative n gives tokens back. of is what the limit and other tags of it have dropped as
	// debt; book returns that with its own. It is called without the lock.
	book(n int, of drop) drop
}

// nativeOf returns the limiter of a child that has a seat.
func nativeOf(p *child) native {
	l, _ := p.Seat.Source.(native) // each is one: see seat.take
	return l
}
