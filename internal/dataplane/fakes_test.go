package dataplane

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	sinkpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sink/v1"
	sourcepb "github.com/numaproj/numaflow-go/pkg/apis/proto/source/v1"
	transformpb "github.com/numaproj/numaflow-go/pkg/apis/proto/sourcetransform/v1"
)

// script is what a misbehaving server does: first is sent in place of the handshake,
// or hello if it is nil; then answer handles one request after another, until it is
// false.
type script[Req, Resp any] struct {
	first  *Resp
	answer func(req *Req, send func(*Resp)) bool
}

func (s *script[Req, Resp]) play(recv func() (*Req, error), send func(*Resp) error, hello *Resp) error {
	if _, err := recv(); err != nil {
		return err
	}
	if s.first != nil {
		hello = s.first
	}
	if err := send(hello); err != nil {
		return err
	}
	for {
		req, err := recv()
		if err != nil {
			return nil //nolint:nilerr // the client closed its side
		}
		if s.answer == nil || !s.answer(req, func(r *Resp) { _ = send(r) }) {
			return nil
		}
	}
}

type fakeMap struct {
	mappb.UnimplementedMapServer
	script[mappb.MapRequest, mappb.MapResponse]
	// notReady is how often IsReady says no.
	notReady atomic.Int64
}

func (f *fakeMap) IsReady(context.Context, *emptypb.Empty) (*mappb.ReadyResponse, error) {
	return &mappb.ReadyResponse{Ready: f.notReady.Add(-1) < 0}, nil
}

func (f *fakeMap) MapFn(stream mappb.Map_MapFnServer) error {
	return f.play(stream.Recv, stream.Send, &mappb.MapResponse{Handshake: &mappb.Handshake{Sot: true}})
}

type fakeTransform struct {
	transformpb.UnimplementedSourceTransformServer
	script[transformpb.SourceTransformRequest, transformpb.SourceTransformResponse]
}

func (f *fakeTransform) IsReady(context.Context, *emptypb.Empty) (*transformpb.ReadyResponse, error) {
	return &transformpb.ReadyResponse{Ready: true}, nil
}

func (f *fakeTransform) SourceTransformFn(stream transformpb.SourceTransform_SourceTransformFnServer) error {
	return f.play(stream.Recv, stream.Send,
		&transformpb.SourceTransformResponse{Handshake: &transformpb.Handshake{Sot: true}})
}

type fakeSink struct {
	sinkpb.UnimplementedSinkServer
	script[sinkpb.SinkRequest, sinkpb.SinkResponse]
}

func (f *fakeSink) IsReady(context.Context, *emptypb.Empty) (*sinkpb.ReadyResponse, error) {
	return &sinkpb.ReadyResponse{Ready: true}, nil
}

func (f *fakeSink) SinkFn(stream sinkpb.Sink_SinkFnServer) error {
	return f.play(stream.Recv, stream.Send, &sinkpb.SinkResponse{Handshake: &sinkpb.Handshake{Sot: true}})
}

type fakeSource struct {
	sourcepb.UnimplementedSourceServer
	reads script[sourcepb.ReadRequest, sourcepb.ReadResponse]
	acks  script[sourcepb.AckRequest, sourcepb.AckResponse]
}

func (f *fakeSource) IsReady(context.Context, *emptypb.Empty) (*sourcepb.ReadyResponse, error) {
	return &sourcepb.ReadyResponse{Ready: true}, nil
}

func (f *fakeSource) ReadFn(stream sourcepb.Source_ReadFnServer) error {
	return f.reads.play(stream.Recv, stream.Send, &sourcepb.ReadResponse{
		Handshake: &sourcepb.Handshake{Sot: true}, Status: &sourcepb.ReadResponse_Status{},
	})
}

func (f *fakeSource) AckFn(stream sourcepb.Source_AckFnServer) error {
	return f.acks.play(stream.Recv, stream.Send, &sourcepb.AckResponse{
		Handshake: &sourcepb.Handshake{Sot: true}, Result: &sourcepb.AckResponse_Result{Success: &emptypb.Empty{}},
	})
}

func (f *fakeSource) PendingFn(context.Context, *emptypb.Empty) (*sourcepb.PendingResponse, error) {
	return &sourcepb.PendingResponse{}, nil
}

func (f *fakeSource) PartitionsFn(context.Context, *emptypb.Empty) (*sourcepb.PartitionsResponse, error) {
	return &sourcepb.PartitionsResponse{}, nil
}

func (f *fakeSource) NackFn(context.Context, *sourcepb.NackRequest) (*sourcepb.NackResponse, error) {
	return &sourcepb.NackResponse{}, nil
}

// startScripted serves one of the fakes.
func startScripted(t *testing.T, fake any) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	lis, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := grpc.NewServer()
	switch f := fake.(type) {
	case *fakeMap:
		mappb.RegisterMapServer(server, f)
	case *fakeTransform:
		transformpb.RegisterSourceTransformServer(server, f)
	case *fakeSink:
		sinkpb.RegisterSinkServer(server, f)
	case *fakeSource:
		sourcepb.RegisterSourceServer(server, f)
	default:
		require.Fail(t, "no such fake", "%T", fake)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return socket
}

// requireFault checks that the error names fault and IDs.
func requireFault(t *testing.T, err error, fault Fault, ids ...string) {
	t.Helper()
	require.ErrorIs(t, err, ErrBroken)
	var p *ProtocolError
	require.ErrorAs(t, err, &p)
	require.Equal(t, fault, p.Fault)
	require.Equal(t, ids, p.IDs)
	for _, id := range ids {
		require.ErrorContains(t, err, id)
	}
}

// awaitBroken waits until a stream is over.
func awaitBroken(t *testing.T, broken <-chan struct{}) {
	t.Helper()
	select {
	case <-broken:
	case <-testContext(t).Done():
		require.Fail(t, "the stream did not break")
	}
}

// dialled registers the stream's end.
func dialled[S interface{ Abort() }](t *testing.T) func(s S, err error) S {
	t.Helper()
	return func(s S, err error) S {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(s.Abort)
		return s
	}
}

func messages(values ...string) []Message {
	msgs := make([]Message, len(values))
	for i, v := range values {
		msgs[i] = Message{Value: []byte(v)}
	}
	return msgs
}
