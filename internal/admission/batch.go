package admission

import (
	"context"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Batch admits the messages of one batch: MaxWait of its Gate bounds the wait of
// each message, and the time in which any of them waits, added up. Time in which
// none waits, for the handler is busy or the next message is not there yet, does
// not count. Once MaxWait is used up, the rest of the batch is admitted as far as
// there are tokens at hand, and denied at once otherwise.
//
// Its methods may be called from any number of goroutines at once.
type Batch struct {
	gate *Gate

	mu      sync.Mutex // guards what follows
	waiting int        // calls of Admit in progress
	since   time.Time  // when the first of them began
	used    time.Duration
}

// Batch begins a batch.
func (g *Gate) Batch() *Batch { return &Batch{gate: g} }

// Admit is Gate.Admit, within what the batch has left.
func (b *Batch) Admit(ctx context.Context, tag string, cost int) (throttle.Permit, error) {
	if b.gate.MaxWait <= 0 || cost <= 0 {
		return b.gate.Admit(ctx, tag, cost)
	}
	until := b.enter()
	defer b.leave()
	return b.gate.admitBy(ctx, tag, cost, until)
}

// enter counts a call that begins, and returns until when it may wait.
func (b *Batch) enter() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == 0 {
		b.since = time.Now()
	}
	b.waiting++
	return b.since.Add(b.gate.MaxWait - b.used)
}

func (b *Batch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	if b.waiting == 0 {
		b.used += time.Since(b.since)
	}
}
