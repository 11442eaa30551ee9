package costrule

import "context"

type passedKey struct{}

// WithPassed returns a context for a request whose body was not read before it was sent: passed returns what the request costs by
// the part that has been sent, and lets no more of it pass. Package httpthrottle settles with that what is to be
// settled as drawn, if it is more.
func WithPassed(ctx context.Context, passed func() int) context.Context {
	return context.WithValue(ctx, passedKey{}, passed)
}

// Passed returns the function that WithPassed was given; nil for none.
func Passed(ctx context.Context) func() int {
	passed, _ := ctx.Value(passedKey{}).(func() int)
	return passed
}
