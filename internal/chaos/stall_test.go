//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	stallLook = 50 * time.Millisecond
	// stalled is when a machine was too busy to say how fast a pool recovers: longer
	// than that a process that had something to do did not run, or waited for the disk.
	stalled = 200 * time.Millisecond
)

// A stallWatch notes for how long the machine held up whoever had something to do: each
// processor by itself, since a virtual one may stand still while others go on, and with it whatever runs
// on it; and the disk, since a Redis server that keeps its state answers nobody before that is written.
type stallWatch struct {
	mu    sync.Mutex
	worst map[string]time.Duration // by what held up
	due   map[string]time.Duration // when the look that is under way should have been over
}

func watchStalls(t testing.TB) *stallWatch {
	t.Helper()
	w := &stallWatch{worst: map[string]time.Duration{}, due: map[string]time.Duration{}}
	end := make(chan struct{})
	var all sync.WaitGroup
	t.Cleanup(func() { close(end); all.Wait() })
	for _, p := range processors(t) {
		all.Go(func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			p.bind()
			w.watch(end, p.name, func() { time.Sleep(stallLook) }, stallLook)
		})
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "look"))
	require.NoError(t, err)
	all.Go(func() {
		defer file.Close()
		w.watch(end, disk, func() {
			_, _ = file.WriteAt([]byte{1}, 0) // one that is full fails others
			_ = file.Sync()
		}, 0)
	})
	return w
}

// watch looks until the end, again and again: how much longer than usual does something take?
func (w *stallWatch) watch(end <-chan struct{}, what string, do func(), usual time.Duration) {
	for {
		due := clock() + usual
		w.mu.Lock()
		w.due[what] = due
		w.mu.Unlock()
		do()
		w.mu.Lock()
		w.worst[what] = max(w.worst[what], clock()-due)
		delete(w.due, what)
		w.mu.Unlock()
		select {
		case <-end:
			return
		case <-time.After(stallLook - usual):
		}
	}
}

// A stall is how long the machine held somebody up, at worst, and what of it did.
type stall struct {
	time.Duration
	what string
}

func (s stall) String() string { return fmt.Sprintf("%s on %s", s.Duration, s.what) }

// disk is what one of the watchers looks at.
const disk = "the disk"

// ran returns the worst stall since the last take of whoever did not wait for the disk.
func (w *stallWatch) ran() stall { return w.longest(func(what string) bool { return what != disk }) }

// look returns the worst stall since the last take.
func (w *stallWatch) look() stall { return w.longest(func(string) bool { return true }) }

func (w *stallWatch) longest(of func(what string) bool) stall {
	w.mu.Lock()
	defer w.mu.Unlock()
	worst := stall{what: "nothing"}
	note := func(what string, d time.Duration) {
		if d > worst.Duration && of(what) {
			worst = stall{d, what}
		}
	}
	for what, d := range w.worst {
		note(what, d)
	}
	for what, due := range w.due {
		note(what, clock()-due)
	}
	return worst
}

// take returns the worst stall since the last take.
func (w *stallWatch) take() stall {
	worst := w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.worst)
	return worst
}

// A processor is one that a thread can be bound to.
type processor struct {
	name string
	bind func()
}

// A processor that is kept from everybody for a while is found, and so is one stall among several.
func TestStallsAreFound(t *testing.T) {
	w := &stallWatch{worst: map[string]time.Duration{}, due: map[string]time.Duration{}}
	end, busy := make(chan struct{}), make(chan struct{})
	go w.watch(end, disk, func() { <-busy }, 0)
	require.Eventually(t, func() bool { return w.look().Duration >= stalled }, time.Minute, time.Millisecond, "one under way")
	require.Equal(t, disk, w.look().what)
	require.Zero(t, w.ran().Duration, "nobody waits for the disk")
	close(busy)
	require.Eventually(t, func() bool { return w.take().Duration >= stalled }, time.Minute, time.Millisecond, "the same when it is over")
	require.Eventually(t, func() bool { return w.take().Duration < stalled }, time.Minute, time.Millisecond, "it is not told twice")
	close(end)
	for _, p := range processors(t) {
		require.NotEmpty(t, p.name)
	}
}
