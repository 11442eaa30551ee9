package admission

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Gate admits messages one by one. Its methods may be called from any number of
// goroutines at once; its fields are not changed once it is in use.
type Gate struct {
	// Limiter that the tokens are drawn from; not nil.
	Limiter throttle.Limiter
	// MaxWait bounds the wait of a message. 0: it ends with the tokens or with the
	// context. Time in which the pool is frozen does not count: a wait that would end
	// in a freeze begins anew when the freeze ends. One that is known to be longer even
	// so is denied at once, and none takes longer than the freeze and MaxWait.
	MaxWait time.Duration
	// Budget is that of the batches whose messages it admits, for the turns of those that are nacked; see Batch. 0: none.
	Budget time.Duration
	// Log takes how many messages are nacked, once a minute; nil: slog.Default().
	Log *slog.Logger

	line     line
	nacked   nacked
	exempt   exempt
	tooLarge every // costs that can never be granted
	watch    watch // tells when the platform idles between batches
}

// Admit waits until cost tokens are granted for the tag, and returns the permit. A
// cost of zero or less is free: it asks nobody, never waits, and the permit is the
// zero Permit. The empty tag means the limit itself, as does every tag for a
// limiter that is no throttle.Tagger.
//
// Errors:
//   - *Denied when MaxWait has passed, or at once when it is known to be too short; without a MaxWait only when the cost
//     can never be granted (throttle.ReasonTooLarge), which is a denial at once in any case, and logged.
//   - The cause of ctx when it ended, also when the tokens came at the same time:
//     then they were given back. A limiter may tell of a deadline of ctx in its own
//     words (*throttle.Error), and ahead of time. A deadline of ctx that comes
//     before MaxWait has passed is not a denial.
//   - What else the limiter says: it was closed (throttle.ErrClosed).
func (g *Gate) Admit(ctx context.Context, tag string, cost int) (throttle.Permit, error) {
	if cost > 0 {
		defer g.watch.leave(g.watch.enter())
	}
	switch {
	case cost <= 0:
		return throttle.Permit{}, nil
	case g.MaxWait <= 0:
		return g.admit(ctx, ctx, tag, cost)
	default:
		return g.admitBy(ctx, tag, cost, time.Now().Add(g.MaxWait), func(thaw time.Time) time.Time { return thaw.Add(g.MaxWait) })
	}
}

// sameThaw is by how much two estimates of the end of one freeze may differ.
const sameThaw = 100 * time.Millisecond

// admitBy admits a message until a time. A time that has come still lets it have
// the tokens that are at hand. Where the limiter says that the pool is frozen, the wait
// goes on until the time that anew returns for the end of the freeze, unless it is known
// to be longer than that.
func (g *Gate) admitBy(ctx context.Context, tag string, cost int, until time.Time, anew func(thaw time.Time) time.Time) (throttle.Permit, error) {
	for thaw := (time.Time{}); ; {
		permit, err := g.admitOnce(ctx, tag, cost, until)
		denied, ok := errors.AsType[*Denied](err)
		if !ok || denied.Err.Frozen <= 0 {
			return permit, err
		}
		now := time.Now()
		end := now.Add(denied.Err.Frozen)
		if now.Before(until) && end.Sub(thaw) < sameThaw {
			return permit, err // refused ahead of time, with this freeze in mind
		}
		thaw, until = end, anew(end)
		if now.Add(denied.Err.RetryAfter).After(until) {
			return permit, err
		}
	}
}

func (g *Gate) admitOnce(ctx context.Context, tag string, cost int, until time.Time) (throttle.Permit, error) {
	if theirs, ok := ctx.Deadline(); ok && !until.Before(theirs) {
		return g.admit(ctx, ctx, tag, cost) // nobody chose an answer for a deadline of theirs
	}
	wait := &bounded{Context: ctx, deadline: until}
	defer wait.stop()
	permit, err := g.admit(ctx, wait, tag, cost)
	switch {
	case err == nil:
		return permit, nil
	case ctx.Err() != nil:
		return permit, context.Cause(ctx)
	case late(wait, err):
		return permit, &Denied{Err: asError(err, tag, cost), By: g, Tag: tag}
	default:
		return permit, err
	}
}

// admit draws with the context wait, and gives back what came after ctx, which wait
// descends from, has ended. What can never be granted is denied.
func (g *Gate) admit(ctx, wait context.Context, tag string, cost int) (throttle.Permit, error) {
	permit, err := g.limiter(tag).Acquire(wait, cost)
	if err != nil {
		return throttle.Permit{}, g.deniedIfTooLarge(err, tag)
	}
	if ctx.Err() != nil {
		permit.Cancel()
		return throttle.Permit{}, context.Cause(ctx)
	}
	return permit, nil
}

// deniedIfTooLarge makes a denial of an error that says that a cost can never be granted. It is not inlined: callers wait in the frame of admit.
//
//go:noinline
func (g *Gate) deniedIfTooLarge(err error, tag string) error {
	e, ok := errors.AsType[*throttle.Error](err)
	if !ok || e.Reason != throttle.ReasonTooLarge {
		return err
	}
	if n, due := g.tooLarge.add(1); due {
		g.logger().Error("messages denied: their cost can never be granted; told once a minute at most", "messages", n, "cause", err)
	}
	return &Denied{Err: e, Tag: tag}
}

// limiter returns what the tokens for a tag are drawn from.
func (g *Gate) limiter(tag string) throttle.Limiter {
	if tag == "" {
		return g.Limiter
	}
	if t, ok := g.Limiter.(throttle.Tagger); ok {
		return t.ForTag(tag)
	}
	return g.Limiter
}

// late tells whether a draw failed because its tokens do not come before the
// deadline of wait.
func late(wait context.Context, err error) bool {
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		return !e.Reason.Final()
	}
	return wait.Err() != nil || errors.Is(err, throttle.ErrThrottled)
}

// asError returns the limiter's own error, or one of the same meaning for a limiter
// that has none.
func asError(err error, tag string, cost int) *throttle.Error {
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		return e
	}
	return &throttle.Error{Reason: throttle.ReasonLimit, Tag: tagname.Short(tag), Cost: cost, Cause: err}
}
