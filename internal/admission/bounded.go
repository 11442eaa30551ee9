package admission

import (
	"context"
	"sync"
	"time"
)

// A bounded is a context with a deadline of its own. It starts no timer before Done is called, since most draws find their tokens at hand.
// It does not end before that either, so a draw whose deadline has passed still gets the tokens at hand.
type bounded struct {
	context.Context //nolint:containedctx // it is one, and lives as long as one draw

	deadline time.Time

	mu     sync.Mutex      // guards what follows
	timed  context.Context //nolint:containedctx // as above; nil before somebody asks
	cancel context.CancelFunc
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (deadline time.Time, ok bool) { return b.deadline, true }

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		b.timed, b.cancel = context.WithDeadline(b.Context, b.deadline)
	}
	return b.timed.Done()
}

// Err implements context.Context.
func (b *bounded) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		return b.Context.Err()
	}
	return b.timed.Err()
}

// stop frees the timer.
func (b *bounded) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
	}
}
