package limit

import (
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
	// By says who paused: a person, or the ID of a processor; empty: that is not known.
	By string
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
	MaxPauseTag    = 64
	MaxPauseReason = 128
	MaxPauseBy     = 64
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
	if !pauseText(s.Tag, MaxPauseTag) {
		return &PauseError{"tag", fmt.Sprintf("%.40q", s.Tag), fmt.Sprint("up to ", MaxPauseTag, " bytes of text without control characters")}
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
	if !pauseText(p.Reason, MaxPauseReason) {
		return &PauseError{"reason", fmt.Sprintf("%.40q", p.Reason), fmt.Sprint("up to ", MaxPauseReason, " bytes of text without control characters")}
	}
	if !pauseText(p.By, MaxPauseBy) {
		return &PauseError{"author", fmt.Sprintf("%.40q", p.By), fmt.Sprint("up to ", MaxPauseBy, " bytes of text without control characters")}
	}
	if left := p.Until.Sub(now); !p.Until.IsZero() && (left <= 0 || left > MaxPause) {
		return &PauseError{"end", "in " + left.String(), "the zero Time (until Resume), or within " + MaxPause.String() + " from now"}
	}
	return nil
}

func pauseText(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !slices.ContainsFunc([]rune(s), unicode.IsControl)
}
