package throttle

import (
	"time"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
)

// A Listener is a Sharer that judges what a called service says to one processor.
// *consensus.Member is one.
type Listener interface {
	Sharer
	// Told is as that of Throttle. It never blocks and never calls the Throttle before it has returned.
	Told(until time.Time, reason string)
}

// DefaultMaxTold is the longest time that Told believes, unless WithMaxTold says otherwise.
const DefaultMaxTold = 5 * time.Minute

// WithMaxTold sets the longest time that Told believes, so that a service whose answer is wrong, or is misread, cannot
// stop a pool. A longer one counts for d. Zero or less is the default, DefaultMaxTold. Processors of a pool may differ: each one bounds
// what it was told itself.
func WithMaxTold(d time.Duration) Option { return func(p *plumbing) { p.maxTold = d } }

// believed is the longest time that Told believes.
func (p *plumbing) believed() time.Duration {
	if p.maxTold <= 0 {
		return DefaultMaxTold
	}
	return p.maxTold
}

// Told says that the called service has told this processor not to call again before a time, for a
// reason that status and errors will show. One processor alone is not believed: the pool is paused
// for as long as another was told to wait as well, or when there are at most two. So
// whoever was told holds back its own calls meanwhile, as package httpthrottle does, whose
// transports call this. Nobody is held back for longer than WithMaxTold says. Without a pool, this limiter is
// paused. It never blocks, and may be called from any goroutine.
func (t *Throttle) Told(until time.Time, reason string) {
	if t.limit.Max == 0 || t.closed.Load() {
		return
	}
	tell(t, t.sharer, until, reason)
}

// Told is as that of Throttle.
func (f *InFlight) Told(until time.Time, reason string) {
	if f.max == 0 || f.closed.Load() {
		return
	}
	tell(f, f.sharer, until, reason)
}

// tell tells the sharer, or pauses what has none.
func tell(l pausable, s Sharer, until time.Time, reason string) {
	now := l.present()
	if !until.After(now) {
		return
	}
	if most := now.Add(l.believed()); until.After(most) {
		until = most
	}
	if len(reason) > limit.MaxPauseReason {
		reason = reason[:limit.MaxPauseReason]
		for !utf8.ValidString(reason) {
			reason = reason[:len(reason)-1]
		}
	}
	if listener, ok := s.(Listener); ok {
		listener.Told(until, reason)
		return
	}
	if _, ok := s.(Pauser); !ok {
		_, _ = pauseAlone(l, Paused{Until: until, Reason: reason}, nil) // what can be wrong was put right
	}
}

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
