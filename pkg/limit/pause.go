package limit

import (
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
)

// A Paused is a pause: an order to grant nothing, given when the called service should be left alone.
type Paused struct {
	// Tag is the paused tag: a tenant, model or destination inside the limit. Empty means everything.
	Tag string
	// Until is when the pause ends, in local time. The zero Time means until it is resumed.
	Until time.Time
	// Reason is the reason that was given for the pause.
	Reason string
	// By says who paused: a person, or the ID of a processor. Empty means unknown.
	By string
}

// PauseReceipts is the outcome of a pause.
type PauseReceipts struct {
	// Generation is the generation of the pause in force now: it counts the changes of the pool's pauses. 0 without a pool, and until the
	// store has recorded the pause.
	Generation uint64
	// Until is when the pause in force now ends, possibly later than requested. The zero Time means until it is resumed.
	Until time.Time
	// Answered lists the IDs of the live processors that have stopped, including this one, and Missing the IDs of those that have not
	// confirmed it yet. Both are sorted, and empty without a pool.
	Answered, Missing []string
}

// A PauseOption sets one parameter of a call of Pause or Resume.
type PauseOption func(*bounds.PauseSettings)

// PauseTag restricts the call to one tag, of up to 64 bytes. Without it, Pause stops everything, and Resume ends a pause of everything;
// pauses of single tags go on.
func PauseTag(tag string) PauseOption { return func(s *bounds.PauseSettings) { s.Tag = tag } }

// WaitForReceipts sets how long Pause waits for the other processors to confirm that they have stopped: 0 (no wait) to a minute. Defaults
// to 100 ms.
func WaitForReceipts(d time.Duration) PauseOption {
	return func(s *bounds.PauseSettings) { s.Wait = d }
}

// A PauseError is the error for an invalid pause. It names the field, its value and the allowed values.
type PauseError struct{ Field, Value, Allowed string }

// Error returns the message.
func (e *PauseError) Error() string {
	return fmt.Sprintf("throttle: %s of the pause is %s, allowed: %s", e.Field, e.Value, e.Allowed)
}

// Check returns a *PauseError for the first field that is invalid at now, or nil.
func (p *Paused) Check(now time.Time) error {
	if !bounds.PauseText(p.Tag, bounds.MaxPauseTag) {
		return &PauseError{"tag", fmt.Sprintf("%.40q", p.Tag), fmt.Sprint("up to ", bounds.MaxPauseTag, " bytes of text without control characters")}
	}
	if !bounds.PauseText(p.Reason, bounds.MaxPauseReason) {
		return &PauseError{"reason", fmt.Sprintf("%.40q", p.Reason), fmt.Sprint("up to ", bounds.MaxPauseReason, " bytes of text without control characters")}
	}
	if !bounds.PauseText(p.By, bounds.MaxPauseBy) {
		return &PauseError{"author", fmt.Sprintf("%.40q", p.By), fmt.Sprint("up to ", bounds.MaxPauseBy, " bytes of text without control characters")}
	}
	if left := p.Until.Sub(now); !p.Until.IsZero() && (left <= 0 || left > bounds.MaxPause) {
		return &PauseError{"end", "in " + left.String(), "the zero Time (until Resume), or within " + bounds.MaxPause.String() + " from now"}
	}
	return nil
}
