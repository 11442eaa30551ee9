package main

import (
	"context"
	"errors"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A waiter is a call that waits until it may be sent. It is used by one goroutine.
type waiter struct {
	message context.Context //nolint:containedctx // of the message, within which a call goes on that was sent
	sent    bool
}

type waiterKey struct{}

func waiterOf(ctx context.Context) *waiter {
	w, _ := ctx.Value(waiterKey{}).(*waiter)
	return w
}

// wait returns the context of one call, which ends after maxWait: a call that has not been sent by then
// is denied. cancel must be called when the call is over.
func (h *handler) wait(ctx context.Context) (w *waiter, waiting context.Context, cancel context.CancelFunc) {
	w = &waiter{message: ctx}
	if h.settings.OnDenied != nackOnDenied {
		return w, ctx, func() {}
	}
	waiting, cancel = context.WithTimeout(context.WithValue(ctx, waiterKey{}, w), h.settings.MaxWait)
	return w, waiting, cancel
}

// begin notes that a call is sent, and returns the context that it goes on in.
func begin(ctx context.Context) context.Context {
	w := waiterOf(ctx)
	if w == nil {
		return ctx
	}
	w.sent = true
	return w.message
}

// denial is why a call was not sent within maxWait; nil when that is not what err says. Time in which the pool is
// frozen does not count: that is a wait as any other.
func (h *handler) denial(w *waiter, err error) *admission.Denied {
	if w.sent || h.settings.OnDenied != nackOnDenied || w.message.Err() != nil {
		return nil //nolint:nilerr // the message has ended: there is nothing to deny
	}
	e, known := errors.AsType[*throttle.Error](err)
	if !known && errors.Is(err, context.DeadlineExceeded) {
		e = &throttle.Error{Reason: throttle.ReasonLimit, Cause: err}
	}
	if e == nil || e.Reason == throttle.ReasonClosed || e.Reason == throttle.ReasonTooLarge || e.Reason == throttle.ReasonFrozen {
		return nil
	}
	return &admission.Denied{Err: e, By: h.turns}
}

// impatient is the denial of a message that would have to wait for d before its next call; nil when it may.
func (h *handler) impatient(d time.Duration) error {
	if h.settings.OnDenied != nackOnDenied || d <= h.settings.MaxWait {
		return nil
	}
	return &admission.Denied{Err: &throttle.Error{Reason: throttle.ReasonPause, RetryAfter: d}}
}

// nack gives a message back, to be delivered again when its call can be expected to be let through.
func nack(d *admission.Denied) mapsdk.Messages {
	return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(d.NackOptions(d.Err.Error())))
}
