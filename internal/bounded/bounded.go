// Package bounded bounds the wait for calls that do not always obey a context. A client of nats.go holds its lock while it looks for a
// server. If that does not answer, each of the client's calls waits for it, seconds per server, even after the end of its context. So do
// calls for the client's status.
package bounded

import (
	"context"
	"time"
)

// Moment bounds the wait of AtOnce.
const Moment = 10 * time.Millisecond

// Call returns the result of a call, or the error of ctx if that ends first. The call continues in its own goroutine: its messages may go
// out after ctx has ended, like delayed ones.
func Call[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	got := make(chan result, 1)
	go func() {
		value, err := call()
		got <- result{value, err}
	}()
	select {
	case r := <-got:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// AtOnce returns the result of tell within a Moment; ok is false if it takes longer.
func AtOnce[T any](tell func() T) (reported T, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), Moment)
	defer cancel()
	reported, err := Call(ctx, func() (T, error) { return tell(), nil })
	return reported, err == nil
}
