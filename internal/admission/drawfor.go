package admission

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// DrawFor draws n tokens from l, or with upTo at least one of them, and waits at most for wait; 0 means no wait. Tokens at hand are drawn
// even if the time is over before the limiter is asked, as on a busy machine. Errors are those of Acquire: *throttle.Error with the reason
// and the time until there are tokens, or that of ctx if the caller has gone. It may be called from any goroutine.
func DrawFor(ctx context.Context, l throttle.Limiter, n int, upTo bool, wait time.Duration) (throttle.Permit, error) {
	b := &bounded{Context: ctx, deadline: time.Now().Add(wait)}
	if own, ok := ctx.Deadline(); ok && own.Before(b.deadline) {
		b.deadline = own
	}
	defer b.stop()
	if upTo {
		return l.AcquireUpTo(b, n)
	}
	return l.Acquire(b, n)
}
