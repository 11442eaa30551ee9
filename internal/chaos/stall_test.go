//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
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
	now   func() time.Duration
	mu    sync.Mutex
	worst map[string]time.Duration // by what held up
	due   map[string]time.Duration // when the look that is under way should have been over
}

func newStallWatch(now func() time.Duration) *stallWatch {
	return &stallWatch{now: now, worst: map[string]time.Duration{}, due: map[string]time.Duration{}}
}

// disk is what one of the watchers looks at.
const disk = "the disk"

// watchStalls watches all processors and the disk until the test ends.
func watchStalls(t testing.TB) *stallWatch {
	t.Helper()
	w, end := newStallWatch(clock), make(chan struct{})
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
		due := w.now() + usual
		w.mu.Lock()
		w.due[what] = due
		w.mu.Unlock()
		do()
		w.mu.Lock()
		w.worst[what] = max(w.worst[what], w.now()-due)
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
		note(what, w.now()-due)
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

func TestStallsAreFound(t *testing.T) {
	const busy, slow = 700 * time.Millisecond, 900 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w, end := newStallWatch(func() time.Duration { return time.Since(start) }), make(chan struct{})
		looks := func(usual time.Duration, stalls ...time.Duration) func() {
			return func() {
				next := usual
				if len(stalls) > 0 {
					next, stalls = usual+stalls[0], stalls[1:]
				}
				time.Sleep(next)
			}
		}
		var all sync.WaitGroup
		defer func() { close(end); all.Wait() }()
		all.Go(func() { w.watch(end, "processor 0", looks(stallLook), stallLook) })
		all.Go(func() { w.watch(end, "processor 1", looks(stallLook, 0, busy), stallLook) })
		all.Go(func() { w.watch(end, disk, looks(0, 0, 0, 0, slow), 0) })
		after := func(d time.Duration) { time.Sleep(d - time.Since(start)); synctest.Wait() }

		after(2*stallLook - 1)
		require.Equal(t, stall{what: "nothing"}, w.look())
		after(600 * time.Millisecond) // both are under way
		require.Equal(t, stall{500 * time.Millisecond, "processor 1"}, w.ran())
		require.Equal(t, "processor 1", w.look().what)
		after(5 * time.Second)
		require.Equal(t, stall{busy, "processor 1"}, w.ran())
		require.Equal(t, stall{slow, disk}, w.take())
		require.Equal(t, stall{what: "nothing"}, w.take(), "it is not told twice")
	})
	for _, p := range processors(t) {
		require.NotEmpty(t, p.name)
	}
}

func TestOnlyAStandingProcessorGivesAnotherTry(t *testing.T) {
	for name, c := range map[string]struct {
		took  time.Duration
		ok    bool
		held  string
		by    time.Duration
		tries int
	}{
		"in time":                  {stateKept, true, "processor 0", time.Second, 1},
		"late":                     {stateKept + 1, true, "processor 0", stalled - 1, 1},
		"late, processor stood":    {stateKept + 1, true, "processor 0", stalled, 3},
		"late, disk was slow":      {stateKept + 1, true, disk, time.Minute, 1},
		"not at all":               {0, false, "processor 0", 0, 1},
		"not at all, it stood too": {0, false, "processor 0", stalled, 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lane{TB: t, ledger: newLedger(t, "R7", "nothing"), stalls: newStallWatch(clock)}
			tries := 0
			took, ok := l.fairly(&fault{name: name, allowed: stateKept}, func() (time.Duration, bool) {
				tries++
				l.stalls.worst[c.held] = c.by
				return c.took, c.ok
			})
			require.Equal(t, c.tries, tries)
			require.Equal(t, c.took, took)
			require.Equal(t, c.ok, ok)
		})
	}
}
