package throttle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Paused is a pause: an order to grant nothing, by whoever knows that the called
// service wants to be left alone.
type Paused struct {
	// Tag is what is paused: a tenant, model or destination inside the limit. Empty:
	// everything.
	Tag string
	// Until is when it ends, in local time; the zero Time: when it is resumed.
	Until time.Time
	// Reason is what whoever paused gave as the reason.
	Reason string
}

// A Pauser is a Sharer that can pause all processors of its pool. *consensus.Member is one.
type Pauser interface {
	Sharer
	// Pause and Resume are as those of Throttle.
	Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error)
	Resume(ctx context.Context, opts ...PauseOption) error
}

// A PauseHolder is a Holder that can be paused. *Throttle and *InFlight are.
type PauseHolder interface {
	Holder
	// SetPauses puts pauses in force in place of those before, at most one for each tag.
	// When it returns, nothing is granted any more that is paused. It is called by the
	// sharer, as Lease is.
	SetPauses(pauses []Paused)
}

// PauseReceipts is what has become of a pause.
type PauseReceipts struct {
	// Generation counts the changes of the pool's pauses: that of the pause that is in
	// force now. 0 without a pool, and while the store has not recorded it.
	Generation uint64
	// Until is when the pause ends that is in force now, which may be later than asked
	// for; the zero Time: when it is resumed.
	Until time.Time
	// Answered are the IDs of the live processors that have stopped, this one included,
	// and Missing those that have not said so yet: each in rising order. Both are empty
	// without a pool.
	Answered, Missing []string
}

// DefaultReceiptWait is how long Pause waits for receipts unless it is told otherwise.
const DefaultReceiptWait = 100 * time.Millisecond

// PauseSettings is what PauseOptions come to, for other implementations of Pauser.
type PauseSettings struct {
	Tag   string
	Wait  time.Duration
	Since uint64
}

// A PauseOption sets one thing of a call of Pause or Resume.
type PauseOption func(*PauseSettings)

// PauseTag restricts the call to one tag, of up to 64 bytes. Without it, Pause stops
// everything, and Resume ends a pause of everything: pauses of single tags go on.
func PauseTag(tag string) PauseOption { return func(s *PauseSettings) { s.Tag = tag } }

// WaitForReceipts sets how long Pause waits for the other processors to say that they
// have stopped: 0, which is not at all, to a minute. Defaults to DefaultReceiptWait.
func WaitForReceipts(d time.Duration) PauseOption { return func(s *PauseSettings) { s.Wait = d } }

// PauseSince says of which generation (PauseReceipts.Generation) the news is that Pause
// acts on: such as a refusal of a call that was sent while that one was in force. If
// somebody has resumed since, the news is late and Pause changes nothing.
func PauseSince(generation uint64) PauseOption {
	return func(s *PauseSettings) { s.Since = generation }
}

// NewPauseSettings returns what options come to.
func NewPauseSettings(opts ...PauseOption) PauseSettings {
	s := PauseSettings{Wait: DefaultReceiptWait}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// Bounds of a pause.
const (
	maxPauseTag    = 64
	maxPauseReason = 128
	// MaxPause is the longest pause with an end that is known.
	MaxPause = 366 * 24 * time.Hour
	// MaxPausedTags is how many tags a pool can have paused at a time, the empty one
	// included.
	MaxPausedTags = 16
)

// A PauseError is the error for a pause that no limiter accepts. It names the field, its
// value and what is allowed.
type PauseError struct{ Field, Value, Allowed string }

// Error returns the message.
func (e *PauseError) Error() string {
	return fmt.Sprintf("throttle: %s of the pause is %s, allowed: %s", e.Field, e.Value, e.Allowed)
}

// Check returns a *PauseError for the first field that is not allowed, or nil.
func (s *PauseSettings) Check() error {
	if !isPauseText(s.Tag, maxPauseTag) {
		return &PauseError{"tag", fmt.Sprintf("%.40q", s.Tag), fmt.Sprint("up to ", maxPauseTag, " bytes of text without control characters")}
	}
	if s.Wait < 0 || s.Wait > time.Minute {
		return &PauseError{"wait for receipts", s.Wait.String(), "0 to 1m"}
	}
	return nil
}

// Check returns a *PauseError for the first field that no pause can have at now, or nil.
func (p *Paused) Check(now time.Time) error {
	if err := (&PauseSettings{Tag: p.Tag}).Check(); err != nil {
		return err
	}
	if !isPauseText(p.Reason, maxPauseReason) {
		return &PauseError{"reason", fmt.Sprintf("%.40q", p.Reason), fmt.Sprint("up to ", maxPauseReason, " bytes of text without control characters")}
	}
	if left := p.Until.Sub(now); !p.Until.IsZero() && (left <= 0 || left > MaxPause) {
		return &PauseError{"end", "in " + left.String(), "the zero Time (until Resume), or within " + MaxPause.String() + " from now"}
	}
	return nil
}

func isPauseText(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !slices.ContainsFunc([]rune(s), unicode.IsControl)
}

// errNoLimit is the error for pausing what never refuses anything.
var errNoLimit = errors.New("throttle: there is no limit that could be paused")

// Pause stops granting until a time, the zero Time being until Resume, for a reason of up to
// 128 bytes: on all processors of the pool, or on this limiter alone when it has no pool
// (no Sharer, or one that is no Pauser). Of two pauses the one that ends later counts. It
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
	if t.limit.Max == 0 {
		return PauseReceipts{}, errNoLimit
	}
	if t.closed.Load() {
		return PauseReceipts{}, ErrClosed
	}
	if s, ok := t.sharer.(Pauser); ok {
		return s.Pause(ctx, until, reason, opts...)
	}
	return pauseAlone(t, Paused{Until: until, Reason: reason}, opts)
}

// Resume ends a pause before its time, on all processors of the pool or on this limiter, as
// Pause does. The others go on at their next sync. Errors are those of Pause; that there is
// no pause is none.
func (t *Throttle) Resume(ctx context.Context, opts ...PauseOption) error {
	if t.limit.Max == 0 {
		return errNoLimit
	}
	if t.closed.Load() {
		return ErrClosed
	}
	if s, ok := t.sharer.(Pauser); ok {
		return s.Resume(ctx, opts...)
	}
	return resumeAlone(t, opts)
}

// Pause stops granting; see Throttle.Pause. Calls under way go on.
func (f *InFlight) Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error) {
	if f.max == 0 {
		return PauseReceipts{}, errNoLimit
	}
	if f.closed.Load() {
		return PauseReceipts{}, ErrClosed
	}
	if s, ok := f.sharer.(Pauser); ok {
		return s.Pause(ctx, until, reason, opts...)
	}
	return pauseAlone(f, Paused{Until: until, Reason: reason}, opts)
}

// Resume ends a pause; see Throttle.Resume.
func (f *InFlight) Resume(ctx context.Context, opts ...PauseOption) error {
	if f.max == 0 {
		return errNoLimit
	}
	if f.closed.Load() {
		return ErrClosed
	}
	if s, ok := f.sharer.(Pauser); ok {
		return s.Resume(ctx, opts...)
	}
	return resumeAlone(f, opts)
}
