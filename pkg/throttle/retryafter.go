package throttle

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/gate"
)

// DefaultMaxRetryAfter is the longest time that RetryAfter believes, unless WithMaxRetryAfter says otherwise.
const DefaultMaxRetryAfter = gate.DefaultMaxRetryAfter

// WithMaxRetryAfter sets the longest time that RetryAfter believes, so that a service whose answer is wrong, or is misread, cannot
// stop a pool. A longer one counts for d. Zero or less is the default, DefaultMaxRetryAfter. Processors of a pool may differ: each one bounds
// what it was told itself.
func WithMaxRetryAfter(d time.Duration) Option {
	return func(o *options) { o.common.MaxRetryAfter = d }
}

// RetryAfter says that the called service has told this processor not to call again before a time, for a
// reason that status and errors will show. One processor alone is not believed: the pool is paused
// for as long as another was told to wait as well, or when there are at most two. So
// whoever was told holds back its own calls meanwhile, as package httpthrottle does, whose
// transports call this. Nobody is held back for longer than WithMaxRetryAfter says. Without a pool, this limiter is
// paused. It never blocks, and may be called from any goroutine.
func (t *Throttle) RetryAfter(until time.Time, reason string) { t.gate.RetryAfter(until, reason) }

// RetryAfter is as that of Throttle.
func (f *InFlight) RetryAfter(until time.Time, reason string) { f.gate.RetryAfter(until, reason) }

// RetryAfter tells the first limiter that can be told: what stops one stops all. With a limiter of a tag (Throttle.ForTag) it tells
// none: what a service refuses to one tag is no reason to stop the others.
func (j *multi) RetryAfter(until time.Time, reason string) {
	if slices.ContainsFunc(j.children, child.ofTag) {
		return
	}
	for _, p := range j.children {
		if l, ok := unwrapTo[interface {
			RetryAfter(until time.Time, reason string)
		}](p.limiter); ok {
			l.RetryAfter(until, reason)
			return
		}
	}
}
