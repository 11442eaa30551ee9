package throttle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
)

// mostly is the part of a call's time above which its waits for tokens are what made
// it miss its deadline.
const mostly = 0.8

// Track returns a context for one call: from now on it is known how much of the
// call's time is spent on waiting for tokens, in any Acquire with this context or
// with one made from it, and on waits that ExternalWait was told of. What that is good for:
//
//   - An Acquire that the deadline ends fails with an error that is ErrThrottled, and
//     context.DeadlineExceeded too, only when more than 80 % of the time since Track
//     was spent waiting; else with the plain cause of the context, for
//     something else used up the time. Without Track the Acquire counts as the whole call.
//   - Blame says the same of a call that failed for its deadline after it had its tokens.
//
// Within a context that is tracked already, Track returns it as it is. Waits at the
// same time count once. The context may be used from any goroutine.
func Track(ctx context.Context) context.Context {
	if trackOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, trackKey{}, &track{began: time.Now()})
}

// Blame returns the error of a call that had a context of Track. If the deadline of
// ctx has passed, err is context.DeadlineExceeded, and more than 80 % of the time since
// Track was spent waiting for tokens, it is an *Error that names what was waited
// for last, is ErrThrottled, and has err as its cause; its RetryAfter is 0, for that wait is over.
// Otherwise it is err itself. So it is when err is nil, is an *Error already, or when ctx has no Track.
func Blame(ctx context.Context, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || !waitqueue.DeadlinePassed(ctx) || errors.Is(err, ErrThrottled) {
		return err
	}
	t := trackOf(ctx)
	if t == nil || !t.mostly(time.Now()) {
		return err
	}
	e := t.lastWait()
	e.Cause = err
	return e
}

type trackKey struct{}

// A track is the time that one call has spent waiting. The nil track does nothing.
type track struct {
	began time.Time

	mu      sync.Mutex
	waiting int       // waits under way
	since   time.Time // when the first of them began
	waited  time.Duration
	last    Error
}

// waitsFor tells the call's track that it waits for what e names, until over is called.
func waitsFor(ctx context.Context, e Error) (over func()) {
	t := trackOf(ctx)
	t.enter(time.Now(), e)
	return func() { t.leave(time.Now()) }
}

func trackOf(ctx context.Context) *track {
	t, _ := ctx.Value(trackKey{}).(*track)
	return t
}

// enter says that a wait has begun, and what for.
func (t *track) enter(now time.Time, e Error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == 0 {
		t.since = now
	}
	t.waiting++
	t.last = e
}

func (t *track) leave(now time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		t.waited += now.Sub(t.since)
	}
}

func (t *track) lastWait() *Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.last
	return &e
}

// mostly tells whether waiting has taken most of the call's time until now.
func (t *track) mostly(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waited := t.waited
	if t.waiting > 0 {
		waited += now.Sub(t.since)
	}
	return float64(waited) > mostly*float64(now.Sub(t.began))
}
