package stage

import (
	"context"
	"sync/atomic"
	"time"
)

// A Lateness is by how much the machine was late at worst: a busy one lets processes wait for a core, and what their buckets cannot hold
// meanwhile is lost.
type Lateness struct{ worst atomic.Int64 }

// MeasureLateness measures until ctx ends, by a timer that should fire a hundred times a second.
func MeasureLateness(ctx context.Context) *Lateness {
	const every = 10 * time.Millisecond
	var l Lateness
	go func() {
		timer := time.NewTimer(every)
		defer timer.Stop()
		for {
			began := time.Now()
			timer.Reset(every)
			select {
			case <-timer.C:
				l.note(time.Since(began) - every)
			case <-ctx.Done():
				return
			}
		}
	}()
	return &l
}

func (l *Lateness) note(late time.Duration) {
	if int64(late) > l.worst.Load() { // by one goroutine
		l.worst.Store(int64(late))
	}
}

// Worst is the longest delay so far.
func (l *Lateness) Worst() time.Duration { return time.Duration(l.worst.Load()) }
