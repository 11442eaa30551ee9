package throttle

import (
	"context"
	"time"
)

// Pause stops granting until a time, the zero Time being until Resume, for a reason of up to
// 128 bytes: on all processors of the pool, or on this limiter alone when it has no pool
// (no Sharer, or one that is no Pool). Of two pauses the one that ends later counts. It
// outlives every processor and ends by itself.
//
// This limiter has stopped before anybody else is told. Pause then waits for the receipts
// of the other processors, for at most 100 ms or what WaitForReceipts says, and returns
// who has sent one; one that has not stops at its next sync, or else loses its share at the end
// of its lease. One that is cut off from the store, hears no news and may go on without the
// store (consensus.Degrade, the default) goes on degraded instead, until it can ask again. ctx bounds
// the call; it does not end the pause.
//
// Errors: *PauseError; ErrClosed; an error when there is no limit; those of the pool's store, which
// then does not know the pause yet. This process has stopped even so, and so have those who
// have answered; it tells the store again with its next syncs.
func (t *Throttle) Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error) {
	return t.gate.Pause(ctx, until, reason, opts...)
}

// Resume ends a pause before its time, on all processors of the pool or on this limiter, as
// Pause does. The others go on at their next sync. Errors are those of Pause; that there is
// no pause is none.
func (t *Throttle) Resume(ctx context.Context, opts ...PauseOption) error {
	return t.gate.Resume(ctx, opts...)
}

// Pause stops granting; see Throttle.Pause. Calls under way go on.
func (f *InFlight) Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error) {
	return f.gate.Pause(ctx, until, reason, opts...)
}

// Resume ends a pause; see Throttle.Resume.
func (f *InFlight) Resume(ctx context.Context, opts ...PauseOption) error {
	return f.gate.Resume(ctx, opts...)
}

// Paused tells whether a draw for a tag is paused, and until when: by a pause of everything, of
// that tag, or of the limiter's own. Only the last of these and the first hold the limiter
// itself back: a caller that tells more tags apart than the limiter asks here.
func (t *Throttle) Paused(tag string) (Paused, bool) { return t.gate.PausedFor(tag) }

// Paused tells whether a draw for a tag is paused; see Throttle.Paused.
func (f *InFlight) Paused(tag string) (Paused, bool) { return f.gate.PausedFor(tag) }
