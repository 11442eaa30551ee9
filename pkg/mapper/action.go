package mapper

import (
	"context"
	"slices"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action is what happens to a message whose tokens did not come within
// WithMaxWait; see OnDenied. The handler never sees such a message. The zero Action
// is Wait.
type Action struct{ does action }

type action = admission.Action[mapsdk.Datum, mapsdk.Messages]

func newAction(name string, answer func(context.Context, []string, mapsdk.Datum, *admission.Denied) mapsdk.Messages, faults ...string) Action {
	return Action{action{Name: name, Answer: answer, Faults: faults}}
}

// Wait goes on waiting: there is no longest wait. It loses nothing, whatever the
// source is.
func Wait() Action { return Action{} }

// Nack has the platform deliver the message again when it is its turn: the first after
// the time that its tokens take as far as that is known, at least 100 ms, and each
// further one as much later as its own tokens take in this pod's share of the limit,
// with a little jitter on top. A limiter that does not tell its rate, such as
// throttle.All, has no such line: up to a quarter of the time is added at random. It is
// logged once a minute how many there were.
//
// It needs Numaflow 1.8.2 or later; older versions forward the nack as an empty
// message. The delay is kept by the JetStream buffer between the vertices of a
// pipeline, SQS (in whole seconds) and user-defined sources; a JetStream source
// delivers again at once, Pulsar by its own settings. A vertex that reads from
// Kafka, plain NATS or the generator LOSES a nacked message. Everywhere else
// nacked messages count as pending, and their redeliveries as read.
func Nack() Action {
	return newAction("Nack", func(_ context.Context, _ []string, _ mapsdk.Datum, denied *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(denied.NackOptions(denied.Err.Error())))
	})
}

// Drop acknowledges the message and forwards nothing: it is lost, by the user's
// choice.
func Drop() Action {
	return newAction("Drop", func(context.Context, []string, mapsdk.Datum, *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	})
}

// Forward forwards the message as it came in, with its keys, payload and user
// metadata, under these tags, so that a conditional edge can lead it elsewhere. At
// least one tag is needed; none may be empty or one that numaflow-go has a meaning
// for.
func Forward(tags ...string) Action {
	tags = slices.Clone(tags)
	return newAction("Forward", func(_ context.Context, keys []string, d mapsdk.Datum, _ *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).
			WithKeys(keys).WithTags(slices.Clone(tags)).WithUserMetadata(d.UserMetadata()))
	}, admission.ForwardFaults(tags)...)
}

// DenyFunc answers as f says. f gets the message and why it was denied; an empty
// answer acknowledges the message and forwards nothing. Metadata of its answers
// reach the platform in Wrap only, since numaflow-go's other kinds of map have none.
// f should not block. It may not be nil.
func DenyFunc(f func(ctx context.Context, keys []string, d mapsdk.Datum, denied *throttle.Error) mapsdk.Messages) Action {
	return newAction("DenyFunc", func(ctx context.Context, keys []string, d mapsdk.Datum, denied *admission.Denied) mapsdk.Messages {
		return f(ctx, keys, d, denied.Err)
	}, admission.DenyFuncFaults(f == nil)...)
}
