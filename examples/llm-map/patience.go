package main

import (
	"context"
	"errors"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A waiter is a call that waits to be sent. It is used by one goroutine.
type waiter struct {
	message context.Context //nolint:containedctx // of the message, within which a call goes on that was sent
	sent    bool
}

type waiterKey struct{}

func waiterOf(ctx context.Context) *waiter {
	w, _ := ctx.Value(waiterKey{}).(*waiter)
	return w
}

// wait returns the context of one call, which ends after maxWait: a call not sent by then is denied. Call cancel when the call is over.
func (h *handler) wait(ctx context.Context) (w *waiter, waiting context.Context, cancel context.CancelFunc) {
	w = &waiter{message: ctx}
	if h.settings.OnDenied != nackOnDenied {
		return w, ctx, func() {}
	}
	waiting, cancel = context.WithTimeout(context.WithValue(ctx, waiterKey{}, w), h.settings.MaxWait)
	return w, waiting, cancel
}

// begin records that a call is sent, and returns the context in which it continues: what ctx carries, without the end of maxWait.
func begin(ctx context.Context) context.Context {
	w := waiterOf(ctx)
	if w == nil {
		return ctx
	}
	w.sent = true
	return sending{w.message, ctx}
}

// A sending context is that of a message, with the values of a request.
type sending struct {
	context.Context //nolint:containedctx // it is one

	values context.Context //nolint:containedctx // only for its values
}

// Value implements context.Context.
func (s sending) Value(key any) any { return s.values.Value(key) }

// denial returns the reason why a call was not sent within maxWait; nil if err has another cause. Time in which the pool is frozen does not
// count: that is an ordinary wait.
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

// impatient returns the denial of a message that would have to wait for d before its next call; nil if it may.
func (h *handler) impatient(d time.Duration) error {
	if h.settings.OnDenied != nackOnDenied || d <= h.settings.MaxWait {
		return nil
	}
	return &admission.Denied{Err: &throttle.Error{Reason: throttle.ReasonPause, RetryAfter: d}}
}

// nack returns a message to be redelivered when its call can be expected to pass.
func nack(d *admission.Denied) mapsdk.Messages {
	return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(d.NackOptions(d.Err.Error())))
}
