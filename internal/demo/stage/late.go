package stage

import (
	"context"
	"sync/atomic"
	"time"
)

// A Lateness is the machine's worst scheduling delay. A busy machine lets processes wait for a core, and tokens that their full buckets
// cannot hold in the meantime are lost.
type Lateness struct{ worst atomic.Int64 }

// MeasureLateness measures until ctx ends, with a timer that should fire a hundred times a second.
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
	if int64(late) > l.worst.Load() { // only one goroutine writes
		l.worst.Store(int64(late))
	}
}

// Worst is the longest delay so far.
func (l *Lateness) Worst() time.Duration { return time.Duration(l.worst.Load()) }
