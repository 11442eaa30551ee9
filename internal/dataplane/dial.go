package dataplane

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
)

// readyInterval is the pause between two questions whether the server is ready.
const readyInterval = 10 * time.Millisecond

// Dial opens a MapFn stream to the mapper server that listens on the unix socket
// at socketPath. It waits for the socket to appear, for IsReady and for the
// handshake, and fails when ctx ends before. ctx bounds only Dial itself; the
// stream lives until Close, Abort, or the server's end.
//
// Errors: every fault of the options; the end of ctx, with what was waited for;
// a *ProtocolError for a wrong handshake; the server's gRPC status.
func Dial(ctx context.Context, socketPath string, opts ...Option) (*Map, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("dial map server: %w", err)
	}
	conn, err := connect(socketPath, s)
	if err != nil {
		return nil, fmt.Errorf("dial map server at %s: %w", socketPath, err)
	}
	m, err := open(ctx, conn, s)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("dial map server at %s: %w", socketPath, err)
	}
	return m, nil
}

// connect makes the client; gRPC connects at the first call. The path goes
// through a dialer of its own, for a target URL would need it escaped.
func connect(socketPath string, s settings) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///map.sock",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socketPath)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: readyInterval, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
		}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(s.maxMessageSize),
			grpc.MaxCallSendMsgSize(s.maxMessageSize),
		),
	)
}

func open(ctx context.Context, conn *grpc.ClientConn, s settings) (*Map, error) {
	client := mappb.NewMapClient(conn)
	if err := waitReady(ctx, client); err != nil {
		return nil, err
	}
	streamCtx, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	stream, err := handshake(streamCtx, client)
	if !stop() && err == nil {
		err = fmt.Errorf("handshake: %w", context.Cause(ctx))
	}
	if err != nil {
		cancel()
		return nil, err
	}
	m := &Map{
		conn:         conn,
		stream:       stream,
		cancel:       cancel,
		calls:        make([]call, s.concurrency),
		free:         make(chan *call, s.concurrency),
		outbox:       make(chan *mappb.MapRequest, s.concurrency),
		closing:      make(chan struct{}),
		broken:       make(chan struct{}),
		drainTimeout: s.drainTimeout,
	}
	for i := range m.calls {
		c := &m.calls[i]
		c.place = i
		c.done = make(chan *mappb.MapResponse, 1)
		m.free <- c
	}
	m.workers.Add(2)
	go m.send()
	go m.receive()
	return m, nil
}

func waitReady(ctx context.Context, client mappb.MapClient) error {
	for {
		resp, err := client.IsReady(ctx, &emptypb.Empty{}, grpc.WaitForReady(true))
		if err == nil && resp.GetReady() {
			return nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("server not ready: %w", err)
		case <-time.After(readyInterval):
		}
	}
}

func handshake(ctx context.Context, client mappb.MapClient) (mappb.Map_MapFnClient, error) {
	stream, err := client.MapFn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	// A failed Send says only that the stream is over; Recv says why.
	_ = stream.Send(&mappb.MapRequest{Handshake: &mappb.Handshake{Sot: true}})
	resp, err := stream.Recv()
	if err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if !resp.GetHandshake().GetSot() || resp.GetId() != "" || len(resp.GetResults()) > 0 {
		return nil, &ProtocolError{Fault: FaultHandshake}
	}
	return stream, nil
}
