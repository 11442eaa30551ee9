package sourcer

import (
	"context"
	"errors"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// WrapTransformer returns a transformer that draws a token from l for each message, and then lets next transform it. Without a limit
// ([throttle.Unlimited], which a nil l is) it returns next itself. It panics with the error of [CheckTransformer] when the options make no
// sense.
//
// The transformer may be called from any number of goroutines at once, if next may. It blocks until the tokens are there, or denied; the
// package documentation says what happens when neither comes. When the context ended while the tokens came, they are given back and next is
// not called. When next panics, the panic goes on unchanged and the tokens stay drawn.
func WrapTransformer(next transformsdk.SourceTransformer, l throttle.Limiter, opts ...TransformerOption) transformsdk.SourceTransformer {
	s := newTransformerSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	t := &transformer{wrapper: s.Wrapper(l), next: next}
	t.warnOfMonoVertex()
	return t
}

// warnOfMonoVertex warns of an action with which a MonoVertex loses messages if it has a map, which a transformer cannot know: numaflow
// issue 3531.
func (t *transformer) warnOfMonoVertex() {
	if t.OnDenied.Waits() || t.OnDenied.Name == actionForward || !admission.InMonoVertex() {
		return
	}
	t.Abandoner.Logger().Warn("OnDenied of a transformer in a MonoVertex: if it has a map, the map gets an empty message for each that is denied, and "+
		"what was nacked is LOST (numaflow issue 3531); with a map use Wait, or Forward with a tag, or throttle the map instead",
		"action", t.OnDenied.Name)
}

type wrapper = admission.Wrapper[transformsdk.Datum, transformsdk.Messages]

// A transformer is what WrapTransformer returns.
type transformer struct {
	*wrapper

	next transformsdk.SourceTransformer
}

// Transform implements transformsdk.SourceTransformer; see WrapTransformer.
func (t *transformer) Transform(ctx context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
	tag, cost := "", 1
	if t.Priced() {
		tag, cost = t.Price(keys, d)
	}
	permit, err := t.Admitter.Admit(ctx, tag, cost)
	if err != nil {
		return t.deny(ctx, keys, d, err)
	}
	out := t.next.Transform(ctx, keys, d)
	if t.ExemptDropped && admission.OnlyDrops(out.Items()) {
		t.Admitter.Exempt(permit)
	} else {
		permit.Settle(permit.N()) // a call in flight has ended
	}
	return out
}

// errNoAnswer fails the stream after an empty result of a DenyFunc.
var errNoAnswer = errors.New("sourcer: DenyFunc returned no messages, which the platform does not take from a transformer")

// deny answers for a message that did not get its tokens, or does not return.
func (t *transformer) deny(ctx context.Context, keys []string, d transformsdk.Datum, err error) transformsdk.Messages {
	answer, ok := t.Deny(ctx, err, keys, d, Nack().does)
	if ok && len(answer) == 0 {
		err, ok = errNoAnswer, false
	}
	if !ok {
		t.Abandoner.Abandon(ctx, err)
	}
	return answer
}
