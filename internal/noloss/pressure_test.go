package noloss

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

const (
	offered     = 10_000
	perSecond   = 10
	maxGrowth   = 32 << 20
	payloadSize = 256
	// watched is for how long the messages wait.
	watched = 5 * time.Second
	// inStream is four times the platform's readBatchSize, as the documentation advises.
	inStream = 2000
	// overtaking is by how much a message may be later than one that was handled before
	// it: the goroutines of two messages that arrive together take turns.
	overtaking = 50 * time.Millisecond
)

// TestTenThousandMessagesWaitForTenPerSecond: memory, order, and the end. They are
// offered as the platform does, with inStream of them in the stream at a time.
func TestTenThousandMessagesWaitForTenPerSecond(t *testing.T) {
	testkit.SkipShort(t, "it starts processes")
	var w, all, bare waited
	t.Run("at once", func(t *testing.T) {
		for name, c := range map[string]struct {
			w      *waited
			j      job
			atOnce int
		}{
			"as the platform": {&w, job{Kind: kindMap, Rate: perSecond, Burst: 1}, inStream},
			"all in flight":   {&all, job{Kind: kindMap, Rate: perSecond, Burst: 1}, offered},
			"without wrapper": {&bare, job{Kind: kindMap, Bare: true}, offered},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				*c.w = offer(t, c.j, c.atOnce)
			})
		}
	})
	if t.Failed() {
		return
	}
	require.InDelta(t, perSecond*w.took.Seconds(), w.handled, 0.2*perSecond*watched.Seconds(), "messages handled")
	require.LessOrEqual(t, w.overtaken, overtaking, "a message was overtaken by one that arrived so much later")
	require.LessOrEqual(t, all.overtaken, overtaking, "a message was overtaken by one that arrived so much later")
	t.Logf("in the stream %d: %s", inStream, w)
	t.Logf("in the stream %d: %s", offered, all)
	t.Logf("in the stream %d, handler without wrapper: %s", offered, bare)
	if runtime.GOOS == "linux" && !testkit.Race {
		require.Less(t, w.grew, int64(maxGrowth), "resident memory grew")
		require.Less(t, all.grew-bare.grew, int64(maxGrowth), "resident memory grew, beyond what it grows without the wrapper")
	}
	figure := func(what, format string, args ...any) proof.Note {
		return proof.Note{What: what, Figure: fmt.Sprintf(format, args...)}
	}
	proof.Record(t, "pressure", proof.Pools{
		Subject:    fmt.Sprintf("a mapper process limited to %d per second, offered %d messages", perSecond, offered),
		Processors: 1, Took: w.took, Granted: uint64(w.handled),
		Notes: []proof.Note{
			figure(fmt.Sprintf("resident memory grows by, with %d in the stream", inStream), "%.1f MiB (at most 32)", mib(w.grew)),
			figure(fmt.Sprintf("with all %d in the stream", offered), "%.1f MiB, of which %.1f without the wrapper", mib(all.grew), mib(bare.grew)),
			figure("the process ends after its stream was closed, and SIGTERM", "in %s (at most 10 s)", max(w.exit, all.exit).Round(time.Millisecond)),
			figure("a message was overtaken by one that arrived later by", "%s", max(w.overtaken, all.overtaken).Round(time.Microsecond)),
		},
	})
}

// waited is what was measured of a process with messages waiting.
type waited struct {
	grew       int64 // resident memory, in bytes
	handled    int
	overtaken  time.Duration
	took, exit time.Duration
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func (w waited) String() string {
	return fmt.Sprintf("resident memory grew by %.1f MiB; %d handled in %s, overtaken by %s; gone %s after the stream was closed and SIGTERM",
		mib(w.grew), w.handled, w.took.Round(time.Millisecond), w.overtaken, w.exit.Round(time.Millisecond))
}

// offer starts a process, offers it the messages, most of which wait, and ends it.
func offer(t *testing.T, j job, atOnce int) (w waited) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := dataplane.Dir(t)
	j.Notes, j.Arrivals = filepath.Join(dir, "notes"), filepath.Join(dir, "arrivals")
	p := startProcess(t, dir, j)
	m, err := dataplane.Dial(ctx, p.job.Socket, dataplane.WithConcurrency(atOnce), dataplane.WithDrainTimeout(0))
	require.NoError(t, err)
	before := p.resident(t)
	var callers sync.WaitGroup
	failed := make(chan error, offered)
	began := time.Now()
	padding := map[string]string{"padding": strings.Repeat("x", payloadSize)}
	for id := range offered {
		callers.Go(func() {
			_, err := m.Do(ctx, dataplane.Message{Value: []byte(strconv.Itoa(id)), Headers: padding})
			failed <- err
		})
		if id%50 == 49 {
			time.Sleep(5 * time.Millisecond) // a second in all
		}
	}
	require.Eventually(t, func() bool { return len(readNotes(t, j.Arrivals)) >= atOnce }, 20*time.Second, 50*time.Millisecond, "all wait")
	for time.Since(began) < watched {
		w.grew = max(w.grew, p.resident(t)-before)
		time.Sleep(20 * time.Millisecond)
	}
	w.took = time.Since(began)
	w.handled, w.overtaken = inOrder(t, j)

	stopped := time.Now()
	require.Error(t, m.Close(), "most have no answer")
	require.NoError(t, p.signal(sigterm))
	_, err = p.end(exitWithin)
	require.NoError(t, err)
	w.exit = time.Since(stopped)
	callers.Wait()
	require.LessOrEqual(t, countAnswered(t, failed), len(readNotes(t, j.Notes)), "answered without the handler")
	return w
}

// countAnswered checks that every message was answered or seen to fail.
func countAnswered(t *testing.T, failed <-chan error) (answered int) {
	t.Helper()
	for range offered {
		select {
		case err := <-failed:
			switch {
			case err == nil:
				answered++
			case !errors.Is(err, dataplane.ErrNotSent):
				require.ErrorIs(t, err, dataplane.ErrBroken)
			}
		default:
			require.Fail(t, "a message has neither an answer nor an error")
		}
	}
	return answered
}

// inOrder returns how many messages were handled, and by how much one of them was
// overtaken; see overtaken.
func inOrder(t *testing.T, j job) (handled int, late time.Duration) {
	t.Helper()
	arrived := map[string]time.Duration{}
	var waiting []string // in order of arrival
	for _, note := range readNotes(t, j.Arrivals) {
		id, at, _ := strings.Cut(note, "@")
		ns, err := strconv.ParseInt(at, 10, 64)
		require.NoError(t, err)
		arrived[id] = time.Duration(ns)
		waiting = append(waiting, id)
	}
	finished := readNotes(t, j.Notes)
	late, err := overtaken(waiting, arrived, finished)
	require.NoError(t, err)
	return len(finished), late
}

// overtaken returns the largest time by which a message arrived after one that was
// handled later than it, or not at all.
func overtaken(byArrival []string, arrived map[string]time.Duration, handled []string) (longest time.Duration, err error) {
	done := map[string]bool{}
	oldest := 0 // of those that still wait
	for _, id := range handled {
		if _, ok := arrived[id]; !ok || done[id] {
			return 0, fmt.Errorf("message %s was handled before it arrived, or twice", id)
		}
		done[id] = true
		for oldest < len(byArrival) && done[byArrival[oldest]] {
			oldest++
		}
		if oldest < len(byArrival) {
			longest = max(longest, arrived[id]-arrived[byArrival[oldest]])
		}
	}
	return longest, nil
}

func TestTheOrderIsJudged(t *testing.T) {
	arrived := map[string]time.Duration{"a": 0, "b": 10, "c": 30, "d": 70}
	all := []string{"a", "b", "c", "d"}
	for name, c := range map[string]struct {
		handled []string
		want    time.Duration
	}{
		"none":            {nil, 0},
		"in order":        {[]string{"a", "b", "c", "d"}, 0},
		"not all":         {[]string{"a", "b"}, 0},
		"two swapped":     {[]string{"b", "a", "c"}, 10},
		"the last first":  {[]string{"d", "a", "b"}, 70},
		"one left behind": {[]string{"b", "c", "d"}, 70},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := overtaken(all, arrived, c.handled)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	_, err := overtaken(all, arrived, []string{"x"})
	require.Error(t, err)
	_, err = overtaken(all, arrived, []string{"a", "a"})
	require.Error(t, err)
}
