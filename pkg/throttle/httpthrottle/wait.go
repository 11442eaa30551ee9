package httpthrottle

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// errElapsed is the cause when a call has no time left for another attempt, though its
// context may have.
var errElapsed = fmt.Errorf("httpthrottle: no time is left for another attempt (WithMaxElapsed): %w", context.DeadlineExceeded)

// tracked is hook.Track for a call that can miss a deadline; others do without its cost.
func tracked(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); !ok {
		return ctx
	}
	return hook.Track(ctx)
}

// admit waits for the end of a pause and for the tokens of one attempt, which is the first or comes again.
func (c *call) admit(again bool) (throttle.Permit, error) {
	ctx := c.ctx
	if again {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, c.began.Add(c.maxElapsed), errElapsed)
		defer cancel()
	}
	for {
		if err := c.awaitPause(ctx); err != nil {
			return throttle.Permit{}, err
		}
		permit, err := c.acquire(ctx)
		if err != nil {
			return throttle.Permit{}, err
		}
		if c.ctx.Err() != nil {
			permit.Cancel()
			return throttle.Permit{}, context.Cause(c.ctx)
		}
		if c.pauser == nil || c.judging.of(c.name) == nil && c.pauser.Paused(c.name) <= 0 {
			return permit, nil
		}
		permit.Cancel() // a pause began while the call waited
	}
}

func (c *call) acquire(ctx context.Context) (throttle.Permit, error) {
	l := c.source()
	if l == nil {
		return throttle.Permit{}, nil
	}
	return l.Acquire(ctx, c.cost)
}

// source returns the limiter that the call draws from; nil: unlimited.
func (c *call) source() throttle.Limiter {
	if tags, ok := c.limiter.(throttle.Tagger); ok && c.tag != "" {
		return tags.ForTag(c.tag)
	}
	return c.limiter
}

// awaitPause waits until calls with the tag are not held back any more.
func (c *call) awaitPause(ctx context.Context) (err error) {
	if c.pauser == nil {
		return nil
	}
	var over func(error) // nil: it has not waited
	defer func() {
		if over != nil {
			over(err)
		}
	}()
	for {
		if judged := c.judging.of(c.name); judged != nil {
			if over == nil {
				over = hook.ExternalWait(ctx, c.source(), c.name, c.cost)
			}
			if err := await(ctx, judged); err != nil {
				return err
			}
			continue
		}
		d := c.pauser.Paused(c.name)
		if d <= 0 {
			return nil
		}
		wait, fits := late(d, spread(d), left(ctx))
		if d > c.maxWait || !fits {
			return hook.Refuse(c.source(), throttle.Error{Reason: throttle.ReasonPause, Tag: c.name, Cost: c.cost, RetryAfter: d})
		}
		if over == nil {
			over = hook.ExternalWait(ctx, c.source(), c.name, c.cost)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits for the next attempt. A wait that the service asks for shows at the limiter; a wait after a failure has nothing to do with
// limits.
func (c *call) rest(o outcome) error {
	over := func(error) {}
	if o.refused {
		over = hook.ExternalWait(c.ctx, c.source(), c.name, c.cost)
	}
	err := sleep(c.ctx, o.wait)
	over(err)
	return err
}

// sleep waits for d, by the monotonic clock, or returns the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	return await(ctx, timer.C)
}

// await waits for something, or returns the cause of ctx.
func await[T any](ctx context.Context, over <-chan T) error {
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
