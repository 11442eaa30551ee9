package sourcer

import (
	"context"
	"slices"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action sets what happens to a message of a transformer whose tokens did not come in time; see [OnDenied]. The zero Action is Wait.
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

// Wait keeps waiting: the wait ends with the tokens or with the context. It may not be combined with [WithMaxWait], which would have no
// meaning.
func Wait() Action { return Action{} }

// Nack returns the message to the source, to be read again when it is its turn. The first nacked message comes back once its tokens are
// due, after at least 100 ms. Each further one comes later by the time that its own tokens take in this pod's share of the limit. A little
// jitter is added. The number of nacks is logged once a minute.
//
// It needs Numaflow 1.8.2 or later: an older version forwards an empty message in the place of this one. It also depends on the source:
// Kafka, plain NATS and the generator lose the message. In a MonoVertex that has a map too every version loses it: the map gets an empty
// message instead (numaflow issue 3531). A transformer does not know whether there is a map; in a MonoVertex [WrapTransformer] warns of it.
// The package documentation has the table.
func Nack() Action {
	return newAction("Nack", func(_ context.Context, _ []string, d transformsdk.Datum, denied *admission.Denied) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.MessageToNack(d.EventTime(), denied.NackOptions(denied.Why())))
	})
}

// Drop acknowledges the message and forwards nothing. The message is lost by intent. It does not work in a MonoVertex with a map: there
// every version of Numaflow hands the map an empty message (its issue 3531); [WrapTransformer] warns of it.
func Drop() Action {
	return newAction("Drop", func(_ context.Context, _ []string, d transformsdk.Datum, _ *admission.Denied) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
	})
}

// Forward passes the message on as it came, not transformed, with tags. A pipeline's conditional edges or a MonoVertex's bypass rules can
// lead it by these to a sink that stores it, say. It takes at least one tag, and none that the platform knows as a drop or a nack. If no
// rule asks for the tags, the message goes the way of all others, past the limit.
func Forward(tags ...string) Action {
	tags = slices.Clone(tags)
	return newAction(actionForward, func(_ context.Context, keys []string, d transformsdk.Datum, _ *admission.Denied) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), d.EventTime()).
			WithKeys(keys).WithTags(slices.Clone(tags)).WithUserMetadata(d.UserMetadata()))
	}, admission.ForwardFaults(tags)...)
}

const actionForward = "Forward"

// DenyFunc answers with the result of deny, at least one message: an empty result fails the stream, as the platform does not take it. The
// argument why names the limit that refused, and when tokens are expected (RetryAfter, 0 when not known). Many goroutines may call deny at
// once. When deny panics, the stream fails as if the handler had.
func DenyFunc(deny func(ctx context.Context, keys []string, d transformsdk.Datum, why *throttle.Error) transformsdk.Messages) Action {
	return newAction("DenyFunc", func(ctx context.Context, keys []string, d transformsdk.Datum, denied *admission.Denied) transformsdk.Messages {
		return deny(ctx, keys, d, denied.Err)
	}, admission.DenyFuncFaults(deny == nil)...)
}
