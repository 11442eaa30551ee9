package admission

import (
	"context"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Batch admits the messages of one batch. MaxWait of its Admitter bounds the wait of each message, and a budget bounds the total time in
// which any of them waits. Time in which none waits, since the handler is busy or the next message is not there yet, does not count. Once
// the budget is used up, the rest of the batch is admitted as far as there are tokens at hand, and denied at once otherwise.
//
// Its methods may be called from any number of goroutines at once.
type Batch struct {
	admitter *Admitter
	budget   time.Duration // 0: no bound

	mu      sync.Mutex // guards what follows
	waiting int        // calls of Admit in progress
	since   time.Time  // when the first of them began
	used    time.Duration
}

// Batch begins a batch whose messages may together wait for budget; 0 is no bound.
func (g *Admitter) Batch(budget time.Duration) *Batch { return &Batch{admitter: g, budget: budget} }

// Admit is Admitter.Admit, within what the batch has left.
func (b *Batch) Admit(ctx context.Context, tag string, cost int) (throttle.Permit, error) {
	if b.budget <= 0 {
		return b.admitter.Admit(ctx, tag, cost)
	}
	defer b.admitter.watch.leave(b.admitter.watch.enter())
	defer b.leave()
	return b.admitter.admitBy(ctx, tag, cost, b.enter(), b.restart)
}

// enter counts a call that begins, and returns until when it may wait.
func (b *Batch) enter() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.waiting == 0 {
		b.since = now
	}
	b.waiting++
	return b.until(now)
}

// until is until when a call may wait whose wait counts from a time. b.mu is held.
func (b *Batch) until(from time.Time) time.Time {
	until := b.since.Add(b.budget - b.used)
	if own := from.Add(b.admitter.MaxWait); b.admitter.MaxWait > 0 && own.Before(until) {
		return own
	}
	return until
}

// restart restarts the waits of the batch when a freeze ends, at thaw. It returns the new deadline of a call that waits.
func (b *Batch) restart(thaw time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if thaw.After(b.since) {
		b.since = thaw
	}
	return b.until(thaw)
}

// leave counts a call that ends.
func (b *Batch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	if b.waiting == 0 {
		b.used += max(time.Since(b.since), 0) // below 0 in a freeze
	}
}
