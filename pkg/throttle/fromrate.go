package throttle

import (
	"context"
	"time"
)

// A RateLimiter is what FromRate needs: *rate.Limiter of golang.org/x/time has
// these methods.
type RateLimiter interface {
	// AllowN takes n tokens at time t if they are there.
	AllowN(t time.Time, n int) bool
	// WaitN waits until n tokens are taken. It returns an error when n is more than
	// Burst, when the deadline of ctx is too near, and when ctx ends.
	WaitN(ctx context.Context, n int) error
	// Burst is the most that one draw can take.
	Burst() int
}

// FromRate makes a Limiter of a *rate.Limiter of golang.org/x/time, or of anything with
// its methods, so that it can be used where a Limiter is asked for and takes part in an
// All. A nil r is no limit.
//
// Its permits give nothing back: Cancel and Settle do nothing, because such a
// limiter has no way to take tokens back at a later time. In an All the tokens that it
// gave for a draw which another limiter then refused are lost, so that less than its
// rate may get through; a second limit is better made with New. Its wait is not known to All
// in advance.
//
// Errors: *Error with ReasonTooLarge when n is above Burst, ErrThrottled when the
// deadline is too near or has passed, both with the limiter's own error as cause; the
// cause of ctx when it was cancelled.
func FromRate(r RateLimiter) Limiter {
	if r == nil {
		return unlimited{}
	}
	return rated{r}
}

// rated is what FromRate returns.
type rated struct{ r RateLimiter }

func (l rated) TryAcquire(n int) (Permit, bool) {
	if n == 0 || n > 0 && l.r.AllowN(time.Now(), n) {
		return Permit{n: n}, true
	}
	return Permit{}, false
}

func (l rated) Acquire(ctx context.Context, n int) (Permit, error) {
	if err := negative(n); err != nil {
		return Permit{}, err
	}
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	if n <= 0 {
		return Permit{}, nil
	}
	over := waitsFor(ctx, Error{Reason: ReasonLimit, Cost: n})
	err := l.r.WaitN(ctx, n)
	over()
	switch {
	case err == nil:
		return Permit{n: n}, nil
	case ctx.Err() != nil:
		return Permit{}, ended(ctx, &Error{Reason: ReasonLimit, Cost: n})
	case n > l.r.Burst():
		return Permit{}, &Error{Reason: ReasonTooLarge, Cost: n, Cause: err}
	default:
		return Permit{}, &Error{Reason: ReasonLimit, Cost: n, Cause: err}
	}
}

// AcquireUpTo waits for one token, and takes what else is there.
func (l rated) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	p, err := l.Acquire(ctx, min(n, 1))
	if err != nil || n <= 1 {
		return p, err
	}
	for now, k := time.Now(), n-1; k > 0; {
		if !l.r.AllowN(now, k) {
			k /= 2
			continue
		}
		p.n += k
		k = min(k, n-p.n)
	}
	return p, nil
}
