package mapper

import (
	"context"
	"errors"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// WrapBatch returns a handler that draws a token from l for each message of a
// batch, in the order of the batch, and hands it to next as soon as it has its
// tokens. Without a limit (throttle.Unlimited, which a nil l is) it returns next
// itself. It panics with the error of Check when the options are wrong.
//
// At most one message that has its tokens waits for a busy handler. With a fast limit a
// few do, so that next finds the following one ready: as many as the limit earns here
// in a millisecond and as next takes in ten at the pace of its last batch, at most 64;
// but none with WithCost or WithTag, with a hard or strict limit, with several limits
// at once and with calls in flight.
//
// Messages whose tokens do not come within WithMaxWait are answered as OnDenied
// says; next never sees them. WithMaxWait bounds the wait of each message and the
// waits of the batch together; time in which next is busy does not count. Once it is
// used up, the rest of the batch is admitted as far as there are tokens at hand.
//
// Each message of the batch has exactly one response, in the order of the batch, or
// the whole stream fails: when next answers something that it was not given, answers
// a message twice or not at all, or returns before it has read all there was to
// read, then the handler panics with an error that says so. The platform would
// ignore an answer that it cannot match, and what it says would be lost; and it fails
// a batch in which one is missing.
//
// The handler may be called from any number of goroutines at once, if next may;
// numaflow-go calls it once for each batch, one after the other. The channel that it
// is given is read to its end, whatever next does. A call whose context has ended may wait
// for that end: numaflow-go closes the channel then, too. next is called in the goroutine of
// the caller, and its context ends with its return, or when the tokens of the batch
// do not come at all. What then happens is the same as with Wrap, for the whole
// batch. When next panics, the panic goes on unchanged; tokens of messages that it
// took stay drawn, those of a message that it did not take are given back.
func WrapBatch(next batchmapsdk.BatchMapper, l throttle.Limiter, opts ...Option) batchmapsdk.BatchMapper {
	s := newSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	return &batch{throttled: s.Wrapper(l), next: next}
}

type batch struct {
	*throttled

	next    batchmapsdk.BatchMapper
	entries admission.Spare[entry]
}

// errReturned is why the rest of a batch is not handed on.
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
