package handlertest

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A Message is what a handler is asked to handle, and what a source delivers. Its slices and maps must not be changed while a
// call uses them.
type Message struct {
	// Keys of the message; may be empty.
	Keys []string
	// Value is the payload; may be empty.
	Value []byte
	// EventTime and Watermark. A handler sees 1970-01-01 UTC for a zero time. A source delivers no watermark.
	EventTime, Watermark time.Time
	// Headers of the message; may be nil.
	Headers map[string]string
	// Offset is by what a source knows the message. The other kinds do not look at it.
	Offset Offset
}

// An Offset is by what a source knows a message.
type Offset struct {
	Value     []byte
	Partition int32
}

// A Result is one of the messages that a map or a transformer returned for a message.
type Result struct {
	// Keys, Value and Tags are what the handler set.
	Keys  []string
	Value []byte
	Tags  []string
	// EventTime is what a transformer set; zero for the other handlers.
	EventTime time.Time
	// Drop says that the core acknowledges the message and forwards nothing.
	Drop bool
	// Nack says that the core has the message delivered again. The core looks at it only when Drop is false.
	Nack bool
	// NackOptions are the handler's; zero when it gave none.
	NackOptions NackOptions
}

// A Response is what a sink said about a message.
type Response struct {
	// Status is "success", "failure" (the core tries again), "fallback" (it goes to the fallback sink), "on success" (it goes to
	// the on-success sink), "serve" (it goes to the serving store) or "nack" (it is delivered again).
	Status string
	// Error is the text of a failure.
	Error string
	// Serve is what goes to the serving store.
	Serve []byte
	// OnSuccess is the message for the on-success sink; nil when the sink gave none, and the message itself goes there.
	OnSuccess *Message
	// NackOptions are the sink's; zero when it gave none.
	NackOptions NackOptions
}

// NackOptions say how a message is to be delivered again. What is zero was not given.
type NackOptions struct {
	// Delay before it is, in whole milliseconds.
	Delay time.Duration
	// MaxDeliveries bounds how often.
	MaxDeliveries uint32
	// Reason, for people.
	Reason string
}

func (m *Message) sent() dataplane.Message {
	return dataplane.Message{Keys: m.Keys, Value: m.Value, EventTime: m.EventTime, Watermark: m.Watermark, Headers: m.Headers}
}

func sentAll(msgs []Message) []dataplane.Message {
	all := make([]dataplane.Message, len(msgs))
	for i := range msgs {
		all[i] = msgs[i].sent()
	}
	return all
}

func nackOptions(o *dataplane.NackOptions) NackOptions {
	if o == nil {
		return NackOptions{}
	}
	return NackOptions(*o)
}

func resultsOf(in []dataplane.Result) []Result {
	if in == nil {
		return nil
	}
	out := make([]Result, len(in))
	for i, r := range in {
		out[i] = Result{
			Keys: r.Keys, Value: r.Value, Tags: r.Tags, EventTime: r.EventTime, Drop: r.Drop, Nack: r.Nack,
			NackOptions: nackOptions(r.NackOptions),
		}
	}
	return out
}

func responseOf(r *dataplane.SinkResult) Response {
	out := Response{Status: string(r.Status), Error: r.Error, Serve: r.Serve, NackOptions: nackOptions(r.NackOptions)}
	if m := r.OnSuccess; m != nil {
		out.OnSuccess = &Message{Keys: m.Keys, Value: m.Value}
	}
	return out
}

func offsetsOf(msgs []Message) []dataplane.Offset {
	offsets := make([]dataplane.Offset, len(msgs))
	for i := range msgs {
		offsets[i] = dataplane.Offset(msgs[i].Offset)
	}
	return offsets
}
