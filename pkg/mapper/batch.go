package mapper

import (
	"context"
	"errors"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// WrapBatch returns a handler that draws a token from l for each message of a batch, in order. It hands a message to next as soon as it has
// its tokens. Without a limit ([throttle.Unlimited], which a nil l is) it returns next itself. It panics with the error of Check when the
// options are wrong.
//
// At most one message that has its tokens waits for a busy handler. With a fast limit a few do, so that next finds the following one ready.
// Their number is what the limit earns here in a millisecond, what next takes in ten at the pace of its last batch, or 64, whichever is
// least. That is not so with [WithCost] or [WithTag], with a hard or strict limit, and with several limits at once.
//
// WrapBatch panics, too, if l counts calls in flight (a [throttle.InFlight], also in an All): it does not know when a call of next has ended.
// Draw slots in next, around the call.
//
// Messages whose tokens do not come within [WithMaxWait] are answered by [OnDenied]; next never sees them. [WithMaxWait] bounds the wait of each
// message and the waits of the batch together; time in which next is busy does not count. Once it is used up, the rest of the batch is
// admitted as far as there are tokens at hand.
//
// Each message of the batch has exactly one response, in the order of the batch, or the whole stream fails. The handler panics with an
// error that names the fault if next answers an unknown message, answers one twice or not at all, or returns before it has read the whole
// batch. The platform would ignore an answer that it cannot match, and its content would be lost. It fails a batch with a missing answer.
//
// The handler may be called from any number of goroutines at once, if next may; numaflow-go calls it once for each batch, one after the
// other. Its input channel is always read to the end. A call whose context has ended may wait for that end: numaflow-go closes the channel
// then, too. next is called in the goroutine of the caller. Its context ends when next returns, or when the tokens of the batch do not come
// at all. The result is then the same as with Wrap, for the whole batch. When next panics, the panic goes on unchanged. Messages that next
// took stay paid; those that it did not take get their tokens back.
func WrapBatch(next batchmapsdk.BatchMapper, l throttle.Limiter, opts ...Option) batchmapsdk.BatchMapper {
	s := newSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	admission.MustCountTokens("mapper", l)
	return &batch{throttled: s.Wrapper(l), next: next}
}

type batch struct {
	*throttled

	next    batchmapsdk.BatchMapper
	entries admission.Spare[entry]
}

// errReturned explains why the rest of a batch is not handed on.
var errReturned = errors.New("mapper: the batch map handler returned before it had read the whole batch")

// BatchMap implements batchmapsdk.BatchMapper; see WrapBatch.
func (w *batch) BatchMap(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	handling, cancel := context.WithCancelCause(ctx)
	f := newFeed(w.throttled, w.entries.Take(), in, cancel)
	returned, began := false, time.Now()
	defer func() { // also when the handler panics
		cancel(errReturned)
		if !returned {
			go f.takeBack() // in may be open until numaflow-go has seen the panic
		}
	}()
	go f.run(ctx, handling)
	answers := w.next.BatchMap(handling, f.out)
	returned = true
	cancel(errReturned)
	taken, untaken := f.takeBack()
	w.Pace.Note(taken, time.Since(began))
	if f.panicked != nil {
		panic(f.panicked) //nolint:forbidigo // it came from a function of the user, and goes on in the goroutine that numaflow-go watches
	}
	err := f.err
	if err == nil && untaken > 0 {
		err = errReturned
	}
	if err == nil {
		if answers, err = f.merge(answers); err == nil {
			w.entries.Give(f.entries)
			return answers
		}
	}
	w.Abandoner.Abandon(ctx, err)
	return nil // not reached
}
