package dataplane

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// readyInterval is the pause between two questions whether the server is ready.
const readyInterval = 10 * time.Millisecond

// dial checks the options, connects, and lets open do the rest.
func dial[T any](ctx context.Context, what, socketPath string, opts []Option,
	open func(context.Context, *grpc.ClientConn, settings) (T, error),
) (stream T, err error) {
	s, err := newSettings(opts)
	if err != nil {
		return stream, fmt.Errorf("dial %s server: %w", what, err)
	}
	conn, err := connect(socketPath, s)
	if err != nil {
		return stream, fmt.Errorf("dial %s server at %s: %w", what, socketPath, err)
	}
	stream, err = open(ctx, conn, s)
	if err != nil {
		_ = conn.Close()
		return stream, fmt.Errorf("dial %s server at %s: %w", what, socketPath, err)
	}
	return stream, nil
}

// connect makes the client; gRPC connects at the first call. The path goes
// through a dialer of its own, for a target URL would need it escaped.
func connect(socketPath string, s settings) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///handler.sock",
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

// waitReady asks until the server says that it is ready. One that serves another kind of handler never will.
func waitReady[R interface{ GetReady() bool }](ctx context.Context,
	isReady func(context.Context, *emptypb.Empty, ...grpc.CallOption) (R, error),
) error {
	for {
		resp, err := isReady(ctx, &emptypb.Empty{}, grpc.WaitForReady(true))
		if err == nil && resp.GetReady() {
			return nil
		}
		if status.Code(err) == codes.Unimplemented {
			return fmt.Errorf("server is of another kind: %w", err)
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

// opened is a stream after its handshake.
type opened[Req, Resp any] struct {
	conn   *grpc.ClientConn
	wire   wire[Req, Resp]
	cancel context.CancelFunc // ends the stream
}

// openStream opens a stream and exchanges handshakes: it sends hello, and the first
// response must be one that isHello takes. ctx bounds only this.
func openStream[Req, Resp any, W wire[Req, Resp]](ctx context.Context, conn *grpc.ClientConn,
	open func(context.Context, ...grpc.CallOption) (W, error), hello Req, isHello func(Resp) bool,
) (opened[Req, Resp], error) {
	streamCtx, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	stream, err := handshake(streamCtx, open, hello, isHello)
	if !stop() && err == nil {
		err = fmt.Errorf("handshake: %w", context.Cause(ctx))
	}
	if err != nil {
		cancel()
		return opened[Req, Resp]{}, err
	}
	return opened[Req, Resp]{conn: conn, wire: stream, cancel: cancel}, nil
}

func handshake[Req, Resp any, W wire[Req, Resp]](ctx context.Context,
	open func(context.Context, ...grpc.CallOption) (W, error), hello Req, isHello func(Resp) bool,
) (stream W, err error) {
	stream, err = open(ctx)
	if err != nil {
		return stream, fmt.Errorf("open stream: %w", err)
	}
	// A failed Send says only that the stream is over; Recv says why.
	_ = stream.Send(hello)
	resp, err := stream.Recv()
	if err != nil {
		return stream, fmt.Errorf("handshake: %w", err)
	}
	if !isHello(resp) {
		return stream, &ProtocolError{Fault: FaultHandshake}
	}
	return stream, nil
}
