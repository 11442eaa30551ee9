package admission

import (
	"log/slog"
	"sync"
	"time"
)

// Bounds of a rhythm.
const (
	rhythmIdle  = 100 * time.Millisecond // a pause that is shorter belongs to the batch
	rhythmLong  = 5 * time.Second        // one that is longer is no matter of settings
	rhythmWait  = 5 * time.Millisecond   // a message that took longer has waited for tokens
	rhythmTimes = 10                     // batches in a row
	rhythmLoss  = 0.03                   // of the time, idle
)

// A rhythm detects batches whose messages wait for tokens to the end, with a gap before the next batch. Then the limit is not used up,
// though there is more to do. It has no clock. The zero value is ready.
type rhythm struct {
	under  int       // messages that are being admitted
	began  time.Time // the batch
	ended  time.Time // the last message of it so far
	waited bool      // one of its messages has
	times  int       // batches in a row
	idle   time.Duration
	whole  time.Duration
}

// enter notes that a message comes; idle is the part of the time without messages, once that is a pattern, and 0 otherwise.
func (r *rhythm) enter(now time.Time) (idle float64) {
	r.under++
	if r.under > 1 {
		return 0
	}
	gap := now.Sub(r.ended)
	switch {
	case r.ended.IsZero():
		r.began = now
		return 0
	case gap < rhythmIdle:
		return 0 // the same batch
	case !r.waited || gap > rhythmLong:
		r.times, r.idle, r.whole = 0, 0, 0
	default:
		r.times++
		r.idle += gap
		r.whole += now.Sub(r.began)
	}
	r.began, r.waited = now, false
	if lost := float64(r.idle) / float64(max(r.whole, 1)); r.times >= rhythmTimes && lost >= rhythmLoss {
		return lost
	}
	return 0
}

// leave notes that a message is admitted, or will not be, after some time.
func (r *rhythm) leave(now time.Time, took time.Duration) {
	r.under--
	r.ended = now
	r.waited = r.waited || took >= rhythmWait
}

// A watch follows the rhythm of an Admitter's messages, in a MonoVertex, and logs it once.
type watch struct {
	once     sync.Once
	off      bool // no MonoVertex
	mu       sync.Mutex
	reported bool
	r        rhythm
}

// enter notes that a message comes; its result is for leave.
func (w *watch) enter() time.Time {
	w.once.Do(func() { w.off = !InMonoVertex() })
	if w.off {
		return time.Time{}
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if idle := w.r.enter(now); idle > 0 && !w.reported {
		w.reported = true
		//nolint:sloglint // an Admitter has no logger: what is wrong is the vertex, and not one handler
		slog.Warn("the limit is not used up: messages wait for tokens to the end of each batch, and then none comes for a while; "+
			"set NUMAFLOW_READ_AHEAD=true on the vertex' numa container with limits.concurrency of 4 x readBatchSize, or limits.readTimeout: 100ms",
			"idle", idle)
	}
	return now
}

func (w *watch) leave(came time.Time) {
	if w.off {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.r.leave(now, now.Sub(came))
}
