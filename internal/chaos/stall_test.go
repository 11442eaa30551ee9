//go:build numathrottle_faults

package chaos

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	stallLook = 20 * time.Millisecond
	diskLook  = 100 * time.Millisecond
	// stalled is when a machine was too busy to say how fast a pool recovers: longer
	// than that a process that had something to do did not run.
	stalled = 200 * time.Millisecond
	// diskStalled is the same for a write to disk, of which there are several for each slot, a fifth of
	// a second apart: on a busy disk the limit is not used up, with no fault either. Otherwise a write takes a few milliseconds.
	diskStalled = 50 * time.Millisecond
)

// A stallWatch notes how long this process had to wait for a processor, and for the disk.
type stallWatch struct {
	mu          sync.Mutex
	worst, disk time.Duration
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

// look returns the longest wait for a processor since the last take.
func (w *stallWatch) look() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.worst
}

// take returns the longest wait since the last take, for the processor or the disk, and whether
// it was too long to say how fast a pool recovers.
func (w *stallWatch) take() (longest time.Duration, busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, busy = max(w.worst, w.disk), w.worst >= stalled || w.disk >= diskStalled
	w.worst, w.disk = 0, 0
	return longest, busy
}

// watchDisk counts waits for the disk, too: for lanes whose server writes every change to
// disk before it answers, beside others that do.
func (w *stallWatch) watchDisk(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "probe"), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			time.Sleep(diskLook)
			begun := clock()
			if _, err := file.WriteAt([]byte("probe"), 0); err != nil {
				ended <- err
				return
			}
			w.mu.Lock()
			w.disk = max(w.disk, clock()-begun)
			w.mu.Unlock()
		}
		ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, file.Close())
	})
}
