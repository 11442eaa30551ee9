package sourcer

import (
	"context"
	"slices"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action says what a transformer makes of a message whose tokens did not come in
// time; see OnDenied. The zero Action is Wait.
type Action struct{ does action }

type (
	action     = admission.Action[transformsdk.Datum, transformsdk.Messages]
	answerFunc = func(ctx context.Context, keys []string, d transformsdk.Datum, denied *admission.Denied) transformsdk.Messages
)

func newAction(name string, answer answerFunc, faults ...string) Action {
	return Action{action{Name: name, Answer: answer, Faults: faults}}
}

// String returns the name of the Action.
func (a Action) String() string { return a.does.String() }

// Wait goes on waiting: the wait ends with the tokens or with the context. It takes
// no WithMaxWait, which would have no meaning.
func Wait() Action { return Action{} }

// Nack gives the message back to the source, to be read again when it is its turn: the
// first after the time that its tokens take, at least 100 ms, and each further one as
// much later as its own tokens take in this pod's share of the limit, with a little
// jitter on top. It is logged once a minute how many there were.
//
// It needs Numaflow 1.8.2 or later: an older version forwards an empty message in the
// place of this one. And it depends on the source: Kafka, plain NATS and the generator
// lose the message. In a MonoVertex that has a map too every version loses it: the map
// gets an empty message instead (numaflow issue 3531). A transformer does not know
// whether there is a map; in a MonoVertex WrapTransformer warns of it. The package
// documentation has the table.
func Nack() Action {
	return newAction("Nack", func(_ context.Context, _ []string, d transformsdk.Datum, denied *admission.Denied) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.MessageToNack(d.EventTime(), denied.NackOptions(denied.Why())))
	})
}

// Drop acknowledges the message and forwards nothing. The message is lost by intent.
// Not in a MonoVertex with a map: there every version of Numaflow hands the map an
// empty message (its issue 3531); WrapTransformer warns of it.
func Drop() Action {
	return newAction("Drop", func(_ context.Context, _ []string, d transformsdk.Datum, _ *admission.Denied) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
	})
}

// Forward lets the message pass as it came, not transformed, with tags for the
// conditional forwarding of a pipeline's edges or the bypass rules of a MonoVertex: to
// a sink that stores it, say. It takes at least one tag, and none that the platform
// knows as a drop or a nack. Where no rule asks for the tags the message goes the way
// of all others, past the limit.
func Forward(tags ...string) Action {
	tags = slices.Clone(tags)
	return newAction(actionForward, func(_ context.Context, keys []string, d transformsdk.Datum, _ *admission.Denied) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), d.EventTime()).
			WithKeys(keys).WithTags(slices.Clone(tags)).WithUserMetadata(d.UserMetadata()))
	}, admission.ForwardFaults(tags)...)
}

const actionForward = "Forward"

// DenyFunc answers with what deny returns, at least one message: an empty result
// fails the stream, as the platform does not take it. why says which limit refused,
// and when tokens are expected (RetryAfter, 0 when that is not known). deny may be
// called from many goroutines at once; when it panics, the stream fails as if the
// handler had.
func DenyFunc(deny func(ctx context.Context, keys []string, d transformsdk.Datum, why *throttle.Error) transformsdk.Messages) Action {
	return newAction("DenyFunc", func(ctx context.Context, keys []string, d transformsdk.Datum, denied *admission.Denied) transformsdk.Messages {
		return deny(ctx, keys, d, denied.Err)
	}, admission.DenyFuncFaults(deny == nil)...)
}
