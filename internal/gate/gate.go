package gate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Clock tells the time in place of the machine's clock; see throttle.Clock.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) limit.Timer
}

// Options are what every limiter can be connected to.
type Options struct {
	// Tag is the tag that the limiter is for; empty for none.
	Tag string
	// Clock is the limiter's clock; nil: the machine's, which is faster.
	Clock Clock
	// MaxRetryAfter is the longest time that RetryAfter believes. 0 or less: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// OnClose runs once, in order, when the limiter is closed.
	OnClose []func(context.Context) error
}

// A Gate is the common part of a limiter. Begin it before use. What does not say otherwise
// may be called from any goroutine, while its lock is not held.
type Gate struct {
	Options
	Base    time.Time // origin of the limiter's times; monotonic
	Closed  atomic.Bool
	Refused atomic.Int64 // tokens refused since the beginning
	// Waits counts waits by reason; see WaitLog for what needs the lock.
	Waits WaitLog

	off      bool // there is no limit
	changed  func(now int64)
	pool     Pool
	pausing  sync.Mutex // held while it is paused without a pool
	audience audience

	sync.Mutex        // the limiter's lock
	Pauses     Pauses // guarded by it
}

// Begin makes the present moment the origin of the limiter's times. off says that there is
// no limit. changed is called, with the lock, when the pauses have changed. sharer may be
// a Pool.
func (g *Gate) Begin(o Options, off bool, sharer any, changed func(now int64)) {
	g.Options, g.off, g.changed = o, off, changed
	g.pool, _ = sharer.(Pool)
	g.Base = g.Present()
}

// Now is the time since Base, in nanoseconds.
func (g *Gate) Now() int64 {
	if g.Clock == nil {
		return int64(time.Since(g.Base))
	}
	return int64(g.Clock.Now().Sub(g.Base))
}

// Present is the time on the limiter's clock.
func (g *Gate) Present() time.Time {
	if g.Clock == nil {
		return time.Now()
	}
	return g.Clock.Now()
}

// At is a time in nanoseconds since Base.
func (g *Gate) At(t time.Time) int64 { return int64(t.Sub(g.Base)) }

// AfterFunc calls f once d has passed on the limiter's clock.
func (g *Gate) AfterFunc(d time.Duration, f func()) limit.Timer {
	if g.Clock == nil {
		return time.AfterFunc(d, f)
	}
	return g.Clock.AfterFunc(d, f)
}

// chance returns a number from 0 up to 1: of the clock, if that has the method Float64, so that a
// simulation can be repeated.
func (g *Gate) chance() float64 {
	if c, ok := g.Clock.(interface{ Float64() float64 }); ok {
		return c.Float64()
	}
	return rand.Float64()
}

// Off tells whether there is no limit.
func (g *Gate) Off() bool { return g.off }

// Paused tells whether a pause holds the limiter at now. The lock is held.
func (g *Gate) Paused(now int64) bool { return g.Pauses.Holds(now) }

// PauseLeft is how long a pause holds the limiter yet; known is false when that is until
// somebody resumes. The lock is held.
func (g *Gate) PauseLeft(now int64) (d time.Duration, known bool) { return g.Pauses.Left(now) }

// Thawing returns how long the store's freeze of a lease goes on at now; 0: there is none.
func (g *Gate) Thawing(l limit.Lease, now int64) time.Duration {
	if l.Frozen.IsZero() {
		return 0
	}
	return max(time.Duration(g.At(l.Frozen)-now), 0)
}

// WaitStats returns what the limiter has counted of waits.
func (g *Gate) WaitStats() []WaitStats {
	if g.off {
		return nil
	}
	return g.Waits.List(g.Now())
}

// OnClosing calls ring once when the limiter is closed, at once when it is; stop ends that.
func (g *Gate) OnClosing(ring func()) (stop func()) { return g.audience.tell(ring) }

// closeTimeout bounds what Close does after the waiters have failed.
const closeTimeout = 5 * time.Second

// Close closes the gate: stop is called with the lock, to fail whoever waits, and then
// without it what OnClose added, for at most five seconds. Calling it again does nothing.
func (g *Gate) Close(stop func()) error {
	g.Lock()
	if g.Closed.Swap(true) {
		g.Unlock()
		return nil
	}
	stop()
	g.Unlock()
	g.audience.dismiss()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, f := range g.OnClose {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}
