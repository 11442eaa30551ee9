package main

import (
	"context"
	"sync"
	"time"
)

// A breaker holds calls back while no waiting helps: one call at a time, each after a while, tries whether calls succeed again. The zero
// breaker is closed: calls pass. It is safe for concurrent use.
type breaker struct {
	mu      sync.Mutex
	tripped bool
	until   time.Time // when the next one may try
	trying  bool
	changed chan struct{} // closed at the next change; nil without waiting callers
}

const (
	// tryEvery is how long the breaker is tripped before the next call tries, unless the provider names a later end.
	tryEvery = time.Minute
	// longestStop bounds that end: a day with a change of the clock.
	longestStop = 25 * time.Hour
)

// pass waits until a call may be made. If trial is true, the breaker is tripped and this call is the one that tries: call leave when it has
// ended.
func (b *breaker) pass(ctx context.Context) (trial bool, err error) {
	for {
		b.mu.Lock()
		left := time.Until(b.until)
		if !b.tripped || !b.trying && left <= 0 {
			trial = b.tripped
			b.trying = trial
			b.mu.Unlock()
			return trial, nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		if b.trying {
			left = tryEvery // until that call has ended
		}
		b.mu.Unlock()
		timer := time.NewTimer(max(left, time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// tryPass is pass without a wait: may reports whether a call may be made now.
func (b *breaker) tryPass() (trial, may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tripped && (b.trying || time.Until(b.until) > 0) {
		return false, false
	}
	b.trying = b.tripped
	return b.tripped, true
}

// report reports the result of the call: tripped if no waiting helps, and after what time it ends; 0 if unknown. It returns whether
// the breaker was closed until now.
func (b *breaker) report(tripped bool, after time.Duration) (wasClosed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wasClosed = !b.tripped
	if tripped {
		b.until = time.Now().Add(min(max(after, tryEvery), longestStop))
	}
	if b.tripped != tripped {
		b.tripped = tripped
		b.wake()
	}
	return wasClosed
}

// leave ends a trial, successful or not.
func (b *breaker) leave(trial bool) {
	if !trial {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	b.wake()
}

func (b *breaker) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
