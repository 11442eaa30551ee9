package mapper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action is what happens to a message whose tokens did not come within
// WithMaxWait; see OnDenied. The handler never sees such a message. The zero Action
// is Wait.
type Action struct {
	name string
	// answer makes the answer to a message; nil for Wait.
	answer denyFunc
	// fault says what is wrong with the Action itself; nil for nothing.
	fault error
}

type denyFunc = func(ctx context.Context, keys []string, d mapsdk.Datum, denied *admission.Denied) mapsdk.Messages

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
	return Action{name: "Nack", answer: func(_ context.Context, _ []string, _ mapsdk.Datum, denied *admission.Denied) mapsdk.Messages {
		millis := uint64((denied.RetryAfter() + time.Millisecond - 1) / time.Millisecond)
		reason := denied.Err.Error()
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(&mapsdk.NackOptions{Delay: &millis, Reason: &reason}))
	}}
}

// Drop acknowledges the message and forwards nothing: it is lost, by the user's
// choice.
func Drop() Action {
	return Action{name: "Drop", answer: func(context.Context, []string, mapsdk.Datum, *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	}}
}

// Forward forwards the message as it came in, with its keys, payload and user
// metadata, under these tags, so that a conditional edge can lead it elsewhere. At
// least one tag is needed; none may be empty or one that numaflow-go has a meaning
// for.
func Forward(tags ...string) Action {
	tags = slices.Clone(tags)
	a := Action{name: "Forward", answer: func(_ context.Context, keys []string, d mapsdk.Datum, _ *admission.Denied) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).
			WithKeys(keys).WithTags(slices.Clone(tags)).WithUserMetadata(d.UserMetadata()))
	}}
	if len(tags) == 0 || slices.ContainsFunc(tags, func(tag string) bool {
		return tag == "" || tag == mapsdk.DROP || tag == mapsdk.NACK
	}) {
		a.fault = fmt.Errorf("mapper: tags of Forward are %q, allowed: one or more, none empty, %q or %q", tags, mapsdk.DROP, mapsdk.NACK)
	}
	return a
}

// DenyFunc answers as f says. f gets the message and why it was denied; an empty
// answer acknowledges the message and forwards nothing. Metadata of its answers
// reach the platform in Wrap only, since numaflow-go's other kinds of map have none.
// f should not block. It may not be nil.
func DenyFunc(f func(ctx context.Context, keys []string, d mapsdk.Datum, denied *throttle.Error) mapsdk.Messages) Action {
	if f == nil {
		return Action{name: "DenyFunc", fault: errors.New("mapper: function of DenyFunc is nil, allowed: a function")}
	}
	return Action{name: "DenyFunc", answer: func(ctx context.Context, keys []string, d mapsdk.Datum, denied *admission.Denied) mapsdk.Messages {
		return f(ctx, keys, d, denied.Err)
	}}
}

// waits tells whether the Action is Wait.
func (a Action) waits() bool { return a.name == "" }
