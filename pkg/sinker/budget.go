package sinker

import (
	"sync"
	"time"
)

// A budget is the time that the messages of one batch may wait for tokens, all
// together: time in which any of them waits counts, once however many they are.
type budget struct {
	mu      sync.Mutex // guards what follows
	left    time.Duration
	waiting int
	since   time.Time // when the first of those that wait began
}

// spent is what a message may wait when the budget is used up: it gets what is at hand.
// (No time at all would be no limit.)
const spent = time.Nanosecond

// enter counts a wait that begins, and returns how long it may take.
func (b *budget) enter() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.waiting == 0 {
		b.since = now
	}
	b.waiting++
	return max(b.left-now.Sub(b.since), spent)
}

func (b *budget) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	if b.waiting == 0 {
		b.left -= time.Since(b.since)
	}
}
