package sinker

import (
	"context"
	"runtime"
	"slices"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Wrap returns a handler that draws a token from l for each message of a batch, and hands the message on to next once the token is there.
// Without a limit ([throttle.Unlimited], which a nil l is) it returns next itself. It panics with the error of Check when the options make no
// sense, and if l counts calls in flight; see the package documentation.
//
// next sees a batch as it would without the wrapper. Messages come through the channel one by one, each as soon as it is admitted. The
// channel is closed after the last. Sink returns exactly one response for each message of the batch; the package documentation says which.
// When next panics the panic goes on unchanged, and no message of the batch is answered. Messages that next took stay paid; tokens for the
// others are given back.
//
// Sink may be called for several batches at once, if next may.
func Wrap(next sinksdk.Sinker, l throttle.Limiter, opts ...Option) sinksdk.Sinker {
	s := newSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	admission.MustCountTokens("sinker", l)
	return &wrapped{wrapper: s.Wrapper(l), next: next, settle: s.settle, inOrder: s.inOrder}
}

type wrapper = admission.Wrapper[sinksdk.Datum, sinksdk.Response]

type wrapped struct {
	*wrapper

	next    sinksdk.Sinker
	settle  func(d sinksdk.Datum, r sinksdk.Response) int
	inOrder bool
	ids     admission.Spare[string]
	permits admission.Spare[throttle.Permit]
}

// Sink implements sinksdk.Sinker; see Wrap.
func (w *wrapped) Sink(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	// The handler runs in this goroutine, so that the caller sees its panic.
	drawing, stop := context.WithCancel(ctx)
	b := &batch{
		wrapped: w, parent: ctx, stop: stop, ended: make(chan struct{}), turn: w.Admitter.Batch(w.Budget),
		taken: w.ids.Take(),
	}
	ahead := w.Ahead()
	b.recent = slices.Grow(w.permits.Take(), ahead)[:ahead]
	b.out = make(chan sinksdk.Datum, ahead)
	returned, began := false, time.Now()
	defer func() { // a panic too frees what waits, and has the rest of in read
		stop()
		if !returned {
			go b.takeBack() // in may be open until numaflow-go has seen the panic
		}
	}()
	go b.admitAll(drawing, in)

	responses := w.next.Sink(ctx, b.out)
	returned = true
	stop()
	b.takeBack()
	w.Pace.Note(len(b.taken), time.Since(began))
	switch {
	case b.exited:
		runtime.Goexit()
	case b.panicked != nil:
		panic(b.panicked) //nolint:forbidigo // a function of the user's panicked; it goes on here
	}
	responses = b.answers(responses)
	w.ids.Give(b.taken)
	w.permits.Give(b.recent)
	return responses
}
