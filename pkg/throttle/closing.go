package throttle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// An audience is who wants to know at once that a limiter is closed, without standing in its queue: draws on several
// limiters, which stand at the scarcest. All methods may be called from any goroutine.
type audience struct {
	mu     sync.Mutex
	over   bool
	listen map[*func()]struct{}
}

// tell calls ring once when the limiter is closed, at once when it is; stop ends that.
func (a *audience) tell(ring func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		ring()
		return func() {}
	}
	if a.listen == nil {
		a.listen = map[*func()]struct{}{}
	}
	a.listen[&ring] = struct{}{}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listen, &ring)
	}
}

// dismiss tells everybody that the limiter is closed.
func (a *audience) dismiss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for ring := range a.listen {
		(*ring)()
	}
	a.listen = nil
}

// onClosing is audience.tell, for the limiters of this package and what embeds one.
func (p *plumbing) onClosing(ring func()) (stop func()) { return p.audience.tell(ring) }

// A closer is a limiter that tells when it is closed.
type closer interface {
	onClosing(ring func()) (stop func())
}

// askEvery is how often a limiter that cannot tell is asked whether it is closed.
const askEvery = time.Second

// guard returns a context that ends with ErrClosed as its cause when one of the limiters is closed. Those of this
// package tell it, and so does what shows one by embedding it or by Unwrap; the others are asked once a second, by a draw
// of nothing.
func (j *joint) guard(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	turn := make(chan struct{}, 1)
	var stops []func()
	for _, p := range j.parts {
		if c, ok := look[closer](p.limiter); ok {
			stops = append(stops, c.onClosing(func() {
				select {
				case turn <- struct{}{}:
				default:
				}
			}))
		}
	}
	go func() {
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		for {
			select {
			case <-turn:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := j.closedPart(ctx); err != nil {
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
func (j *joint) closedPart(ctx context.Context) error {
	for i := range j.parts {
		p := &j.parts[i]
		if p.native != nil {
			if r, never := p.native.Impossible(0); never {
				return p.native.Refuse(limit.Refusal{Reason: r})
			}
			continue
		}
		if _, ok := p.limiter.TryAcquire(0); ok {
			continue
		}
		brief, cancel := context.WithTimeout(ctx, askEvery) // for one that waits, against what it promises
		_, err := p.limiter.Acquire(brief, 0)
		cancel()
		if errors.Is(err, ErrClosed) {
			return err
		}
	}
	return nil
}

// shut is the error with which guard has ended the context; nil when it has not.
func shut(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}
