package throttle

import (
	"context"
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// onClosing calls ring once when the limiter is closed, also for types that embed it.
func (t *Throttle) onClosing(ring func()) (stop func()) { return t.gate.OnClosing(ring) }
func (f *InFlight) onClosing(ring func()) (stop func()) { return f.gate.OnClosing(ring) }

// A closer is a limiter that reports its closing.
type closer interface {
	onClosing(ring func()) (stop func())
}

// askEvery is how often a limiter that cannot report its closing is asked.
const askEvery = time.Second

// Guard implements join.Host. It returns a context that ends with ErrClosed as its cause when one of the limiters is closed. Those of this
// package, and types that show one by embedding or Unwrap, report it. The others are asked once a second, by a draw of nothing.
func (host) Guard(ctx context.Context, children []child) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	turn := make(chan struct{}, 1)
	ring := func() {
		select {
		case turn <- struct{}{}:
		default:
		}
	}
	var stops []func()
	for _, p := range children {
		if c, ok := unwrapTo[closer](p.Limiter); ok {
			stops = append(stops, c.onClosing(ring))
		}
	}
	go func() {
		again := time.AfterFunc(askEvery, ring)
		defer again.Stop()
		for ; ; again.Reset(askEvery) {
			select {
			case <-turn:
			case <-ctx.Done():
				return
			}
			if err := closedPart(ctx, children); err != nil {
				cancel(err)
				return
			}
		}
	}()
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
}

// closedPart returns the error of a limiter that is closed; nil when none is.
func closedPart(ctx context.Context, children []child) error {
	for i := range children {
		p := &children[i]
		if p.Seat != nil {
			if r, never := p.Seat.Impossible(0); never {
				return p.Seat.Owner.Refused(ctx, sharing.Refusal{Reason: r}, false)
			}
			continue
		}
		if _, is := unwrapTo[rated](p.Limiter); is { // it never closes, and takes no token back
			continue
		}
		q, ok := p.Limiter.TryAcquire(0)
		if !ok {
			brief, cancel := context.WithTimeout(ctx, askEvery) // bounds a limiter that waits against its promise
			var err error
			q, err = p.Limiter.Acquire(brief, 0)
			cancel()
			if errors.Is(err, ErrClosed) {
				return err
			}
		}
		q.Cancel() // a draw of nothing may hold a slot
	}
	return nil
}
