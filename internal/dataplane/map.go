package dataplane

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
)

// A Map is one open stream to a unary mapper. All its methods are safe for concurrent use.
type Map struct {
	flow[*mappb.MapRequest, *mappb.MapResponse]
}

// Dial opens a stream to the unary mapper that listens on the unix socket at socketPath. It waits for the socket to appear, for IsReady and
// for the handshake, and fails if ctx ends before. ctx bounds only Dial; the stream lives until Close, Abort, or the server's end.
//
// Errors: every fault of the options; the end of ctx, with the missing step; a *ProtocolError for a wrong handshake; the server's gRPC
// status.
func Dial(ctx context.Context, socketPath string, opts ...Option) (*Map, error) {
	return dial(ctx, "map", socketPath, opts, func(ctx context.Context, conn *grpc.ClientConn, s settings) (*Map, error) {
		o, err := openMap(ctx, conn)
		if err != nil {
			return nil, err
		}
		m := &Map{}
		m.start(o, s, inspectUnary, FaultMissingID)
		return m, nil
	})
}

// Do sends one message and returns the handler's results: nil for an empty answer. It blocks until a place is free, then until the answer
// is there.
//
// When ctx ends before a place is free nothing was sent. When it ends later, Do
// returns but the message stays in flight and keeps its place until the server
// answers it; its ID is in the error.
//
// Errors: the cause of ctx; ErrBroken when the stream broke before the answer
// came (the platform would redeliver the message); ErrClosed when the message
// was not sent because Close had begun.
func (m *Map) Do(ctx context.Context, msg Message) ([]Result, error) {
	resp, _, err := m.do(ctx, func(id string) *mappb.MapRequest { return newMapRequest(id, msg) })
	if err != nil {
		return nil, err
	}
	return results(resp), nil
}

// Flood sends a message n times, as often at once as may be in flight, and returns the first error.
func (m *Map) Flood(ctx context.Context, msg Message, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var sent atomic.Int64
	for range len(m.calls) {
		all.Go(func() {
			for sent.Add(1) <= int64(n) {
				if _, err := m.Do(ctx, msg); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func inspectUnary(resp *mappb.MapResponse) (id string, last bool, err error) {
	id = resp.GetId()
	switch {
	case resp.GetHandshake() != nil:
		return "", false, &ProtocolError{Fault: FaultHandshake}
	case resp.GetStatus() != nil:
		return "", false, &ProtocolError{Fault: FaultStatus, IDs: []string{id}}
	}
	return id, true, nil
}

// openMap opens a MapFn stream, which unary, stream and batch map have in common.
func openMap(ctx context.Context, conn *grpc.ClientConn) (opened[*mappb.MapRequest, *mappb.MapResponse], error) {
	client := mappb.NewMapClient(conn)
	if err := waitReady(ctx, client.IsReady); err != nil {
		return opened[*mappb.MapRequest, *mappb.MapResponse]{}, err
	}
	return openStream(ctx, conn, client.MapFn,
		&mappb.MapRequest{Handshake: &mappb.Handshake{Sot: true}},
		func(resp *mappb.MapResponse) bool {
			return resp.GetHandshake().GetSot() && resp.GetId() == "" && len(resp.GetResults()) == 0
		})
}
