package handlerproxy_test

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
	"github.com/numaproj/numaflow-go/pkg/info"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
)

// A script is a handler that a test makes up, on the wire.
type script struct {
	mappb.UnimplementedMapServer
	sinkpb.UnimplementedSinkServer

	mapFn  func(mappb.Map_MapFnServer) error
	sinkFn func(sinkpb.Sink_SinkFnServer) error
}

func (s *script) MapFn(stream mappb.Map_MapFnServer) error {
	return s.mapFn(stream)
}

func (s *script) SinkFn(stream sinkpb.Sink_SinkFnServer) error {
	return s.sinkFn(stream)
}

type ready struct{ *script }

func (ready) IsReady(context.Context, *emptypb.Empty) (*mappb.ReadyResponse, error) {
	return &mappb.ReadyResponse{Ready: true}, nil
}

type readySink struct{ *script }

func (readySink) IsReady(context.Context, *emptypb.Empty) (*sinkpb.ReadyResponse, error) {
	return &sinkpb.ReadyResponse{Ready: true}, nil
}

// about is what the handler says of itself.
func about(mode string) *info.ServerInfo {
	return &info.ServerInfo{
		Protocol: info.UDS, Language: "cobol", MinimumNumaflowVersion: "1.4.0-z", Version: "9.9",
		Metadata: map[string]string{info.MapModeKey: mode},
	}
}

// listen serves a script as a handler, and returns its server.
func (s *script) listen(t *testing.T, c handlerproxy.Config, says *info.ServerInfo) *grpc.Server {
	t.Helper()
	_ = os.Remove(c.HandlerSocket)
	var lc net.ListenConfig
	lis, err := lc.Listen(t.Context(), "unix", c.HandlerSocket)
	require.NoError(t, err)
	server := grpc.NewServer()
	mappb.RegisterMapServer(server, ready{s})
	sinkpb.RegisterSinkServer(server, readySink{s})
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
	require.NoError(t, info.Write(says, info.WithServerInfoFilePath(c.HandlerServerInfo)))
	return server
}

func connect(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// mapCall opens a stream to a map at socket, with its handshake.
func mapCall(t *testing.T, socket string) mappb.Map_MapFnClient {
	t.Helper()
	stream, err := mappb.NewMapClient(connect(t, socket)).MapFn(within(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&mappb.MapRequest{Handshake: &mappb.Handshake{Sot: true}}))
	hello, err := stream.Recv()
	require.NoError(t, err)
	require.True(t, hello.GetHandshake().GetSot())
	return stream
}

// before starts a proxy before a map that answers its handshake and then does something, and opens a stream to it.
func before(t *testing.T, then func(stream mappb.Map_MapFnServer) error) (p *setup, server *grpc.Server, stream mappb.Map_MapFnClient) {
	t.Helper()
	s := &script{mapFn: func(stream mappb.Map_MapFnServer) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		if err := stream.Send(&mappb.MapResponse{Handshake: &mappb.Handshake{Sot: true}}); err != nil {
			return err
		}
		return then(stream)
	}}
	c := configured(t, handlerproxy.Map, grantAll())
	server = s.listen(t, c, about("unary-map"))
	p = start(t, c)
	return p, server, mapCall(t, p.waitSocket(t))
}

// ask sends a message.
func ask(t *testing.T, stream mappb.Map_MapFnClient, id string) {
	t.Helper()
	require.NoError(t, stream.Send(&mappb.MapRequest{Id: id, Request: &mappb.MapRequest_Request{}}))
}

// later is a field that no protocol of today has.
func later(text string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), text)
}

func TestFieldsOfALaterProtocolPass(t *testing.T) {
	var mu sync.Mutex
	var seen []*mappb.MapRequest
	_, _, stream := before(t, func(stream mappb.Map_MapFnServer) error {
		for {
			req, err := stream.Recv()
			if err != nil {
				return nil //nolint:nilerr // the end
			}
			mu.Lock()
			seen = append(seen, req)
			mu.Unlock()
			resp := &mappb.MapResponse{Id: req.GetId(), Results: []*mappb.MapResponse_Result{{Value: req.GetRequest().GetValue()}}}
			resp.ProtoReflect().SetUnknown(later("response"))
			resp.GetResults()[0].ProtoReflect().SetUnknown(later("result"))
			if err := stream.Send(resp); err != nil {
				return err
			}
		}
	})
	req := &mappb.MapRequest{Id: "1", Request: &mappb.MapRequest_Request{Value: []byte("v")}}
	req.ProtoReflect().SetUnknown(later("request"))
	req.GetRequest().ProtoReflect().SetUnknown(later("message"))
	require.NoError(t, stream.Send(req))
	resp, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, later("response"), []byte(resp.ProtoReflect().GetUnknown()))
	require.Equal(t, later("result"), []byte(resp.GetResults()[0].ProtoReflect().GetUnknown()))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, later("request"), []byte(seen[0].ProtoReflect().GetUnknown()))
	require.Equal(t, later("message"), []byte(seen[0].GetRequest().ProtoReflect().GetUnknown()))
}

func TestAMessageIsAnsweredOnce(t *testing.T) {
	_, _, stream := before(t, func(stream mappb.Map_MapFnServer) error {
		for {
			req, err := stream.Recv()
			if err != nil {
				return nil //nolint:nilerr // the end
			}
			for _, id := range []string{"nobody", req.GetId(), req.GetId()} {
				if err := stream.Send(&mappb.MapResponse{Id: id}); err != nil {
					return err
				}
			}
		}
	})
	for _, id := range []string{"1", "2", "3"} {
		ask(t, stream, id)
		resp, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, id, resp.GetId())
	}
}

func TestAHandlerThatFailsOrEndsItsStreamFailsThePlatforms(t *testing.T) {
	for _, c := range []struct {
		with error
		code codes.Code
		text string
	}{
		{status.Error(codes.Internal, "UDF_EXECUTION_ERROR(udf): boom"), codes.Internal, "UDF_EXECUTION_ERROR(udf): boom"},
		{nil, codes.Unavailable, "the handler has ended its stream"},
	} {
		_, _, stream := before(t, func(stream mappb.Map_MapFnServer) error {
			_, _ = stream.Recv()
			return c.with
		})
		ask(t, stream, "1")
		_, err := stream.Recv()
		require.Equal(t, c.code, status.Code(err))
		require.ErrorContains(t, err, c.text)
	}
}

func TestAHandlerThatDiesAndComesBack(t *testing.T) {
	blocked := make(chan struct{}, 1)
	p, server, stream := before(t, func(stream mappb.Map_MapFnServer) error {
		_, _ = stream.Recv()
		blocked <- struct{}{}
		<-stream.Context().Done()
		return nil
	})
	ask(t, stream, "1")
	<-blocked
	server.Stop()
	_, err := stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "so that the platform delivers it again")

	client := mappb.NewMapClient(connect(t, p.Socket))
	_, err = client.IsReady(within(t), &emptypb.Empty{})
	require.Error(t, err, "while there is no handler")
	again := &script{mapFn: func(stream mappb.Map_MapFnServer) error {
		_, _ = stream.Recv()
		_ = stream.Send(&mappb.MapResponse{Handshake: &mappb.Handshake{Sot: true}})
		req, _ := stream.Recv()
		return stream.Send(&mappb.MapResponse{Id: req.GetId()})
	}}
	newer := about("unary-map")
	newer.Version = "10"
	again.listen(t, p.Config, newer)
	require.Eventually(t, func() bool {
		r, err := client.IsReady(t.Context(), &emptypb.Empty{})
		return err == nil && r.GetReady()
	}, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		says, err := info.Read(info.WithServerInfoFilePath(p.ServerInfo))
		return err == nil && says.Version == "10"
	}, 10*time.Second, 10*time.Millisecond, "the platform reads what the new handler says")
	stream = mapCall(t, p.Socket)
	ask(t, stream, "1")
	resp, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, "1", resp.GetId())
}

func TestAPlatformThatDiesEndsTheHandlersStream(t *testing.T) {
	taken, ended := make(chan struct{}), make(chan struct{})
	p, _, _ := before(t, func(stream mappb.Map_MapFnServer) error {
		if _, err := stream.Recv(); err == nil {
			close(taken)
			<-stream.Context().Done()
			close(ended)
		}
		return nil
	})
	conn, err := grpc.NewClient("unix://"+p.waitSocket(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	stream, err := mappb.NewMapClient(conn).MapFn(within(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&mappb.MapRequest{Handshake: &mappb.Handshake{Sot: true}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	ask(t, stream, "1")
	<-taken
	require.NoError(t, conn.Close())
	select {
	case <-ended:
	case <-within(t).Done():
		require.Fail(t, "the handler works on for nobody")
	}
}

func TestAHandlerWithoutAHandshakeIsRefused(t *testing.T) {
	s := &script{mapFn: func(stream mappb.Map_MapFnServer) error {
		req, _ := stream.Recv()
		return stream.Send(&mappb.MapResponse{Id: req.GetId()})
	}}
	c := configured(t, handlerproxy.Map, grantAll())
	s.listen(t, c, about("unary-map"))
	p := start(t, c)
	stream, err := mappb.NewMapClient(connect(t, p.waitSocket(t))).MapFn(within(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&mappb.MapRequest{Handshake: &mappb.Handshake{Sot: true}}))
	_, err = stream.Recv()
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "older protocol")
}

// sinkCall opens a stream to a sink at socket, with its handshake.
func sinkCall(t *testing.T, socket string) sinkpb.Sink_SinkFnClient {
	t.Helper()
	stream, err := sinkpb.NewSinkClient(connect(t, socket)).SinkFn(within(t))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&sinkpb.SinkRequest{Handshake: &sinkpb.Handshake{Sot: true}}))
	hello, err := stream.Recv()
	require.NoError(t, err)
	require.True(t, hello.GetHandshake().GetSot())
	return stream
}

// sinkBatch sends a batch, and returns the results and whatever else came before its end.
func sinkBatch(t *testing.T, stream sinkpb.Sink_SinkFnClient, ids ...string) (results []*sinkpb.SinkResponse_Result, unknown []byte) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, stream.Send(&sinkpb.SinkRequest{Request: &sinkpb.SinkRequest_Request{Id: id, Value: []byte(id)}}))
	}
	require.NoError(t, stream.Send(&sinkpb.SinkRequest{Status: &sinkpb.TransmissionStatus{Eot: true}}))
	for {
		resp, err := stream.Recv()
		require.NoError(t, err)
		unknown = append(unknown, resp.ProtoReflect().GetUnknown()...)
		results = append(results, resp.GetResults()...)
		if resp.GetStatus().GetEot() {
			return results, unknown
		}
	}
}

func TestResponsesOfASinkThatDoNotMatchItsBatch(t *testing.T) {
	s := &script{sinkFn: func(stream sinkpb.Sink_SinkFnServer) error {
		_, _ = stream.Recv()
		_ = stream.Send(&sinkpb.SinkResponse{Handshake: &sinkpb.Handshake{Sot: true}})
		resp := &sinkpb.SinkResponse{}
		resp.ProtoReflect().SetUnknown(later("response"))
		for {
			req, err := stream.Recv()
			switch {
			case err != nil:
				return nil //nolint:nilerr // the end
			case req.GetStatus().GetEot():
				_ = stream.Send(resp)
				_ = stream.Send(&sinkpb.SinkResponse{Status: &sinkpb.TransmissionStatus{Eot: true}})
				resp = &sinkpb.SinkResponse{}
				continue
			}
			switch id := req.GetRequest().GetId(); id {
			case "missing":
			case "twice":
				resp.Results = append(resp.Results, &sinkpb.SinkResponse_Result{Id: id},
					&sinkpb.SinkResponse_Result{Id: id, Status: sinkpb.Status_FAILURE, ErrMsg: "no"})
			default:
				result := &sinkpb.SinkResponse_Result{Id: id, Status: sinkpb.Status_ON_SUCCESS}
				result.ProtoReflect().SetUnknown(later("result"))
				resp.Results = append(resp.Results, result)
				if id != "plain" {
					resp.Results = append(resp.Results, &sinkpb.SinkResponse_Result{Id: "nobody"})
				}
			}
		}
	}}
	c := configured(t, handlerproxy.Sink, grantAll())
	s.listen(t, c, about(""))
	stream := sinkCall(t, start(t, c).waitSocket(t))

	results, unknown := sinkBatch(t, stream, "plain")
	require.Equal(t, later("response"), unknown, "a response that matches passes as it came")
	require.Len(t, results, 1)
	require.Equal(t, later("result"), []byte(results[0].ProtoReflect().GetUnknown()))

	results, _ = sinkBatch(t, stream, "a", "missing", "twice")
	status := map[string]sinkpb.Status{}
	for _, r := range results {
		status[r.GetId()] = r.GetStatus()
	}
	require.Len(t, results, 3, "one for each message")
	require.Equal(t, map[string]sinkpb.Status{"a": sinkpb.Status_ON_SUCCESS, "missing": sinkpb.Status_FAILURE, "twice": sinkpb.Status_FAILURE}, status)
}
