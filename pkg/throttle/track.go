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

// trackIn is hook.Track.
func trackIn(ctx context.Context) context.Context {
	if trackOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, trackKey{}, &track{began: time.Now()})
}

// blame is hook.Blame.
func blame(ctx context.Context, err error) error {
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
