package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/gate"
)

// DefaultMaxTold is the longest time that Told believes, unless WithMaxTold says otherwise.
const DefaultMaxTold = gate.DefaultMaxRetryAfter

// WithMaxTold sets the longest time that Told believes, so that a service whose answer is wrong, or is misread, cannot
// stop a pool. A longer one counts for d. Zero or less is the default, DefaultMaxTold. Processors of a pool may differ: each one bounds
// what it was told itself.
func WithMaxTold(d time.Duration) Option {
	return func(o *options) { o.common.MaxRetryAfter = d }
}

// Told says that the called service has told this processor not to call again before a time, for a
// reason that status and errors will show. One processor alone is not believed: the pool is paused
// for as long as another was told to wait as well, or when there are at most two. So
// whoever was told holds back its own calls meanwhile, as package httpthrottle does, whose
// transports call this. Nobody is held back for longer than WithMaxTold says. Without a pool, this limiter is
// paused. It never blocks, and may be called from any goroutine.
func (t *Throttle) Told(until time.Time, reason string) { t.gate.RetryAfter(until, reason) }

// Told is as that of Throttle.
func (f *InFlight) Told(until time.Time, reason string) { f.gate.RetryAfter(until, reason) }

// Told tells the first limiter that can be told: what stops one stops all.
func (j *joint) Told(until time.Time, reason string) {
	for _, p := range j.parts {
		if l, ok := look[interface {
			Told(until time.Time, reason string)
		}](p.limiter); ok {
			l.Told(until, reason)
			return
		}
	}
}
