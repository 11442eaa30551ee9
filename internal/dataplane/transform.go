package dataplane

import (
	"context"

	"google.golang.org/grpc"

	transformpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sourcetransform/v1"
)

// A Transform is one open stream to a source transformer. All its methods are safe for concurrent use.
type Transform struct {
	flow[*transformpb.SourceTransformRequest, *transformpb.SourceTransformResponse]
}

// DialTransform opens a stream to the source transformer at socketPath, as Dial
// does to a unary mapper.
func DialTransform(ctx context.Context, socketPath string, opts ...Option) (*Transform, error) {
	return dial(ctx, "transform", socketPath, opts, func(ctx context.Context, conn *grpc.ClientConn, s settings) (*Transform, error) {
		client := transformpb.NewSourceTransformClient(conn)
		if err := waitReady(ctx, client.IsReady); err != nil {
			return nil, err
		}
		o, err := openStream(ctx, conn, client.SourceTransformFn,
			&transformpb.SourceTransformRequest{Handshake: &transformpb.Handshake{Sot: true}},
			func(resp *transformpb.SourceTransformResponse) bool {
				return resp.GetHandshake().GetSot() && resp.GetId() == "" && len(resp.GetResults()) == 0
			})
		if err != nil {
			return nil, err
		}
		t := &Transform{}
		t.start(o, s, inspectTransformed, FaultMissingID)
		return t, nil
	})
}

// Do sends one message and returns the transformer's results, at least one: an empty answer ends the pod on the platform, and breaks the
// stream here. Otherwise it is like Map.Do.
func (t *Transform) Do(ctx context.Context, msg Message) ([]Result, error) {
	resp, _, err := t.do(ctx, func(id string) *transformpb.SourceTransformRequest {
		return newTransformRequest(id, msg)
	})
	if err != nil {
		return nil, err
	}
	return transformed(resp), nil
}

func inspectTransformed(resp *transformpb.SourceTransformResponse) (id string, last bool, err error) {
	id = resp.GetId()
	switch {
	case resp.GetHandshake() != nil:
		return "", false, &ProtocolError{Fault: FaultHandshake}
	case len(resp.GetResults()) == 0:
		return "", false, &ProtocolError{Fault: FaultEmpty, IDs: []string{id}}
	}
	for _, r := range resp.GetResults() {
		if r.GetEventTime() == nil {
			return "", false, &ProtocolError{Fault: FaultEventTime, IDs: []string{id}}
		}
	}
	return id, true, nil
}
