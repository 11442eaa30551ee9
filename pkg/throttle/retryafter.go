package throttle

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
)

// DefaultMaxRetryAfter is the longest time that RetryAfter accepts, unless WithMaxRetryAfter sets another.
const DefaultMaxRetryAfter = gate.DefaultMaxRetryAfter

// WithMaxRetryAfter sets the longest time that RetryAfter accepts, so that a wrong or misread answer of a service cannot stop a pool. A
// longer one counts as d. Zero or less means [DefaultMaxRetryAfter]; the most is 366 days. Processors of a pool may differ: each bounds
// the times it received.
func WithMaxRetryAfter(d time.Duration) Option {
	return func(o *settings) { o.common.MaxRetryAfter = d }
}

// RetryAfter reports that the called service asked this processor not to call again before a time, for a reason shown in status and errors.
// One processor alone is not believed. The pool is paused for as long as another one was asked to wait too, or if there are at most two. So
// a processor that was asked holds back its own calls meanwhile, like package httpthrottle, whose transports call this. Nobody is held back
// for longer than [WithMaxRetryAfter] says. Without a pool, this limiter is paused. The reason may be any text: its first 128 bytes count,
// with blanks for control characters. It never blocks, and may be called from any goroutine.
func (t *Throttle) RetryAfter(until time.Time, reason string) { t.gate.RetryAfter(until, reason) }

// RetryAfter works like [Throttle.RetryAfter].
func (f *InFlight) RetryAfter(until time.Time, reason string) { f.gate.RetryAfter(until, reason) }

// RetryAfter calls the first limiter that has the method: a pause of one stops all. With a limiter of a tag (Throttle.ForTag) it calls
// none: a service that refuses one tag is no reason to stop the others.
func (j *multi) RetryAfter(until time.Time, reason string) {
	if slices.ContainsFunc(j.Children, func(p child) bool { _, ofTag := p.Limiter.(*tagView); return ofTag }) {
		return
	}
	for _, p := range j.Children {
		if l, ok := unwrapTo[interface {
			RetryAfter(until time.Time, reason string)
		}](p.Limiter); ok {
			l.RetryAfter(until, reason)
			return
		}
	}
}
