package throttle

import (
	"context"
	"sync/atomic"
)

// A Limiter hands out permits. *Throttle is the one that this package offers;
// others can be written with NewPermit.
//
// All methods may be called from any number of goroutines at once. n is a cost
// in tokens; a cost of zero is granted at once and draws nothing. One below zero is
// a mistake: TryAcquire refuses it, and the others fail with ErrNegative.
type Limiter interface {
	// Acquire waits until n tokens are granted. It fails at once, without
	// waiting, when the deadline of ctx comes before the tokens can; it fails
	// with the cause when ctx ends while it waits. Errors: *Error, which is
	// ErrThrottled or ErrClosed; the error of ctx.
	Acquire(ctx context.Context, n int) (Permit, error)

	// AcquireUpTo waits until at least one token is to be had and takes as
	// many as there are, at most n. Permit.N tells how many. Errors as Acquire.
	AcquireUpTo(ctx context.Context, n int) (Permit, error)

	// TryAcquire takes n tokens if they are at hand. It never waits.
	TryAcquire(n int) (Permit, bool)
}

// A Tagger is a Limiter that tells tags apart: tenants, models, destinations inside
// one limit.
type Tagger interface {
	Limiter

	// ForTag returns the Limiter for what has this tag. It draws on the same limit,
	// is cheap enough to be asked for each message, and never nil.
	ForTag(tag string) Limiter
}

// A Permit is the right to use the tokens that were granted to one caller. It
// may be settled once with what was really used; a permit that is never settled
// counts as used as drawn.
//
// Copies of a permit are the same permit: at most one settlement of all of them
// counts, so `defer p.Cancel()` after a Settle is harmless. The zero Permit is
// valid, holds no tokens, and settling it does nothing. All methods may be
// called from any goroutine.
type Permit struct {
	n   int
	pos int64
	by  settler
}

// A settler books the settlement of the permits that it issued.
type settler interface {
	settle(pos int64, n, used int)
}

// N tells how many tokens the permit holds.
func (p Permit) N() int { return p.n }

// Settle ends the permit with the cost that really arose: what was not used is
// given back (a limiter may refuse to credit it), what was used above N is debt
// that later callers wait for. A negative used counts as 0.
func (p Permit) Settle(used int) {
	if p.by == nil {
		return
	}
	p.by.settle(p.pos, p.n, max(used, 0))
}

// Cancel gives all tokens back. It is Settle(0).
func (p Permit) Cancel() { p.Settle(0) }

// NewPermit returns a permit of n tokens for another implementation of Limiter.
// settle is called at most once, with the cost that the caller settled on;
// it may be nil.
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
		s.f(used)
	}
}

// Unlimited tells whether l never refuses and never waits: a nil Limiter, or one
// that says so by a method `Unlimited() bool`, as a *Throttle without a limit
// does. A wrapper returns the handler itself for such a limiter.
func Unlimited(l Limiter) bool {
	if l == nil {
		return true
	}
	u, ok := l.(interface{ Unlimited() bool })
	return ok && u.Unlimited()
}
