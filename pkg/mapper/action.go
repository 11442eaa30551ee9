package mapper

import (
	"context"
	"slices"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action is what happens to a message whose tokens did not come within [WithMaxWait]; see [OnDenied]. The handler never sees such a message.
// The zero Action is Wait.
type Action struct{ does action }

type action = admission.Action[mapsdk.Datum, mapsdk.Messages]

func newAction(name string, answer func(context.Context, []string, mapsdk.Datum, *admission.Denied) mapsdk.Messages, faults ...string) Action {
	return Action{action{Name: name, Answer: answer, Faults: faults}}
}

// Wait keeps waiting, without a bound. It loses nothing, whatever the source is.
func Wait() Action { return Action{} }

// Nack has the platform deliver the message again when it is its turn. The first nacked message comes back once its tokens are due, as far
// as that is known, and after at least 100 ms. Each further one comes later by the time that its own tokens take in this pod's share of the
// limit. A little jitter is added. A limiter that does not report its rate, such as [throttle.All], has no such line: up to a quarter of the
// time is added at random. The number of nacks is logged once a minute.
//
// Nack needs Numaflow 1.8.2 or later; older versions forward the nack as an empty message. The JetStream buffer between the vertices of a
// pipeline, SQS (in whole seconds) and user-defined sources keep the delay. A JetStream source delivers again at once, Pulsar by its own
// settings. A vertex that reads from Kafka, plain NATS or the generator LOSES a nacked message. Everywhere else nacked messages count as
// pending, and their redeliveries as read.
func Nack() Action {
	return newAction("Nack", func(_ context.Context, _ []string, _ mapsdk.Datum, denied *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(denied.NackOptions(denied.Err.Error())))
	})
}

// Drop acknowledges the message and forwards nothing: the user chose to lose it.
func Drop() Action {
	return newAction("Drop", func(context.Context, []string, mapsdk.Datum, *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	})
}

// Forward forwards the message unchanged, with its keys, payload and user metadata, under these tags, so that a conditional edge can lead
// it elsewhere. It needs at least one tag. No tag may be empty or have a meaning for numaflow-go.
func Forward(tags ...string) Action {
	tags = slices.Clone(tags)
	return newAction("Forward", func(_ context.Context, keys []string, d mapsdk.Datum, _ *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).
			WithKeys(keys).WithTags(slices.Clone(tags)).WithUserMetadata(d.UserMetadata()))
	}, admission.ForwardFaults(tags)...)
}

// DenyFunc answers with the result of f, which gets the message and the reason for the denial. An empty answer acknowledges the message and
// forwards nothing. Only Wrap passes metadata of the answers to the platform, since numaflow-go's other kinds of map have none. f should
// not block and may not be nil.
func DenyFunc(f func(ctx context.Context, keys []string, d mapsdk.Datum, denied *throttle.Error) mapsdk.Messages) Action {
	return newAction("DenyFunc", func(ctx context.Context, keys []string, d mapsdk.Datum, denied *admission.Denied) mapsdk.Messages {
		return f(ctx, keys, d, denied.Err)
	}, admission.DenyFuncFaults(f == nil)...)
}
