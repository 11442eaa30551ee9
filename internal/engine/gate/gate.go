package gate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Clock replaces the machine's clock.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) sharing.Timer
}

// A Scheduler is a Clock of a world in which only one caller runs at a time, and in which callers wait without the Go scheduler.
type Scheduler interface {
	Clock
	// Caller returns a function that wakes the caller that runs now, when it waits. It may be called at any time, and more than once.
	Caller() (wake func())
	// Park stops the caller that runs now until it is woken, or ctx has ended. It may return earlier.
	Park(ctx context.Context)
}

// Options are the common settings of limiters.
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

// A Gate is the common part of a limiter. Begin it before use. Unless they say otherwise, methods may be called from any goroutine, while
// its lock is not held.
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

// Begin makes the present moment the origin of the limiter's times. The flag off says that there is no limit. It calls changed, with the
// lock, when the pauses have changed. The sharer may be a Pool.
func (g *Gate) Begin(o Options, off bool, sharer any, changed func(now int64)) {
	g.Options, g.off, g.changed = o, off, changed
	g.pool, _ = sharer.(Pool)
	g.Base = g.Present()
}

// Now returns the time since Base, in nanoseconds.
func (g *Gate) Now() int64 {
	if g.Clock == nil {
		return int64(time.Since(g.Base))
	}
	return int64(g.Clock.Now().Sub(g.Base))
}

// Present returns the time on the limiter's clock.
func (g *Gate) Present() time.Time {
	if g.Clock == nil {
		return time.Now()
	}
	return g.Clock.Now()
}

// At returns a time in nanoseconds since Base.
func (g *Gate) At(t time.Time) int64 { return int64(t.Sub(g.Base)) }

// AfterFunc calls f once d has passed on the limiter's clock.
func (g *Gate) AfterFunc(d time.Duration, f func()) sharing.Timer {
	if g.Clock == nil {
		return time.AfterFunc(d, f)
	}
	return g.Clock.AfterFunc(d, f)
}

// Await waits until ready can be received from, or is closed, and reports that; false: ctx has ended before.
func (g *Gate) Await(ctx context.Context, ready <-chan struct{}) bool {
	if s, ok := g.Clock.(Scheduler); ok {
		for ctx.Err() == nil {
			select {
			case <-ready:
				return true
			default:
				s.Park(ctx)
			}
		}
		return false
	}
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// Waker returns a function to call whenever the channel of Await was signalled for the caller that runs now; nil: there is no need.
func (g *Gate) Waker() (wake func()) {
	if s, ok := g.Clock.(Scheduler); ok {
		return s.Caller()
	}
	return nil
}

// chance returns a number from 0 up to 1. If the clock has the method Float64 the number is the clock's, so that a simulation can be
// repeated.
func (g *Gate) chance() float64 {
	if c, ok := g.Clock.(interface{ Float64() float64 }); ok {
		return c.Float64()
	}
	return rand.Float64()
}

// Off reports whether there is no limit.
func (g *Gate) Off() bool { return g.off }

// Paused reports whether a pause holds the limiter at now. The lock is held.
func (g *Gate) Paused(now int64) bool { return g.Pauses.Holds(now) }

// PauseLeft returns how long a pause still holds the limiter; known is false if it lasts until a resume. The lock is held.
func (g *Gate) PauseLeft(now int64) (d time.Duration, known bool) { return g.Pauses.Left(now) }

// Thawing returns the rest of a lease's store freeze at now; 0: there is none.
func (g *Gate) Thawing(l limit.Lease, now int64) time.Duration {
	if l.Frozen.IsZero() {
		return 0
	}
	return max(time.Duration(g.At(l.Frozen)-now), 0)
}

// WaitStats returns the limiter's statistics of waits.
func (g *Gate) WaitStats() []WaitStats {
	if g.off {
		return nil
	}
	return g.Waits.List(g.Now())
}

// OnClosing calls ring once when the limiter is closed, at once if it is already; stop ends that.
func (g *Gate) OnClosing(ring func()) (stop func()) { return g.audience.tell(ring) }

// closeTimeout bounds the OnClose functions, which Close runs after the waiters have failed.
const closeTimeout = 5 * time.Second

// Close closes the gate. It calls stop with the lock, to fail the waiting callers. Then, without the lock, it runs the OnClose functions
// for at most five seconds. Calling it again does nothing.
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

// IsClosed reports whether the limiter is closed.
func (g *Gate) IsClosed() bool { return g.Closed.Load() }
