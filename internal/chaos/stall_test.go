//go:build numathrottle_faults

package chaos

import (
	"context"
	"sync"
	"testing"
	"time"
)

const (
	stallLook = 50 * time.Millisecond
	// stalled is when a machine was too busy to say how fast a pool recovers: longer
	// than that a process that had something to do did not run.
	stalled = 200 * time.Millisecond
)

// A stallWatch notes how long this process had to wait for a processor.
type stallWatch struct {
	mu    sync.Mutex
	worst time.Duration
}

func watchStalls(t testing.TB) *stallWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w, ended := &stallWatch{}, make(chan struct{})
	go func() {
		defer close(ended)
		last := clock()
		for ctx.Err() == nil {
			time.Sleep(stallLook)
			now := clock()
			w.mu.Lock()
			w.worst = max(w.worst, now-last-stallLook)
			w.mu.Unlock()
			last = now
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

// look returns the longest wait since the last take.
func (w *stallWatch) look() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.worst
}

// take returns the longest wait since the last take.
func (w *stallWatch) take() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	worst := w.worst
	w.worst = 0
	return worst
}
