package costrule

import "context"

type passedKey struct{}

// WithPassed returns a context for a request whose body was not read before it was sent. passed returns the cost of the request by the part
// sent so far, and lets no more of it pass. Package httpthrottle settles with that cost instead of the drawn one, if it is higher.
func WithPassed(ctx context.Context, passed func() int) context.Context {
	return context.WithValue(ctx, passedKey{}, passed)
}

// Passed returns the function passed to WithPassed; nil for none.
func Passed(ctx context.Context) func() int {
	passed, _ := ctx.Value(passedKey{}).(func() int)
	return passed
}
