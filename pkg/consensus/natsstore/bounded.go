package natsstore

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// stateWithin bounds the wait for what the client tells of itself.
const stateWithin = 10 * time.Millisecond

// bounded returns what a call of the client returns, or the error of ctx if that ends before. The call goes on: while the
// client looks for a server that answers nothing, each of its calls waits for that, seconds for each server,
// whatever becomes of their contexts. What it has to say may go out after ctx has ended, as a message that
// was late on its way.
func bounded[T any](ctx context.Context, call func() (T, error)) (T, error) {
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

// atOnce returns what the client tells of itself, if it does so at once.
func atOnce[T any](tell func() T) (told T, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), stateWithin)
	defer cancel()
	told, err := bounded(ctx, func() (T, error) { return tell(), nil })
	return told, err == nil
}

// status is the state of the connection. A client that does not tell it at once is looking for a server.
func (s line) status() nats.Status {
	if status, ok := atOnce(s.nc.Status); ok {
		return status
	}
	return nats.RECONNECTING
}

// lastError is the connection's newest error, nil if the client does not tell it at once.
func (s line) lastError() error {
	err, _ := atOnce(s.nc.LastError)
	return err
}
