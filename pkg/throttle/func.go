package throttle

import (
	"context"
)

// Func returns a function that calls f and obeys l: each call waits for one token, as long as its context allows. If f needs more
// arguments or none, or returns only an error, wrap it: f can take a struct, and return one.
//
// A call that was made counts, even if it fails or panics: the service has seen it. The token comes back only if ctx has ended when it is
// granted: then f is not called, and the error is the cause of ctx. Errors of l are returned as they are: *Error, which is [ErrThrottled] or
// [ErrClosed]; the cause of ctx. The permit is settled when f returns, so l can be an [InFlight], alone or in an All. For an Unlimited limiter,
// Func returns f itself.
//
// A call that misses its deadline in f after waiting more than 80 % of its time for its token returns an error that is also [ErrThrottled].
// Other errors of f are returned as they are.
func Func[A, R any](l Limiter, f func(context.Context, A) (R, error)) func(context.Context, A) (R, error) {
	if Unlimited(l) {
		return f
	}
	return func(ctx context.Context, arg A) (result R, err error) {
		ctx = trackCall(ctx)
		p, err := enter(ctx, l)
		if err != nil {
			return result, err
		}
		defer p.Settle(p.N())
		result, err = f(ctx, arg)
		return result, blame(ctx, err)
	}
}

// trackCall is Track for a call that can miss a deadline; others avoid its cost.
func trackCall(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); !ok {
		return ctx
	}
	return trackIn(ctx)
}

// enter waits for the token of one call.
func enter(ctx context.Context, l Limiter) (Permit, error) {
	p, err := l.Acquire(ctx, 1)
	if err != nil {
		return Permit{}, err
	}
	if ctx.Err() != nil {
		p.Cancel()
		return Permit{}, context.Cause(ctx)
	}
	return p, nil
}
