package throttle

import "context"

// Func returns a function that calls f and obeys l: each call waits for one token, as long as its context allows. If f needs more
// arguments, f can take a struct.
//
// A call that was made counts, even if it fails or panics: the service has seen it. The token comes back only if ctx has ended when it is
// granted: then f is not called, and the error is the cause of ctx. Errors of l are returned as they are: *Error, which is ErrThrottled or
// ErrClosed; the cause of ctx. The permit is settled when f returns, so l can be an InFlight, alone or in an All. For an Unlimited limiter,
// Func returns f itself.
//
// A call that misses its deadline in f after waiting more than 80 % of its time for its token returns an error that is also ErrThrottled.
// See Track and Blame. Other errors of f are returned as they are.
//
// FuncErr is for functions that return only an error; Func0 and Func0Err are for those without an argument.
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
		return result, Blame(ctx, err)
	}
}

// FuncErr is Func for a function that returns only an error.
func FuncErr[A any](l Limiter, f func(context.Context, A) error) func(context.Context, A) error {
	if Unlimited(l) {
		return f
	}
	return func(ctx context.Context, arg A) error {
		ctx = trackCall(ctx)
		p, err := enter(ctx, l)
		if err != nil {
			return err
		}
		defer p.Settle(p.N())
		return Blame(ctx, f(ctx, arg))
	}
}

// Func0 is Func for a function without an argument.
func Func0[R any](l Limiter, f func(context.Context) (R, error)) func(context.Context) (R, error) {
	if Unlimited(l) {
		return f
	}
	return func(ctx context.Context) (result R, err error) {
		ctx = trackCall(ctx)
		p, err := enter(ctx, l)
		if err != nil {
			return result, err
		}
		defer p.Settle(p.N())
		result, err = f(ctx)
		return result, Blame(ctx, err)
	}
}

// Func0Err is Func for a function without an argument that returns only an error.
func Func0Err(l Limiter, f func(context.Context) error) func(context.Context) error {
	if Unlimited(l) {
		return f
	}
	return func(ctx context.Context) error {
		ctx = trackCall(ctx)
		p, err := enter(ctx, l)
		if err != nil {
			return err
		}
		defer p.Settle(p.N())
		return Blame(ctx, f(ctx))
	}
}

// trackCall is Track for a call that can miss a deadline; others avoid its cost.
func trackCall(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); !ok {
		return ctx
	}
	return Track(ctx)
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
