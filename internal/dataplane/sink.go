package dataplane

import (
	"context"

	"google.golang.org/grpc"

	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
)

// A Sink is one open stream to a sink: main, fallback or on-success, which do not differ on the wire. All its methods are safe for
// concurrent use. A SinkWriter combines them as the platform does.
type Sink struct {
	batches[*sinkpb.SinkRequest, *sinkpb.SinkResponse, SinkResult]
}

// A SinkStatus is what a sink says about a message.
type SinkStatus string

// The statuses.
const (
	SinkSuccess   SinkStatus = "success"
	SinkFailure   SinkStatus = "failure"    // the platform tries again
	SinkFallback  SinkStatus = "fallback"   // it goes to the fallback sink
	SinkServe     SinkStatus = "serve"      // it goes to the serving store
	SinkOnSuccess SinkStatus = "on success" // it goes to the on-success sink
	SinkNack      SinkStatus = "nack"       // it is delivered again
)

var sinkStatuses = map[sinkpb.Status]SinkStatus{
	sinkpb.Status_SUCCESS:    SinkSuccess,
	sinkpb.Status_FAILURE:    SinkFailure,
	sinkpb.Status_FALLBACK:   SinkFallback,
	sinkpb.Status_SERVE:      SinkServe,
	sinkpb.Status_ON_SUCCESS: SinkOnSuccess,
	sinkpb.Status_NACK:       SinkNack,
}

// A SinkResult is the response of a sink to one message.
type SinkResult struct {
	// ID is the message's, as the handler has seen it.
	ID     string
	Status SinkStatus
	// Error is the text of a failure.
	Error string
	// Serve is the response to be served.
	Serve []byte
	// OnSuccess is the message for the on-success sink, with its keys and value; nil
	// when the sink gave none, and the message itself is sent.
	OnSuccess *Message
	// NackOptions are the handler's; nil when it gave none.
	NackOptions *NackOptions
}

// DialSink opens a stream to the sink at socketPath, as Dial does to a unary
// mapper.
func DialSink(ctx context.Context, socketPath string, opts ...Option) (*Sink, error) {
	return dial(ctx, "sink", socketPath, opts, func(ctx context.Context, conn *grpc.ClientConn, s settings) (*Sink, error) {
		client := sinkpb.NewSinkClient(conn)
		if err := waitReady(ctx, client.IsReady); err != nil {
			return nil, err
		}
		o, err := openStream(ctx, conn, client.SinkFn,
			&sinkpb.SinkRequest{Handshake: &sinkpb.Handshake{Sot: true}},
			func(resp *sinkpb.SinkResponse) bool {
				return resp.GetHandshake().GetSot() && resp.GetStatus() == nil && len(resp.GetResults()) == 0
			})
		if err != nil {
			return nil, err
		}
		k := &Sink{}
		k.start(o, s, inspectSunk)
		return k, nil
	})
}

// Do sends one batch and returns the sink's response to each message, in the order
// of msgs; otherwise it is like BatchMap.Do. It neither tries again nor routes: that
// is SinkWriter's.
func (k *Sink) Do(ctx context.Context, msgs []Message) ([]SinkResult, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	return k.write(ctx, k.newIDs(len(msgs)), msgs)
}

// write sends a batch under IDs of the caller's, which are unique in it.
func (k *Sink) write(ctx context.Context, ids []string, msgs []Message) ([]SinkResult, error) {
	requests := make([]*sinkpb.SinkRequest, 0, len(msgs)+1)
	for i, msg := range msgs {
		requests = append(requests, newSinkRequest(ids[i], msg))
	}
	requests = append(requests, &sinkpb.SinkRequest{Status: &sinkpb.TransmissionStatus{Eot: true}})
	return k.do(ctx, ids, requests)
}

func inspectSunk(resp *sinkpb.SinkResponse) (answers []answer[SinkResult], eot bool, err error) {
	for _, r := range resp.GetResults() {
		if sinkStatuses[r.GetStatus()] == "" {
			return nil, false, &ProtocolError{Fault: FaultStatus, IDs: []string{r.GetId()}}
		}
		answers = append(answers, answer[SinkResult]{id: r.GetId(), res: newSinkResult(r)})
	}
	switch eot = resp.GetStatus().GetEot(); {
	case resp.GetHandshake() != nil:
		return nil, false, &ProtocolError{Fault: FaultHandshake}
	case eot && len(answers) > 0, !eot && resp.GetStatus() != nil:
		return nil, false, &ProtocolError{Fault: FaultStatus, IDs: idsOf(answers)}
	}
	return answers, eot, nil
}

func idsOf[Res any](answers []answer[Res]) []string {
	ids := make([]string, len(answers))
	for i, a := range answers {
		ids[i] = a.id
	}
	return ids
}

func newSinkResult(r *sinkpb.SinkResponse_Result) SinkResult {
	out := SinkResult{
		ID:          r.GetId(),
		Status:      sinkStatuses[r.GetStatus()],
		Error:       r.GetErrMsg(),
		Serve:       r.GetServeResponse(),
		NackOptions: nackOptions(r.GetNackOptions()),
	}
	if m := r.GetOnSuccessMsg(); m != nil {
		out.OnSuccess = &Message{Keys: m.GetKeys(), Value: m.GetValue()}
	}
	return out
}
