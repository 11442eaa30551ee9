package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A patience bounds the wait of a batch's requests for the limits, all together: time in which several of them wait counts once. A batch
// that waits for longer is not done when the pod is killed.
type patience struct {
	wait time.Duration

	mu      sync.Mutex // guards the fields below
	waiting int        // waiting requests
	since   time.Time  // when the first of them began
	used    time.Duration
}

type patienceKey struct{}

// patienceOf returns the patience of the batch of ctx's request; without one, a new one for the request.
func patienceOf(ctx context.Context, wait time.Duration) *patience {
	if p, ok := ctx.Value(patienceKey{}).(*patience); ok {
		return p
	}
	return &patience{wait: wait}
}

// enter counts a request that begins to wait, and returns how long it may.
func (p *patience) enter() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now() // monotonic: the wait is this process's own
	if p.waiting == 0 {
		p.since = now
	}
	p.waiting++
	return p.wait - p.used - now.Sub(p.since)
}

// leave counts a request that stops waiting.
func (p *patience) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if p.waiting == 0 {
		p.used += time.Since(p.since)
	}
}

// A patient limiter bounds the wait of a draw, and of the draws of a batch together.
type patient struct {
	throttle.Limiter

	wait time.Duration
}

// Unwrap exposes the reason for waits; see hook.ExternalWait.
func (p patient) Unwrap() throttle.Limiter { return p.Limiter }

// Acquire implements throttle.Limiter. When the batch's patience is used up, it takes only tokens at hand.
func (p patient) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	of := patienceOf(ctx, p.wait)
	wait := of.enter()
	defer of.leave()
	if wait <= 0 && ctx.Err() == nil {
		if permit, ok := p.TryAcquire(n); ok {
			return permit, nil
		}
		wait = time.Nanosecond // the limiter says when
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	permit, err := p.Limiter.Acquire(bounded, n)
	if err != nil && ctx.Err() == nil && !errors.Is(err, throttle.ErrThrottled) && !errors.Is(err, throttle.ErrClosed) {
		err = &throttle.Error{Reason: throttle.ReasonLimit, Cost: n, Cause: err}
	}
	return permit, err
}
