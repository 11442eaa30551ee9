package throttle

import (
	"context"
	"time"
)

// A RateLimiter has the methods that [FromRate] needs, as *rate.Limiter of golang.org/x/time does.
type RateLimiter interface {
	// AllowN takes n tokens at time t if they are there.
	AllowN(t time.Time, n int) bool
	// WaitN waits until n tokens are taken. It returns an error when n is more than
	// Burst, when the deadline of ctx is too near, and when ctx ends.
	WaitN(ctx context.Context, n int) error
	// Burst is the most that one draw can take.
	Burst() int
}

// FromRate turns a *rate.Limiter of golang.org/x/time, or anything with its methods, into a Limiter that can take part in an All. A nil r
// is no limit.
//
// Its permits give nothing back: Cancel and Settle do nothing, because such a limiter cannot take tokens back later. In an All, its tokens
// are lost if another limiter then refuses the draw, so less than its rate may get through. Better make a second limit with New. All does
// not know its wait in advance.
//
// Errors: *Error with [ReasonTooLarge] if n is above Burst, and [ErrThrottled] if the deadline is too near, both with the limiter's own error
// as cause. [ErrThrottled] if the deadline passed in the wait. The cause of ctx if it was cancelled.
func FromRate(r RateLimiter) Limiter {
	if r == nil {
		return unlimited{}
	}
	return rated{r}
}

// rated is the Limiter of FromRate.
type rated struct{ r RateLimiter }

func (l rated) TryAcquire(n int) (Permit, bool) {
	if n >= 0 && l.r.AllowN(time.Now(), max(n, 1)) {
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
	over := waitsFor(ctx, Error{Reason: ReasonLimit, Cost: n})
	err := l.r.WaitN(ctx, max(n, 1))
	over()
	switch {
	case err == nil:
		return Permit{n: n}, nil
	case ctx.Err() != nil:
		return Permit{}, ended(ctx, &Error{Reason: ReasonLimit, Cost: n})
	case max(n, 1) > l.r.Burst():
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
