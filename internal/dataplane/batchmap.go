package dataplane

import (
	"context"

	"google.golang.org/grpc"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
)

// A BatchMap is one open stream to a batch mapper. All its methods are safe for concurrent use.
type BatchMap struct {
	batches[*mappb.MapRequest, *mappb.MapResponse, []Result]
}

// DialBatchMap opens a stream to the batch mapper at socketPath, as Dial does to a
// unary one.
func DialBatchMap(ctx context.Context, socketPath string, opts ...Option) (*BatchMap, error) {
	return dial(ctx, "batch map", socketPath, opts, func(ctx context.Context, conn *grpc.ClientConn, s settings) (*BatchMap, error) {
		o, err := openMap(ctx, conn)
		if err != nil {
			return nil, err
		}
		m := &BatchMap{}
		m.start(o, s, inspectBatched)
		return m, nil
	})
}

// Do sends one batch, ended by an end-of-transmission mark, and returns what the
// handler made of each message, in the order of msgs: nil for an empty answer. It
// waits for the batch before, and then until the server has answered every message
// and ended the batch. Without messages nothing is sent.
//
// When ctx ends before the batch before did, nothing was sent. When it ends later,
// Do returns but the batch stays in flight, and holds up the next, until it ends.
//
// Errors: the cause of ctx; ErrBroken when the stream broke before the end of the
// batch (the platform would redeliver all of it); ErrClosed when nothing was sent
// because Close had begun.
func (m *BatchMap) Do(ctx context.Context, msgs []Message) ([][]Result, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	ids := m.newIDs(len(msgs))
	requests := make([]*mappb.MapRequest, 0, len(msgs)+1)
	for i, msg := range msgs {
		requests = append(requests, newMapRequest(ids[i], msg))
	}
	requests = append(requests, &mappb.MapRequest{Status: &mappb.TransmissionStatus{Eot: true}})
	return m.do(ctx, ids, requests)
}

func inspectBatched(resp *mappb.MapResponse) (answers []answer[[]Result], eot bool, err error) {
	id := resp.GetId()
	switch eot = resp.GetStatus().GetEot(); {
	case resp.GetHandshake() != nil:
		return nil, false, &ProtocolError{Fault: FaultHandshake}
	case eot && (id != "" || len(resp.GetResults()) > 0), !eot && resp.GetStatus() != nil:
		return nil, false, &ProtocolError{Fault: FaultStatus, IDs: []string{id}}
	case eot:
		return nil, true, nil
	}
	return []answer[[]Result]{{id: id, res: results(resp)}}, false, nil
}
