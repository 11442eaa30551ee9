package dataplane

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonpb "github.com/numaproj/numaflow-go/pkg/apis/proto/common"
	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
	transformpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sourcetransform/v1"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// A Message is a message for a handler. Its slices and maps must not be changed until the call with it has returned without an error. After
// an error they may still be in use until Close has returned.
type Message struct {
	// Keys of the message; may be empty.
	Keys []string
	// Value is the payload; may be empty.
	Value []byte
	// EventTime and Watermark; the handler sees 1970-01-01 UTC for a zero time.
	EventTime, Watermark time.Time
	// Headers of the message; may be nil.
	Headers map[string]string
}

// A Result is one of the messages that a map handler or a transformer returned for
// a message.
type Result struct {
	// Keys, Value and Tags are set by the handler.
	Keys  []string
	Value []byte
	Tags  []string
	// EventTime is set by a transformer; zero for the other handlers.
	EventTime time.Time
	// Drop reports whether the platform acknowledges the message and forwards nothing.
	Drop bool
	// Nack reports whether the platform redelivers the message. The platform checks it only when Drop is false.
	Nack bool
	// NackOptions are the handler's; nil when it gave none.
	NackOptions *NackOptions
}

// NackOptions say how a message is to be delivered again.
type NackOptions struct {
	// Delay before it is; 0 when the handler gave none. On the wire it is whole
	// milliseconds.
	Delay time.Duration
	// MaxDeliveries bounds how often; 0 when the handler gave no bound.
	MaxDeliveries uint32
	// Reason, for people.
	Reason string
}

func nackOptions(o *commonpb.NackOptions) *NackOptions {
	if o == nil {
		return nil
	}
	return &NackOptions{
		Delay:         time.Duration(o.GetDelay()) * time.Millisecond,
		MaxDeliveries: o.GetMaxDeliveries(),
		Reason:        o.GetReason(),
	}
}

// proto is the inverse: zero values are omitted.
func (o *NackOptions) proto() *commonpb.NackOptions {
	if o == nil {
		return nil
	}
	out := &commonpb.NackOptions{}
	if o.Delay > 0 {
		ms := uint64(o.Delay / time.Millisecond)
		out.Delay = &ms
	}
	if o.MaxDeliveries > 0 {
		out.MaxDeliveries = &o.MaxDeliveries
	}
	if o.Reason != "" {
		out.Reason = &o.Reason
	}
	return out
}

// mapRequest is a MapRequest with its parts, so that one message is one allocation.
// It is not used again after it was sent, because gRPC forbids to change a
// message that was passed to Send.
type mapRequest struct {
	msg       mappb.MapRequest
	payload   mappb.MapRequest_Request
	eventTime timestamppb.Timestamp
	watermark timestamppb.Timestamp
}

func newMapRequest(id string, m Message) *mappb.MapRequest {
	r := &mapRequest{}
	r.payload.Keys = m.Keys
	r.payload.Value = m.Value
	r.payload.Headers = m.Headers
	if !m.EventTime.IsZero() {
		setTime(&r.eventTime, m.EventTime)
		r.payload.EventTime = &r.eventTime
	}
	if !m.Watermark.IsZero() {
		setTime(&r.watermark, m.Watermark)
		r.payload.Watermark = &r.watermark
	}
	r.msg.Request = &r.payload
	r.msg.Id = id
	return &r.msg
}

func newTransformRequest(id string, m Message) *transformpb.SourceTransformRequest {
	return &transformpb.SourceTransformRequest{Request: &transformpb.SourceTransformRequest_Request{
		Id: id, Keys: m.Keys, Value: m.Value, Headers: m.Headers,
		EventTime: protoTime(m.EventTime), Watermark: protoTime(m.Watermark),
	}}
}

func newSinkRequest(id string, m Message) *sinkpb.SinkRequest {
	return &sinkpb.SinkRequest{Request: &sinkpb.SinkRequest_Request{
		Id: id, Keys: m.Keys, Value: m.Value, Headers: m.Headers,
		EventTime: protoTime(m.EventTime), Watermark: protoTime(m.Watermark),
	}}
}

func setTime(to *timestamppb.Timestamp, t time.Time) {
	to.Seconds = t.Unix()
	to.Nanos = int32(t.Nanosecond())
}

// protoTime leaves a zero time out.
func protoTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// results converts a response; a response without results gives nil.
func results(resp *mappb.MapResponse) []Result {
	in := resp.GetResults()
	if len(in) == 0 {
		return nil
	}
	out := make([]Result, len(in))
	for i, r := range in {
		out[i] = newResult(r.GetKeys(), r.GetValue(), r.GetTags(), r.GetNackOptions())
	}
	return out
}

// transformed is results for a transformer.
func transformed(resp *transformpb.SourceTransformResponse) []Result {
	in := resp.GetResults()
	out := make([]Result, len(in))
	for i, r := range in {
		out[i] = newResult(r.GetKeys(), r.GetValue(), r.GetTags(), r.GetNackOptions())
		out[i].EventTime = r.GetEventTime().AsTime()
	}
	return out
}

// newResult knows the tags by those of package mapper; the other map handlers and
// the transformer have the same ones, as has the platform.
func newResult(keys []string, value []byte, tags []string, nack *commonpb.NackOptions) Result {
	return Result{
		Keys:        keys,
		Value:       value,
		Tags:        tags,
		Drop:        slices.Contains(tags, mapsdk.DROP),
		Nack:        slices.Contains(tags, mapsdk.NACK),
		NackOptions: nackOptions(nack),
	}
}
