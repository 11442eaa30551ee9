package mapper

import (
	"context"
	"errors"
	"sync"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// WrapStream returns a handler that draws a token from l for each message, and then lets next handle it; with [PerOutput] it draws for each
// output instead. Without a limit ([throttle.Unlimited], which a nil l is) it returns next itself. It panics with the error of [CheckStream]
// when the options are wrong, and with [PerOutput] if l counts calls in flight: an output is not a call.
//
// The handler may be called from any number of goroutines at once, if next may. It blocks until the tokens are there, then until next has
// returned and has closed its channel. When the tokens do not come within [WithMaxWait] it answers by [OnDenied]; when they do not come at all
// it does not return, as with Wrap.
//
// next writes its outputs to a channel of its own, and must close it after the last. Outputs are passed on one by one, in order. next is
// held back while two outputs are not yet passed on; with [PerOutput], while one is not.
//
// numaflow-go takes the close of the caller's channel for the end of the answer. So the wrapper closes it only if next has returned and
// closed its own channel, and the context has not ended. A handler that closes its channel in a deferred function thus ends no answer by a
// panic or by giving up. When next panics, the panic goes on unchanged and the tokens stay drawn. Outputs written after the context ended
// are part of no answer. They are discarded when nobody reads them any more, so that next is never stuck. Direct leaves all of this out.
func WrapStream(next mapstreamsdk.MapStreamer, l throttle.Limiter, opts ...StreamOption) mapstreamsdk.MapStreamer {
	s := newSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	if s.perOutput {
		admission.MustCountTokens("mapper", l)
	}
	return &stream{throttled: s.Wrapper(l), next: next, perOutput: s.perOutput, direct: s.direct}
}

type stream struct {
	*throttled

	next              mapstreamsdk.MapStreamer
	perOutput, direct bool
	pumps             sync.Pool // of *pump
}

// errLeft explains why a handler's outputs are not awaited any more.
var errLeft = errors.New("mapper: the map stream handler has ended")

// MapStream implements mapstreamsdk.MapStreamer; see WrapStream.
//
// Each way has a function of its own, so that the frames are small. numaflow-go starts a new goroutine for each message, and growing its
// small stack takes longer than the draw.
func (w *stream) MapStream(ctx context.Context, keys []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
	if w.perOutput {
		w.mapPerOutput(ctx, keys, d, to)
		return
	}
	permit, ok := w.admit(ctx, keys, d, to)
	switch {
	case !ok:
	case w.direct:
		w.next.MapStream(ctx, keys, d, to)
		permit.Settle(permit.N())
	default:
		w.mapAdmitted(ctx, keys, d, to, permit)
	}
}

// mapAdmitted lets next handle a message that has its tokens.
func (w *stream) mapAdmitted(ctx context.Context, keys []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message, permit throttle.Permit) {
	p, answered := w.newPump(ctx, to), false
	defer func() { p.end(answered) }()
	go p.start()
	w.next.MapStream(ctx, keys, d, p.from)
	p.passRest()
	w.finish(ctx, p, permit)
	answered = true
}

// mapPerOutput lets next handle a message, whose outputs draw the tokens.
func (w *stream) mapPerOutput(ctx context.Context, keys []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
	p, answered := w.newPump(ctx, to), false
	defer func() { p.end(answered) }()
	p.outputTag, p.outputCost = w.charge(keys, d)
	handling, cancel := context.WithCancelCause(ctx)
	p.handling, p.cancel = handling, cancel
	defer cancel(errLeft)
	h := newHands()
	p.by.Store(h)
	go p.passOn(h)
	w.next.MapStream(handling, keys, d, p.from)
	<-h.done
	if _, denied := errors.AsType[*admission.Denied](p.err); denied && ctx.Err() == nil { // before its first output
		w.answerDenied(ctx, p.err, keys, streamDatum{d}, to)
	} else {
		w.finish(ctx, p, throttle.Permit{})
	}
	answered = true
}

// admit draws the tokens of a message. If they did not come, it has answered, and ok is false.
func (w *stream) admit(ctx context.Context, keys []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) (_ throttle.Permit, ok bool) {
	tag, cost := w.charge(keys, d)
	permit, err := w.Admitter.Admit(ctx, tag, cost)
	if err != nil {
		w.answerDenied(ctx, err, keys, streamDatum{d}, to)
		return throttle.Permit{}, false
	}
	return permit, true
}

// charge returns the cost of a message, or of each of its outputs, and its tag.
func (w *stream) charge(keys []string, d mapstreamsdk.Datum) (tag string, cost int) {
	if !w.Priced() {
		return "", 1
	}
	return w.Price(keys, streamDatum{d})
}

// finish ends the answer when all of it was passed on.
func (w *stream) finish(ctx context.Context, p *pump, permit throttle.Permit) {
	switch {
	case p.panicked != nil:
		panic(p.panicked) //nolint:forbidigo // it came from the limiter, and goes on in the goroutine that numaflow-go watches
	case p.err != nil:
		w.Abandoner.Abandon(ctx, p.err)
	case ctx.Err() != nil: // the handler may have closed its channel because of it
		w.Abandoner.Abandon(ctx, context.Cause(ctx))
	}
	if w.ExemptDropped && p.onlyDrops() {
		w.Admitter.Exempt(permit) // the zero permit with PerOutput
	} else {
		permit.Settle(permit.N()) // a call in flight has ended
	}
	close(p.to)
}

// answerDenied sends the user's answer, if err says that the message was denied.
func (w *stream) answerDenied(ctx context.Context, err error, keys []string, d mapsdk.Datum, to chan<- mapstreamsdk.Message) {
	answer, ok := w.Deny(ctx, err, keys, d, Nack().does)
	if !ok {
		w.Abandoner.Abandon(ctx, err)
	}
	for _, m := range convert(answer.Items(), streamMessage) {
		select {
		case to <- m:
		case <-ctx.Done():
			w.Abandoner.Abandon(ctx, context.Cause(ctx))
		}
	}
	if ctx.Err() != nil {
		w.Abandoner.Abandon(ctx, context.Cause(ctx))
	}
	close(to)
}
