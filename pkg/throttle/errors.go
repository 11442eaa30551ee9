package throttle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Errors to compare with errors.Is. Every error of a Throttle that is not the
// context's own is an *Error and one of the first two, or ErrNegative.
var (
	// ErrThrottled: the tokens cannot be had in time. Error says why and when
	// to try again.
	ErrThrottled = errors.New("throttled")
	// ErrClosed: the limiter was closed; it grants nothing more.
	ErrClosed = limit.ErrClosed
	// ErrNegative: a cost is below zero. The error names it. It is no *Error: nothing was refused.
	ErrNegative = errors.New("the cost is below zero")
)

// negative is the error of a draw of n tokens that are less than none; nil for others.
func negative(n int) error {
	if n >= 0 {
		return nil
	}
	return fmt.Errorf("numathrottle: n is %d, allowed: 0 or more: %w", n, ErrNegative)
}

// Error is the one error type of this package. errors.Is tells ErrClosed for
// ReasonClosed and ErrThrottled for every other reason.
type Error struct {
	// Reason says why.
	Reason Reason
	// Limit names the limit; empty when it has no name.
	Limit string
	// Tag is the tag that was drawn for; empty for none.
	Tag string
	// Cost is the number of tokens asked for.
	Cost int
	// Largest is, with ReasonTooLarge, the most that one draw may cost: by the limit, and by the quotas of the tag. 0: not known.
	Largest int
	// LargestBy is the setting of a quota that Largest is from, such as quotas.other.total; empty: it is the limit.
	LargestBy string
	// RetryAfter is how long the tokens would have taken as things stand; 0 when
	// that is not known. A call that fits into the bucket can succeed at once after
	// it. A larger one collects its tokens while it waits, and needs a deadline that
	// is later than this.
	RetryAfter time.Duration
	// Frozen is how long the store's freeze goes on yet, in which nobody is granted anything, whatever the Reason;
	// 0 when there is none, or while a share is in force in spite of it. RetryAfter, where it is known, counts
	// from now and not from the end of the freeze: it is the wait for a place in the queue, with the freeze in it.
	Frozen time.Duration
	// Fallback says that a budget of the tag is spent whose messages go to the fallback sink then; see Budget.Then.
	Fallback bool
	// Cause is the underlying error; nil for none.
	Cause error

	by Limiter // see By
}

// By returns the limiter of this package that refused, a *Throttle or an *InFlight: of an All the one that Limit names. Where it was
// the quota of a tag it is what ForTag returns for that, of which Status tells with the rate of the quota.
// It is for what that tells of itself, such as Throttle.Status, as things stand by then. nil when it is not known.
func (e *Error) By() Limiter { return e.by }

// Error says in one line what was asked, why it was refused and when to retry.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("numathrottle")
	if e.Limit != "" {
		fmt.Fprintf(&b, ": limit %q", e.Limit)
	}
	if e.Tag != "" {
		fmt.Fprintf(&b, ": tag %q", e.Tag)
	}
	switch e.Reason {
	case ReasonClosed:
		b.WriteString(": closed")
	case ReasonTooLarge:
		fmt.Fprintf(&b, ": a cost of %d can never be granted", e.Cost)
		if e.Largest > 0 {
			fmt.Fprintf(&b, ", allowed: at most %d", e.Largest)
			if e.LargestBy != "" {
				fmt.Fprintf(&b, " (%s)", e.LargestBy)
			}
		}
	default:
		fmt.Fprintf(&b, ": %d tokens cannot be had in time (%s)", e.Cost, e.Reason)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, ", retry after %s", e.RetryAfter)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Is makes errors.Is tell ErrThrottled or ErrClosed.
func (e *Error) Is(target error) bool {
	if e.Reason == ReasonClosed {
		return target == ErrClosed
	}
	return target == ErrThrottled
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
