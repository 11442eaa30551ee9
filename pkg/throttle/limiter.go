package throttle

import (
	"context"
	"sync/atomic"
)

// A Limiter hands out permits. This package has *Throttle and *InFlight; others can be written with [NewPermit].
//
// All methods may be called from any number of goroutines at once. The cost n is in tokens. A negative cost is a mistake: TryAcquire
// refuses it, and the others fail with [ErrNegative].
//
// A draw of zero tokens is for calls whose cost is known afterwards. It waits or is refused as one of one token would be, and takes nothing.
// Its permit charges what it is settled with, as Charge does. Limits that count calls still take one: an [InFlight], and a limiter within
// [PerCall]. So does [FromRate], which cannot look without drawing, and within an All each limiter of another package.
type Limiter interface {
	// Acquire waits until n tokens are granted. It fails at once if the deadline of ctx comes before the tokens can, and with the cause of
	// ctx if it ends during the wait. Errors: *Error, which is ErrThrottled or ErrClosed; the error of ctx.
	Acquire(ctx context.Context, n int) (Permit, error)

	// AcquireUpTo waits until at least one token is available and takes as many as there are, at most n; see Permit.N. Errors as Acquire.
	AcquireUpTo(ctx context.Context, n int) (Permit, error)

	// TryAcquire takes n tokens if they are at hand. It never waits.
	TryAcquire(n int) (Permit, bool)
}

// A Tagger is a Limiter that distinguishes tags: tenants, models, destinations inside one limit.
type Tagger interface {
	Limiter

	// ForTag returns the Limiter for this tag. It draws on the same limit, is cheap enough to call for each message, and is never nil.
	ForTag(tag string) Limiter
}

// A Permit is the right to use the tokens granted to one caller. It may be settled once with the real use. A permit that is never settled
// counts as fully used.
//
// Copies of a permit are the same permit: only one settlement of all of them counts, so `defer p.Cancel()` after a Settle is harmless. The
// zero Permit is valid, holds no tokens, and settling it does nothing. All methods may be called from any goroutine.
type Permit struct {
	n   int
	pos int64
	by  settler
}

// A settler books the settlement of the permits that it issued. used is cancelled for a call that was not made.
type settler interface {
	settle(pos int64, n, used int)
}

// N returns how many tokens the permit holds.
func (p Permit) N() int { return p.n }

// Settle ends the permit with its real cost. Unused tokens are given back (a limiter may refuse to credit them). Tokens used above N are
// debt that later callers wait for. A negative used counts as 0. Settle(0) is for a call that was made and cost nothing: it still counts
// where calls are counted, and frees the slots of an [InFlight].
func (p Permit) Settle(used int) {
	if p.by == nil {
		return
	}
	p.by.settle(p.pos, p.n, max(used, 0))
}

// Cancel gives everything back, for a call that was not made. It differs from Settle(0) only where calls are counted, as by [PerCall].
func (p Permit) Cancel() {
	if p.by != nil {
		p.by.settle(p.pos, p.n, cancelled)
	}
}

// cancelled is the use of a cancelled permit.
const cancelled = -1

// NewPermit returns a permit of n tokens for another Limiter implementation. It calls settle at most once, with the settled cost, 0 for a
// cancelled permit; settle may be nil.
func NewPermit(n int, settle func(used int)) Permit {
	if settle == nil {
		return Permit{n: n}
	}
	return Permit{n: n, by: &onceSettler{f: settle}}
}

type onceSettler struct {
	done atomic.Bool
	f    func(used int)
}

func (s *onceSettler) settle(_ int64, _, used int) {
	if s.done.CompareAndSwap(false, true) {
		s.f(max(used, 0))
	}
}

// Unlimited reports whether l never refuses and never waits: a nil Limiter, or one whose method `Unlimited() bool` says so, like a
// *Throttle without a limit. A wrapper returns the handler itself for such a limiter.
func Unlimited(l Limiter) bool {
	if l == nil {
		return true
	}
	u, ok := l.(interface{ Unlimited() bool })
	return ok && u.Unlimited()
}
