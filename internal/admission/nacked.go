package admission

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// tellEvery is the shortest time between two log entries of a kind.
const tellEvery = time.Minute

// every counts events to be logged: the first at once, and then once a minute as long as they go on.
type every struct {
	mu       sync.Mutex
	reported time.Time // the last time
	count    int       // since then
}

// add counts n more. If a log entry is due, count is the number of events since the last one.
func (e *every) add(n int) (count int, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count += n
	now := time.Now() // monotonic: how often this process has told
	if !e.reported.IsZero() && now.Sub(e.reported) < tellEvery {
		return 0, false
	}
	count = e.count
	e.reported, e.count = now, 0
	return count, true
}

// nacked logs the messages that were nacked.
type nacked struct {
	every

	longest atomic.Int64 // delay since the last time
}

// note counts messages that are to come again after a time, and logs them when it is due.
func (n *nacked) note(log *slog.Logger, messages int, after time.Duration, why error) {
	for {
		longest := n.longest.Load()
		if int64(after) <= longest || n.longest.CompareAndSwap(longest, int64(after)) {
			break
		}
	}
	if count, due := n.add(messages); due {
		log.Info("messages nacked: their tokens do not come within the longest wait; told once a minute at most",
			"messages", count, "longestDelay", time.Duration(n.longest.Swap(0)).Round(time.Millisecond), "cause", why)
	}
}

// monoVertex is set by the platform in the containers of a MonoVertex.
const monoVertex = "NUMAFLOW_MONO_VERTEX_NAME"

// InMonoVertex reports whether this process is a container of a MonoVertex, as far as the platform says so.
func InMonoVertex() bool { return os.Getenv(monoVertex) != "" }
