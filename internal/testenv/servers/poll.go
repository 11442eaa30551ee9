package servers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	pollInterval = 20 * time.Millisecond
	// askTimeout bounds one question to a server that may be stopped or gone.
	askTimeout = time.Second
)

// poll asks until the answer is final or the context ends. While an answer is not final, its error names the missing part; the last one
// becomes part of the error when the context ends.
func poll(ctx context.Context, what string, ask func(ctx context.Context) (final bool, err error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, askTimeout)
		final, err := ask(once)
		cancel()
		if final {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// until adapts a check that is passed when it returns nil.
func until(check func(ctx context.Context) error) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := check(ctx)
		return err == nil, err
	}
}
