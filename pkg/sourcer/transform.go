package sourcer

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// WrapTransformer returns a transformer that draws a token from l for each message,
// and then lets next transform it. Without a limit (throttle.Unlimited, which a nil l
// is) it returns next itself. It panics with the error of CheckTransformer when the
// options make no sense.
//
// The transformer may be called from any number of goroutines at once, if next may.
// It blocks until the tokens are there, or denied; the package documentation says
// what happens when neither comes. When the context ended while the tokens came,
// they are given back and next is not called. When next panics, the panic goes on
// unchanged and the tokens stay drawn.
func WrapTransformer(next transformsdk.SourceTransformer, l throttle.Limiter, opts ...TransformerOption) transformsdk.SourceTransformer {
	s := newTransformerSettings(opts)
	if err := s.check(); err != nil {
		panic(err) //nolint:forbidigo // an error of the program, found when it starts
	}
	if throttle.Unlimited(l) {
		return next
	}
	s.warnOfMonoVertex()
	return &transformer{
		next:                next,
		transformerSettings: s,
		gate:                admission.Gate{Limiter: l, MaxWait: s.maxWait, Log: s.log},
		abandoner:           admission.Abandoner{Log: s.log},
	}
}

// warnOfMonoVertex warns of an action with which a MonoVertex loses messages, if it has a map, which a transformer cannot
// know: numaflow issue 3531.
func (s transformerSettings) warnOfMonoVertex() {
	if !s.action.unsafeBeforeMap || !admission.InMonoVertex() {
		return
	}
	logger := s.log
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("OnDenied of a transformer in a MonoVertex: if it has a map, the map gets an empty message for each that is denied, and "+
		"what was nacked is LOST (numaflow issue 3531); with a map use Wait, or Forward with a tag, or throttle the map instead",
		"action", s.action.String())
}

// A transformer is what WrapTransformer returns.
type transformer struct {
	transformerSettings

	next      transformsdk.SourceTransformer
	gate      admission.Gate
	abandoner admission.Abandoner
}

// Transform implements transformsdk.SourceTransformer; see WrapTransformer.
func (t *transformer) Transform(ctx context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
	cost, tag := 1, ""
	if t.cost != nil {
		cost = t.cost(keys, d)
	}
	if t.tag != nil && cost > 0 {
		tag = t.tag(keys, d)
	}
	permit, err := t.gate.Admit(ctx, tag, cost)
	if err != nil {
		return t.deny(ctx, keys, d, err)
	}
	out := t.next.Transform(ctx, keys, d)
	if t.exemptDropped && onlyDrops(out) {
		t.gate.Exempt(permit)
	}
	return out
}

// errNoAnswer is what a DenyFunc's empty result fails the stream with.
var errNoAnswer = errors.New("sourcer: DenyFunc returned no messages, which the platform does not take from a transformer")

// deny answers for a message that did not get its tokens, or does not return.
func (t *transformer) deny(ctx context.Context, keys []string, d transformsdk.Datum, err error) transformsdk.Messages {
	var denied *admission.Denied
	if !errors.As(err, &denied) {
		t.abandoner.Abandon(ctx, err)
	}
	action := t.action
	if action.waits() { // what no wait brings fails alone
		action = Nack()
	}
	out := action.answer(ctx, keys, d, denied)
	if len(out) == 0 {
		t.abandoner.Abandon(ctx, errNoAnswer)
	}
	return out
}

// onlyDrops tells whether the platform forwards nothing of a result. It looks as
// the platform does, which takes a message for a drop if any of its tags says so.
func onlyDrops(out transformsdk.Messages) bool {
	items := out.Items()
	for i := range items {
		if !slices.Contains(items[i].Tags(), transformsdk.DROP) {
			return false
		}
	}
	return len(items) > 0
}
