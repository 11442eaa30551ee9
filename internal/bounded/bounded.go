// Package bounded ends the wait for calls that heed no context, or not always. A client of nats.go holds its lock while it
// looks for a server: if that answers nothing, each of the client's calls waits for it, seconds for each server, whatever
// becomes of their contexts, and even what tells of its state.
package bounded

import (
	"context"
	"time"
)

// Moment is how long AtOnce waits.
const Moment = 10 * time.Millisecond

// Call returns what a call returns, or the error of ctx if that ends before. The call goes on in a goroutine of its own: what
// it has to say may go out after ctx has ended, as a message that was late on its way.
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

// AtOnce returns what is told within a Moment; ok is false if it takes longer.
func AtOnce[T any](tell func() T) (told T, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), Moment)
	defer cancel()
	told, err := Call(ctx, func() (T, error) { return tell(), nil })
	return told, err == nil
}
