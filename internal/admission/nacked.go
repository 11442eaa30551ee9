package admission

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// tellEvery is how often something is told at most.
const tellEvery = time.Minute

// every counts what is to be told: when it happens first, and then once a minute as long as it does.
type every struct {
	mu    sync.Mutex
	told  time.Time // the last time
	count int       // since then
}

// add counts n more, and returns how many there were since the last time if they are to be told now.
func (e *every) add(n int) (count int, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count += n
	now := time.Now() // monotonic: how often this process has told
	if !e.told.IsZero() && now.Sub(e.told) < tellEvery {
		return 0, false
	}
	count = e.count
	e.told, e.count = now, 0
	return count, true
}

// nacked tells of the messages that were nacked.
type nacked struct {
	every

	longest atomic.Int64 // delay since the last time
}

// note counts messages that are to come again after a time, and tells of them when it is due.
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

// InMonoVertex tells whether this process is a container of a MonoVertex, as far as the platform says so.
func InMonoVertex() bool { return os.Getenv(monoVertex) != "" }
