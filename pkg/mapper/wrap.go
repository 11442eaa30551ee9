package mapper

import (
	"context"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
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
	return &unary{throttled: s.Wrapper(l), next: next}
}

type unary struct {
	*throttled

	next mapsdk.Mapper
}

// Map implements mapsdk.Mapper; see Wrap.
func (w *unary) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	tag, cost := "", 1
	if w.Priced() {
		tag, cost = w.Price(keys, d)
	}
	permit, err := w.Admitter.Admit(ctx, tag, cost)
	if err != nil {
		return w.deny(ctx, keys, d, err)
	}
	out := w.next.Map(ctx, keys, d)
	if w.ExemptDropped && admission.OnlyDrops(out.Items()) {
		w.Admitter.Exempt(permit)
	} else {
		permit.Settle(permit.N()) // a call in flight has ended
	}
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
