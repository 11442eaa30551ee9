package throttle

import (
	"context"
	"time"
)

// Pause stops granting until a time, for a reason of up to 128 bytes. The zero Time means until Resume. It applies to all processors of the
// pool, or to this limiter alone if it has no pool (no Sharer, or one that is no Pool). Of two pauses, the one that ends later counts. A
// pause survives every processor and ends by itself.
//
// This limiter stops before any other is notified. Pause then waits for the receipts of the other processors, for at most 100 ms or the
// time of [WaitForReceipts], and returns the senders. The others stop at their next sync, or else lose their share at the end of their lease.
// If a processor is cut off from the store and receives no news, it may go on degraded until it can ask again (consensus.Degrade, the
// default). The context bounds the call; it does not end the pause.
//
// Errors: *PauseError; [ErrClosed]; an error if there is no limit; those of the pool's store, which then does not know the pause yet. Even
// so, this process and those that answered have stopped. It tells the store again with its next syncs.
func (t *Throttle) Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error) {
	return t.gate.Pause(ctx, until, reason, opts...)
}

// Resume ends a pause early, on all processors of the pool or on this limiter, as Pause does. The others go on at their next sync. Errors
// are those of Pause; a missing pause is no error.
func (t *Throttle) Resume(ctx context.Context, opts ...PauseOption) error {
	return t.gate.Resume(ctx, opts...)
}

// Pause stops granting; see [Throttle.Pause]. Calls under way go on.
func (f *InFlight) Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error) {
	return f.gate.Pause(ctx, until, reason, opts...)
}

// Resume ends a pause; see [Throttle.Resume].
func (f *InFlight) Resume(ctx context.Context, opts ...PauseOption) error {
	return f.gate.Resume(ctx, opts...)
}

// Paused reports whether a draw for a tag is paused, and until when: by a pause of everything, of that tag, or of the limiter's own. Only
// the last and the first of these hold the limiter itself back. A caller that distinguishes more tags than the limiter asks here.
func (t *Throttle) Paused(tag string) (Paused, bool) { return t.gate.PausedFor(tag) }

// Paused reports whether a draw for a tag is paused; see [Throttle.Paused].
func (f *InFlight) Paused(tag string) (Paused, bool) { return f.gate.PausedFor(tag) }
