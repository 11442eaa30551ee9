package dataplane

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	numaflow "github.com/numaproj/numaflow-go/pkg"
	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"
)

// NewServer makes the server for a handler, which is a Mapper, BatchMapper, MapStreamer,
// SourceTransformer, Sinker or Sourcer of numaflow-go, on the unix socket at socket.
// The server-info file goes to info. It returns nil for anything else.
func NewServer(handler any, socket, info string) numaflow.Server {
	switch h := handler.(type) {
	case mapsdk.Mapper:
		return mapsdk.NewServer(h, mapsdk.WithSockAddr(socket), mapsdk.WithServerInfoFilePath(info))
	case batchmapsdk.BatchMapper:
		return batchmapsdk.NewServer(h, batchmapsdk.WithSockAddr(socket), batchmapsdk.WithServerInfoFilePath(info))
	case mapstreamsdk.MapStreamer:
		return mapstreamsdk.NewServer(h, mapstreamsdk.WithSockAddr(socket), mapstreamsdk.WithServerInfoFilePath(info))
	case transformsdk.SourceTransformer:
		return transformsdk.NewServer(h, transformsdk.WithSockAddr(socket), transformsdk.WithServerInfoFilePath(info))
	case sinksdk.Sinker:
		return sinksdk.NewServer(h, sinksdk.WithSockAddr(socket), sinksdk.WithServerInfoFilePath(info))
	case sourcesdk.Sourcer:
		return sourcesdk.NewServer(h, sourcesdk.WithSockAddr(socket), sourcesdk.WithServerInfoFilePath(info))
	default:
		return nil
	}
}

// A Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	// Socket is the path of its unix socket. It exists a moment after Start.
	Socket string

	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Serve runs a server for a handler (see New) on a socket in a fresh folder. The
// cleanup of tb stops it and waits for its end. It does not wait for the server to be
// ready.
//
// A stop lets open streams end by themselves for up to 15 s, so whatever is
// connected should be closed before.
func Serve(tb testing.TB, handler any) *Server {
	tb.Helper()
	dir := Dir(tb)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{Socket: filepath.Join(dir, "h.sock"), cancel: cancel, ended: make(chan struct{})}
	server := NewServer(handler, s.Socket, filepath.Join(dir, "server-info"))
	if server == nil {
		cancel()
		tb.Fatalf("numaflow-go has no server for a %T", handler)
	}
	go func() {
		defer close(s.ended)
		s.err = server.Start(ctx)
	}()
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("server of a %T: %v", handler, err)
		}
	})
	return s
}

// Dir returns a folder for sockets, which ends with the test. A socket's path has 107 bytes at most on Linux, and tb.TempDir carries the
// name of the test.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sdk") //nolint:usetesting // see above
	if err != nil {
		tb.Fatalf("folder for sockets: %v", err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("folder of sockets: %v", err)
		}
	})
	return dir
}

// Ended is closed when the server has ended by itself or by Stop. A program
// whose server ends exits.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Stop stops the server, waits for its end and returns the error that its Start
// returned.
func (s *Server) Stop() error {
	s.cancel()
	<-s.ended
	return s.err
}
