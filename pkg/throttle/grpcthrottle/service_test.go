package grpcthrottle_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/grpcthrottle"
)

// A service is a real gRPC server. Each unary call and each stream gets the next answer of its script; the last one goes on for ever.
type service struct {
	pb.UnimplementedTestServiceServer

	mu     sync.Mutex
	script []error // nil: OK
	calls  int
	got    int           // messages on streams
	ended  chan struct{} // a stream has ended without the client's doing so
}

func (s *service) answer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if len(s.script) == 0 {
		return nil
	}
	err := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	return err
}

func (s *service) seen() (calls, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.got
}

func (s *service) message() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got++
}

func (s *service) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{}, s.answer()
}

// StreamingOutputCall answers one request with a message, and ends when the client has sent another call.
func (s *service) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, out grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	s.message()
	if err := s.answer(); err != nil {
		return err
	}
	return out.Send(&pb.StreamingOutputCallResponse{})
}

// FullDuplexCall answers each message with one, until the client is done.
func (s *service) FullDuplexCall(both grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	err := s.answer()
	for err == nil {
		if _, err = both.Recv(); err != nil {
			break
		}
		s.message()
		err = both.Send(&pb.StreamingOutputCallResponse{})
	}
	select {
	case <-both.Context().Done():
		close(s.ended)
	default:
	}
	if status.Code(err) == codes.Unknown { // the client is done
		return nil
	}
	return err
}

// serve starts a service on a free port of loopback.
func serve(t *testing.T, script ...error) (s *service, addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s = &service{script: script, ended: make(chan struct{})}
	server := grpc.NewServer()
	pb.RegisterTestServiceServer(server, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	stop = func() {
		server.Stop()
		<-done
	}
	t.Cleanup(stop)
	return s, l.Addr().String(), stop
}

// dial returns a client whose calls draw from l.
func dial(t *testing.T, addr string, l throttle.Limiter, opts ...grpcthrottle.Option) pb.TestServiceClient {
	t.Helper()
	throttled, err := grpcthrottle.New(l, opts...)
	require.NoError(t, err)
	return connect(t, addr, throttled)
}

func connect(t *testing.T, addr string, throttled *grpcthrottle.Interceptor, more ...grpc.DialOption) pb.TestServiceClient {
	t.Helper()
	options := append(throttled.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("passthrough:///"+addr, append(options, more...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return pb.NewTestServiceClient(conn)
}

// refusal returns a server's status that says when to come back; 0: it does not say.
func refusal(code codes.Code, after time.Duration) error {
	s := status.New(code, "too many calls")
	if after != 0 {
		s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	return s.Err()
}

// sized returns a request with a cost, which costOf finds.
func sized(cost int) *pb.SimpleRequest { return &pb.SimpleRequest{ResponseSize: int32(cost)} }

func message(cost int) *pb.StreamingOutputCallRequest {
	return &pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: int32(cost)}}}
}

func costOf(_ context.Context, _ string, msg any) int {
	switch m := msg.(type) {
	case *pb.SimpleRequest:
		return int(m.GetResponseSize())
	case *pb.StreamingOutputCallRequest:
		return int(m.GetResponseParameters()[0].GetSize())
	}
	panic("a message of type " + strconv.Quote("?"))
}

// retryIn returns the time of the RetryInfo in an error; 0: there is none.
func retryIn(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
