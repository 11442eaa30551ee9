package handlerproxy

import (
	"slices"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonpb "github.com/numaproj/numaflow-go/pkg/apis/proto/common"
	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
	sourcepb "github.com/numaproj/numaflow-go/pkg/apis/proto/source/v1"
	transformpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sourcetransform/v1"
)

// The proxy's own answers, all made by a wrapper: nacks, drops, failures and messages that are forwarded unchanged.

// encode encodes one of the proxy's own messages, which cannot fail: its texts are the wrappers' or came in a message.
func encode(m proto.Message) []byte {
	raw, _ := proto.Marshal(m)
	return raw
}

var (
	batchEnd = encode(&mappb.MapResponse{Status: &mappb.TransmissionStatus{Eot: true}})
	sinkEnd  = encode(&sinkpb.SinkResponse{Status: &sinkpb.TransmissionStatus{Eot: true}})
	readEnd  = encode(&sourcepb.ReadResponse{Status: &sourcepb.ReadResponse_Status{Eot: true}})
)

func streamEnd(id string) []byte {
	return encode(&mappb.MapResponse{Id: id, Status: &mappb.TransmissionStatus{Eot: true}})
}

// A result is a message made by a wrapper.
type result interface {
	Keys() []string
	Value() []byte
	Tags() []string
	NackOptions() *mapsdk.NackOptions
}

func nackOptions(o *mapsdk.NackOptions) *commonpb.NackOptions {
	if o == nil {
		return nil
	}
	return &commonpb.NackOptions{Reason: o.Reason, MaxDeliveries: o.MaxDeliveries, Delay: o.Delay}
}

// mapResult returns a made message as a result of any map.
func (p *proxy) mapResult(m *message, r result) *mappb.MapResponse_Result {
	if p.forwards(r.Tags()) {
		return &mappb.MapResponse_Result{Keys: m.Keys(), Value: m.Value(), Tags: r.Tags(), Metadata: m.userMetadata()}
	}
	return &mappb.MapResponse_Result{Keys: r.Keys(), Value: r.Value(), Tags: r.Tags(), NackOptions: nackOptions(r.NackOptions())}
}

// forwards reports whether a made message is the original one, under tags.
func (p *proxy) forwards(tags []string) bool {
	return len(p.rules.forward) > 0 && slices.Equal(tags, p.rules.forward)
}

func (p *proxy) mapResponse(m *message, made mapsdk.Messages) []byte {
	resp := &mappb.MapResponse{Id: m.id}
	for _, r := range made.Items() {
		resp.Results = append(resp.Results, p.mapResult(m, r))
	}
	return encode(resp)
}

func (p *proxy) batchResponse(m *message, made []batchmapsdk.Message) []byte {
	resp := &mappb.MapResponse{Id: m.id}
	for _, r := range made {
		resp.Results = append(resp.Results, p.mapResult(m, r))
	}
	return encode(resp)
}

func (p *proxy) streamResponse(m *message, made mapstreamsdk.Message) []byte {
	return encode(&mappb.MapResponse{Id: m.id, Results: []*mappb.MapResponse_Result{p.mapResult(m, made)}})
}

func (p *proxy) transformResponse(m *message, made transformsdk.Messages) []byte {
	resp := &transformpb.SourceTransformResponse{Id: m.id}
	for _, r := range made.Items() {
		out := &transformpb.SourceTransformResponse_Result{
			Keys: r.Keys(), Value: r.Value(), Tags: r.Tags(), NackOptions: nackOptions(r.NackOptions()), EventTime: timestamppb.New(r.EventTime()),
		}
		if p.forwards(r.Tags()) {
			out.Keys, out.Value, out.Metadata = m.Keys(), m.Value(), m.userMetadata()
		}
		resp.Results = append(resp.Results, out)
	}
	return encode(resp)
}

// sinkResult returns a response of the wrapper: a failure, a nack, a success or the way to the fallback sink.
func sinkResult(r sinksdk.Response) []byte {
	out := &sinkpb.SinkResponse_Result{Id: r.ID}
	switch {
	case r.Fallback:
		out.Status = sinkpb.Status_FALLBACK
	case r.Success:
		out.Status = sinkpb.Status_SUCCESS
	case r.Nack:
		out.Status, out.NackOptions = sinkpb.Status_NACK, nackOptions(r.NackOptions)
	default:
		out.Status, out.ErrMsg = sinkpb.Status_FAILURE, r.Err
	}
	return encode(out)
}

// userMetadata returns the part of a message's metadata that is forwarded with it.
func (m *message) userMetadata() *commonpb.Metadata {
	const user protowire.Number = 3
	raw, ok := last(m.body, m.at.metadata)
	if !ok {
		return nil
	}
	var kept []byte
	_ = each(raw, func(f field) {
		if f.num == user {
			kept = append(kept, f.whole...)
		}
	})
	var out commonpb.Metadata
	if proto.Unmarshal(kept, &out) != nil {
		return nil
	}
	return &out
}
