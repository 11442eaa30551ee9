package grpcthrottle

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A draw is a permit for one call or message, with the facts that it was drawn for.
type draw struct {
	i      *Interceptor
	source throttle.Limiter // nil: unlimited
	tag    string           // for the limiter
	name   string           // the same for pauses and errors; see tagname.Short
	cost   int
	permit throttle.Permit
	sent   time.Time
}

// draw waits for the end of a pause and for the tokens of a call or message. Its error has a gRPC status.
func (i *Interceptor) draw(ctx context.Context, method string, msg any) (*draw, error) {
	d := &draw{i: i, source: i.limiter, cost: 1}
	if i.cost != nil {
		d.cost = max(i.cost(ctx, method, msg), 0)
	}
	if i.tag != nil {
		d.tag = i.tag(ctx, method, msg)
		d.name = tagname.Short(d.tag)
	}
	if tags, ok := i.limiter.(throttle.Tagger); ok && d.tag != "" {
		d.source = tags.ForTag(d.tag)
	}
	if err := d.admit(ctx); err != nil {
		return nil, withStatus(ctx, err)
	}
	d.sent = time.Now()
	return d, nil
}

func (d *draw) admit(ctx context.Context) error {
	for {
		if err := d.awaitPause(ctx); err != nil {
			return err
		}
		if d.source != nil {
			var err error
			if d.permit, err = d.source.Acquire(ctx, d.cost); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			d.permit.Cancel()
			return context.Cause(ctx)
		}
		if d.i.pause.Paused(d.name) <= 0 {
			return nil
		}
		d.permit.Cancel() // a pause began while the call waited
	}
}

// awaitPause waits until calls with the tag are not held back any more.
func (d *draw) awaitPause(ctx context.Context) (err error) {
	var over func(error) // nil: it has not waited
	defer func() {
		if over != nil {
			over(err)
		}
	}()
	for {
		wait := d.i.pause.Paused(d.name)
		if wait <= 0 {
			return nil
		}
		left := left(ctx)
		if wait > d.i.maxWait || wait >= left {
			return hook.Refuse(d.source, throttle.Error{Reason: throttle.ReasonPause, Tag: d.name, Cost: d.cost, RetryAfter: wait})
		}
		if over == nil {
			over = hook.ExternalWait(ctx, d.source, d.name, d.cost)
		}
		// Somewhat later, so that calls don't come back all at once.
		wait += time.Duration(rand.Int64N(int64(min(wait/10, time.Second, (left-wait)/2)) + 1))
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// settle ends the permit of a call that was made.
func (d *draw) settle() { d.permit.Settle(d.permit.N()) }

// judge reports the end of a call that was made; nil is the status OK.
func (d *draw) judge(ctx context.Context, err error) {
	s, now := status.Convert(err), time.Now()
	r, refused := d.i.classify(s)
	if !refused {
		if served(s.Code()) {
			d.permit.Report(throttle.OutcomeAccepted)
			d.i.pause.Accepted(ctx, httpthrottle.Acceptance{Sent: d.sent, At: now, Tag: d.name, Cost: d.cost})
		}
		return
	}
	r.Sent, r.At, r.Tag, r.Cost, r.Attempt = d.sent, now, d.name, d.cost, 1
	d.i.pause.Refused(ctx, r)
	switch r.Class {
	case httpthrottle.Wait:
		d.permit.Report(throttle.OutcomeRefused)
		if l := d.listener(); l != nil && r.RetryAfter > d.i.briefly {
			l.RetryAfter(now.Add(min(r.RetryAfter, d.i.maxPause)), "the service answered with status "+s.Code().String())
		}
	case httpthrottle.Overload:
		d.permit.Report(throttle.OutcomeOverloaded)
	case httpthrottle.Stop: // fewer calls would be refused as well
	}
}

// A listener is a limiter that decides whether all should wait because one caller has to.
type listener interface {
	RetryAfter(until time.Time, reason string)
}

// listener returns the receiver of a refusal: the limiter, or that of the tag; nil for nobody.
func (d *draw) listener() listener {
	l, ok := d.source.(listener)
	if !ok || d.tag != "" && !hook.TellsTags(d.i.limiter) {
		return nil
	}
	return l
}

// brief is up to which time an adaptive limit gets slower instead of stopping, as in package httpthrottle.
const brief = 2 * time.Second

// tracked is hook.Track for a call that can miss a deadline; others do without its cost.
func tracked(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); !ok {
		return ctx
	}
	return hook.Track(ctx)
}

// left returns the time until the deadline of ctx.
func left(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return math.MaxInt64
	}
	return time.Until(deadline)
}

// sleep waits for d, by the monotonic clock, or returns the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
