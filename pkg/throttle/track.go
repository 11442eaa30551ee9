package throttle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
)

// mostly is the part of a call's time above which its waits for tokens count as the cause of a missed deadline.
const mostly = 0.8

// Track returns a context for one call. It records from now on how much of the call's time is spent waiting for tokens. These are the waits
// in any Acquire with this context or with one made from it, and those reported to ExternalWait. The record has two uses:
//
//   - An Acquire that the deadline ends fails with an error that is ErrThrottled, and context.DeadlineExceeded too, only when more than
//     80 % of the time since Track was spent waiting. Otherwise it fails with the plain cause of the context, for something else used up
//     the time. Without Track the Acquire counts as the whole call.
//   - Blame says the same of a call that failed for its deadline after it had its tokens.
//
// A context that is already tracked is returned as it is. Waits at the same time count once. The context may be used from any goroutine.
func Track(ctx context.Context) context.Context {
	if trackOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, trackKey{}, &track{began: time.Now()})
}

// Blame returns the error of a call that had a context of Track. It replaces err if the deadline of ctx has passed, err is
// context.DeadlineExceeded, and more than 80 % of the time since Track was spent waiting for tokens. The new error is an *Error that names
// the last wait, is ErrThrottled, and has err as its cause; its RetryAfter is 0, for that wait is over. Otherwise it is err itself, also
// when err is nil or an *Error already, or when ctx has no Track.
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

// waitsFor records in the call's track that it waits for the limit that e names, until over is called.
func waitsFor(ctx context.Context, e Error) (over func()) {
	t := trackOf(ctx)
	t.enter(time.Now(), e)
	return func() { t.leave(time.Now()) }
}

func trackOf(ctx context.Context) *track {
	t, _ := ctx.Value(trackKey{}).(*track)
	return t
}

// enter records that a wait has begun, described by e.
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

// mostly reports whether waiting has taken most of the call's time until now.
func (t *track) mostly(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waited := t.waited
	if t.waiting > 0 {
		waited += now.Sub(t.since)
	}
	return float64(waited) > mostly*float64(now.Sub(t.began))
}
