package admission

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Admitter admits messages one by one. Its methods may be called from any number of
// goroutines at once; its fields are not changed once it is in use.
type Admitter struct {
	// Limiter that the tokens are drawn from; not nil.
	Limiter throttle.Limiter
	// MaxWait bounds the wait of a message. 0: it ends with the tokens or with the context. Time in which the pool is frozen does not
	// count: a wait that would end in a freeze starts again when the freeze ends. A wait that is known to be longer even so is denied at
	// once, and none takes longer than the freeze and MaxWait.
	MaxWait time.Duration
	// Budget is that of the batches whose messages it admits, for the turns of the nacked ones; see Batch. 0: none.
	Budget time.Duration
	// Log receives the number of nacked messages, once a minute; nil: slog.Default().
	Log *slog.Logger

	line     line
	nacked   nacked
	exempt   exempt
	tooLarge every // costs that can never be granted
	watch    watch // tells when the platform idles between batches
}

// Admit waits until cost tokens are granted for the tag, and returns the permit. A cost of zero or less draws none, but waits as
// a cost of one does. The empty tag means the limit itself, as does every tag for a limiter that is no
// throttle.Tagger.
//
// Errors:
//   - *Denied when MaxWait has passed, or at once when it is known to be too short. Without a MaxWait it means that the cost can never be
//     granted (throttle.ReasonTooLarge), which is denied at once in any case, and logged.
//   - The cause of ctx when it ended, also when the tokens came at the same time: then they were given back. A limiter may report a
//     deadline of ctx in its own words (*throttle.Error), and ahead of time. A deadline of ctx that comes before MaxWait has passed is not
//     a denial.
//   - The limiter's other errors: it was closed (throttle.ErrClosed).
func (g *Admitter) Admit(ctx context.Context, tag string, cost int) (throttle.Permit, error) {
	defer g.watch.leave(g.watch.enter())
	if g.MaxWait <= 0 {
		return g.admit(ctx, ctx, tag, cost)
	}
	return g.admitBy(ctx, tag, cost, time.Now().Add(g.MaxWait), func(thaw time.Time) time.Time { return thaw.Add(g.MaxWait) })
}

// sameThaw is how far two estimates of the end of one freeze may differ.
const sameThaw = 100 * time.Millisecond

// admitBy admits a message until a time. If the time has passed, the message still gets the tokens at hand. If the limiter reports that the
// pool is frozen, anew maps the end of the freeze to the new end of the wait. A wait known to be longer than that is denied.
func (g *Admitter) admitBy(ctx context.Context, tag string, cost int, until time.Time, again func(thaw time.Time) time.Time) (throttle.Permit, error) {
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
		thaw, until = end, again(end)
		if now.Add(denied.Err.RetryAfter).After(until) {
			return permit, err
		}
	}
}

func (g *Admitter) admitOnce(ctx context.Context, tag string, cost int, until time.Time) (throttle.Permit, error) {
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

// admit draws with the context wait, a descendant of ctx. It gives back tokens that came after ctx has ended, and denies costs that can
// never be granted.
func (g *Admitter) admit(ctx, wait context.Context, tag string, cost int) (throttle.Permit, error) {
	permit, err := g.limiter(tag).Acquire(wait, max(cost, 0))
	if err != nil {
		return throttle.Permit{}, g.deniedIfTooLarge(err, tag)
	}
	if ctx.Err() != nil {
		permit.Cancel()
		return throttle.Permit{}, context.Cause(ctx)
	}
	return permit, nil
}

// deniedIfTooLarge turns an error for a cost that can never be granted into a denial. Not inlined: callers wait in admit's frame.
//
//go:noinline
func (g *Admitter) deniedIfTooLarge(err error, tag string) error {
	e, ok := errors.AsType[*throttle.Error](err)
	if !ok || e.Reason != throttle.ReasonTooLarge {
		return err
	}
	if n, due := g.tooLarge.add(1); due {
		g.logger().Error("messages denied: their cost can never be granted; told once a minute at most", "messages", n, "cause", err)
	}
	return &Denied{Err: e, Tag: tag}
}

// limiter returns the source of the tokens for a tag.
func (g *Admitter) limiter(tag string) throttle.Limiter {
	if tag == "" {
		return g.Limiter
	}
	if t, ok := g.Limiter.(throttle.Tagger); ok {
		return t.ForTag(tag)
	}
	return g.Limiter
}

// late reports whether a draw failed because its tokens do not come before the deadline of wait.
func late(wait context.Context, err error) bool {
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		return !e.Reason.Final()
	}
	return wait.Err() != nil || errors.Is(err, throttle.ErrThrottled)
}

// asError returns the limiter's own error, or an equivalent one for a limiter that has none.
func asError(err error, tag string, cost int) *throttle.Error {
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		return e
	}
	return &throttle.Error{Reason: throttle.ReasonLimit, Tag: tagname.Short(tag), Cost: cost, Cause: err}
}
