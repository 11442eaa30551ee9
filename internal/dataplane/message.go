package dataplane

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// A Message is what the mapper is asked to handle. Its slices and maps must not
// be changed before Do has returned without an error; after an error they may
// still be in use until Close has returned.
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

// A Result is one of the messages that the handler returned for a message.
type Result struct {
	// Keys, Value and Tags are what the handler set.
	Keys  []string
	Value []byte
	Tags  []string
	// Drop tells that the platform acknowledges the message and forwards nothing.
	Drop bool
	// Nack tells that the platform has the message redelivered. The platform
	// looks at it only when Drop is false.
	Nack bool
}

// request is a MapRequest with its parts, so that one message is one allocation.
// It is not used again after it was sent, because gRPC forbids to change a
// message that was passed to Send.
type request struct {
	msg       mappb.MapRequest
	payload   mappb.MapRequest_Request
	eventTime timestamppb.Timestamp
	watermark timestamppb.Timestamp
}

func newRequest(id string, m Message) *mappb.MapRequest {
	r := &request{}
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

func setTime(to *timestamppb.Timestamp, t time.Time) {
	to.Seconds = t.Unix()
	to.Nanos = int32(t.Nanosecond())
}

// results converts a response; a response without results gives nil.
func results(resp *mappb.MapResponse) []Result {
	in := resp.GetResults()
	if len(in) == 0 {
		return nil
	}
	out := make([]Result, len(in))
	for i, r := range in {
		tags := r.GetTags()
		out[i] = Result{
			Keys:  r.GetKeys(),
			Value: r.GetValue(),
			Tags:  tags,
			Drop:  slices.Contains(tags, mapsdk.DROP),
			Nack:  slices.Contains(tags, mapsdk.NACK),
		}
	}
	return out
}
