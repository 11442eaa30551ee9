package throttletest

import (
	"context"
	"math"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Step says what a Limiter does with one call. The zero Step refuses with
// [throttle.ErrThrottled].
type Step struct {
	grants bool
	most   int             // for AcquireUpTo
	block  <-chan struct{} // wait for it before granting
	waits  bool
	err    error
}

// Grant grants the requested tokens at once, even if the context has ended.
func Grant() Step { return Step{grants: true, most: math.MaxInt} }

// GrantUpTo is Grant, except that [AcquireUpTo] gets at most n tokens, at least 1.
func GrantUpTo(n int) Step { return Step{grants: true, most: max(n, 1)} }

// Deny refuses at once with err. A nil err stands for a *throttle.Error with
// [throttle.ReasonLimit] and the cost of the call.
func Deny(err error) Step { return Step{err: err} }

// Block waits until the context ends, or the Limiter is closed, and grants
// nothing.
func Block() Step { return Step{waits: true} }

// GrantOn waits until it can receive from ch, then grants. As the last step it lets one caller pass for each value sent to ch; closing ch
// lets all pass.
func GrantOn(ch <-chan struct{}) Step {
	return Step{grants: true, most: math.MaxInt, waits: true, block: ch}
}

func (s Step) refusal(n int) error {
	if s.err != nil {
		return s.err
	}
	return &throttle.Error{Reason: throttle.ReasonLimit, Cost: n}
}

func (l *Limiter) wait(ctx context.Context, s Step, n int) error {
	if err := l.closedError(n); err != nil {
		return err
	}
	if s.waits {
		select {
		case <-s.block: // never, for Block
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.closed:
			return l.closedError(n)
		}
	}
	if !s.grants {
		return s.refusal(n)
	}
	return nil
}

func (l *Limiter) tryNow(s Step, n int) error {
	if err := l.closedError(n); err != nil {
		return err
	}
	if s.waits {
		select {
		case <-s.block:
		default:
			return s.refusal(n)
		}
	}
	if !s.grants {
		return s.refusal(n)
	}
	return nil
}

func (l *Limiter) closedError(n int) error {
	select {
	case <-l.closed:
		return &throttle.Error{Reason: throttle.ReasonClosed, Cost: n}
	default:
		return nil
	}
}
