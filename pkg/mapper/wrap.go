package mapper

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Wrap returns a handler that draws a token from l for each message, and then
// lets next handle it. Without a limit (throttle.Unlimited, which a nil l is) it
// returns next itself.
//
// The handler may be called from any number of goroutines at once, if next may.
// It blocks until the tokens are there. When they do not come it does not return;
// the package documentation says why and what happens instead. When the context
// ended while the tokens came, they are given back and next is not called. When
// next panics, the panic goes on unchanged and the tokens stay drawn.
func Wrap(next mapsdk.Mapper, l throttle.Limiter, opts ...Option) mapsdk.Mapper {
	if throttle.Unlimited(l) {
		return next
	}
	w := &wrapped{next: next, limiter: l}
	for _, opt := range opts {
		if opt != nil {
			opt(w)
		}
	}
	return w
}

type wrapped struct {
	next          mapsdk.Mapper
	limiter       throttle.Limiter
	cost          func(keys []string, d mapsdk.Datum) int // nil: 1
	exemptDropped bool
	log           *slog.Logger // nil: slog.Default()

	closedOnce sync.Once // the log entry about a closed limiter
}

// Map implements mapsdk.Mapper; see Wrap.
func (w *wrapped) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	cost := 1
	if w.cost != nil {
		cost = w.cost(keys, d)
	}
	if cost <= 0 {
		return w.next.Map(ctx, keys, d)
	}
	permit, err := w.limiter.Acquire(ctx, cost)
	if err != nil {
		w.abandon(ctx, err)
	}
	if ctx.Err() != nil {
		permit.Cancel()
		w.abandon(ctx, context.Cause(ctx))
	}
	out := w.next.Map(ctx, keys, d)
	if w.exemptDropped && onlyDrops(out) {
		permit.Cancel()
	}
	return out
}

// abandon ends a call whose message cannot be handled, without an answer. It
// never returns.
func (w *wrapped) abandon(ctx context.Context, err error) {
	if errors.Is(err, throttle.ErrClosed) && ctx.Done() != nil {
		w.closedOnce.Do(func() {
			w.logger().Warn("limiter closed: messages wait for the end of the stream, unanswered")
		})
		<-ctx.Done()
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		runtime.Goexit()
	}
	w.logger().Error("message not handled, failing the stream", "error", err)
	panic(err) //nolint:forbidigo // the only way to tell numaflow-go that there is no answer
}

func (w *wrapped) logger() *slog.Logger {
	if w.log != nil {
		return w.log
	}
	return slog.Default()
}

// onlyDrops tells whether the platform forwards nothing of a result. It looks as
// the platform does, which takes a message for a drop if any of its tags says so.
func onlyDrops(out mapsdk.Messages) bool {
	items := out.Items()
	for i := range items {
		if !slices.Contains(items[i].Tags(), mapsdk.DROP) {
			return false
		}
	}
	return len(items) > 0
}
