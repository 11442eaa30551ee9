package mapper

import (
	"context"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Wrap returns a handler that draws a token from l for each message, and then lets next handle it. Without a limit ([throttle.Unlimited],
// which a nil l is) it returns next itself. It panics with the error of Check when the options are wrong.
//
// The handler may be called from any number of goroutines at once, if next may. It blocks until the tokens are there. When they do not come
// within [WithMaxWait] it answers by [OnDenied]. When they do not come at all it does not return; the package documentation explains why and
// what happens instead. When the context ended while the tokens came, they are given back and next is not called. When next panics, the
// panic goes on unchanged and the tokens stay drawn.
func Wrap(next mapsdk.Mapper, l throttle.Limiter, opts ...Option) mapsdk.Mapper {
	s := newSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	return &unary{throttled: s.Wrapper(l), next: next, meters: hook.Meters(l)}
}

type unary struct {
	*throttled

	next   mapsdk.Mapper
	meters callmeter.Meters // nil: nobody measures
}

// Map implements mapsdk.Mapper; see Wrap.
func (w *unary) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	tag, cost := "", 1
	if w.Priced() {
		tag, cost = w.Price(keys, d)
	}
	w.meters.Open()
	permit, err := w.Admitter.Admit(ctx, tag, cost)
	if err != nil {
		w.meters.Close()
		return w.deny(ctx, keys, d, err)
	}
	out := w.handle(ctx, keys, d)
	if w.ExemptDropped && admission.OnlyDrops(out.Items()) {
		w.Admitter.Exempt(permit)
	} else {
		permit.Settle(permit.N()) // a call in flight has ended
	}
	return out
}

// handle lets next handle a message that has its tokens, and measures how long that takes. A panic ends the process of numaflow-go, and its
// measurement.
func (w *unary) handle(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	if w.meters == nil {
		return w.next.Map(ctx, keys, d)
	}
	began := time.Now()
	out := w.next.Map(ctx, keys, d)
	w.meters.Ran(time.Since(began))
	w.meters.Close()
	return out
}

// deny answers for a message that did not get its tokens, or does not return. Its separate frame keeps Map's small.
func (w *unary) deny(ctx context.Context, keys []string, d mapsdk.Datum, err error) mapsdk.Messages {
	answer, ok := w.Deny(ctx, err, keys, d, Nack().does)
	if !ok {
		w.Abandoner.Abandon(ctx, err)
	}
	return answer
}
