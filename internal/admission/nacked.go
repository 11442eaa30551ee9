package admission

import (
	"log/slog"
	"os"
	"sync"
	"time"
)

// nacked tells of the messages that were nacked: when the first is, and then once a minute as long as there are more.
type nacked struct {
	mu      sync.Mutex
	told    time.Time // when it was told last
	count   int       // since then
	longest time.Duration
}

// tellEvery is how often it is told at most.
const tellEvery = time.Minute

// note counts messages that are to come again after a time, and tells of them when it is due.
func (n *nacked) note(log *slog.Logger, messages int, after time.Duration, why error) {
	n.mu.Lock()
	n.count += messages
	n.longest = max(n.longest, after)
	now := time.Now() // monotonic: how often this process has told
	if !n.told.IsZero() && now.Sub(n.told) < tellEvery {
		n.mu.Unlock()
		return
	}
	count, longest := n.count, n.longest
	n.told, n.count, n.longest = now, 0, 0
	n.mu.Unlock()
	log.Info("messages nacked: their tokens do not come within the longest wait; told once a minute at most",
		"messages", count, "longestDelay", longest.Round(time.Millisecond), "cause", why)
}

// monoVertex is set by the platform in the containers of a MonoVertex.
const monoVertex = "NUMAFLOW_MONO_VERTEX_NAME"

// InMonoVertex tells whether this process is a container of a MonoVertex, as far as the platform says so.
func InMonoVertex() bool { return os.Getenv(monoVertex) != "" }
