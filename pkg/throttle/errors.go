package throttle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// Errors to compare with errors.Is. Every error of a Throttle is the context's own, ErrNegative, or an *Error that is one of the first two.
var (
	// ErrThrottled: the tokens are not available in time. Error says why and when to retry.
	ErrThrottled = errors.New("throttled")
	// ErrClosed: the limiter was closed; it grants nothing more.
	ErrClosed = sharing.ErrClosed
	// ErrNegative: a cost is below zero. The error names it. It is not an *Error: nothing was refused.
	ErrNegative = errors.New("the cost is below zero")
)

// negative returns an error if n is below zero, or nil.
func negative(n int) error {
	if n >= 0 {
		return nil
	}
	return fmt.Errorf("numathrottle: n is %d, allowed: 0 or more: %w", n, ErrNegative)
}

// Error is the one error type of this package. errors.Is matches [ErrClosed] for [ReasonClosed], and [ErrThrottled] for every other reason.
type Error struct {
	// Reason says why.
	Reason Reason
	// Limit names the limit; empty when it has no name.
	Limit string
	// Tag is the tag of the draw; empty for none.
	Tag string
	// Cost is the number of tokens asked for.
	Cost int
	// Largest, with ReasonTooLarge, is the most that one draw may cost by the limit and the tag's quotas. 0: not known.
	Largest int
	// LargestBy is the quota setting that Largest is from, such as quotas.other.total; empty: the limit.
	LargestBy string
	// RetryAfter is how long the tokens would have taken as things stand; 0: not known. A call that fits into the bucket can succeed right
	// after it. A larger one collects its tokens while it waits, and needs a later deadline.
	RetryAfter time.Duration
	// Frozen is the rest of the store's freeze, in which nobody is granted anything, whatever the Reason. It is 0 without a freeze, or
	// while a share is in force in spite of it. RetryAfter, if known, counts from now and not from the end of the freeze: it is the wait
	// for a place in the queue, freeze included.
	Frozen time.Duration
	// Fallback says that a budget of the tag is spent, and that messages then go to the fallback sink; see Budget.Then.
	Fallback bool
	// Cause is the underlying error; nil for none.
	Cause error

	by Limiter // see By
}

// By returns the limiter of this package that refused, a *Throttle or an *InFlight; for an All, the one that Limit names. If the quota of a
// tag refused, it is the result of ForTag, and its Status includes the rate of the quota. Use it for the limiter's current state, such as
// [Throttle.Status]. It is nil if not known.
func (e *Error) By() Limiter { return e.by }

// Error returns one line with the request, the reason for the refusal and when to retry.
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

// Is makes errors.Is match [ErrThrottled] or [ErrClosed].
func (e *Error) Is(target error) bool {
	if e.Reason == ReasonClosed {
		return target == ErrClosed
	}
	return target == ErrThrottled
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
