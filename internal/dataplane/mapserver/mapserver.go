// Package mapserver runs real numaflow-go mapper servers inside tests and
// benchmarks.
package mapserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// A Server is a running mapper server. Its methods may be called from any
// goroutine.
type Server struct {
	// Socket is the path of its unix socket. It exists a moment after Start.
	Socket string

	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Start runs a server for m on a socket in a fresh folder. The cleanup of tb
// stops it and waits for its end. It does not wait for the server to be ready.
//
// A stop lets open streams end by themselves for up to 15 s, so whatever is
// connected should be closed before.
func Start(tb testing.TB, m mapsdk.Mapper) *Server {
	tb.Helper()
	// tb.TempDir carries the test's name, which can make a path too long for a
	// socket (107 bytes on Linux).
	dir, err := os.MkdirTemp("", "map") //nolint:usetesting // see above
	if err != nil {
		tb.Fatalf("folder for the socket: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{Socket: filepath.Join(dir, "map.sock"), cancel: cancel, ended: make(chan struct{})}
	server := mapsdk.NewServer(m,
		mapsdk.WithSockAddr(s.Socket),
		mapsdk.WithServerInfoFilePath(filepath.Join(dir, "server-info")))
	go func() {
		defer close(s.ended)
		s.err = server.Start(ctx)
	}()
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("map server: %v", err)
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("folder of the socket: %v", err)
		}
	})
	return s
}

// Ended is closed when the server has ended by itself or by Stop. A program
// whose server ends exits.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// BeginStop stops the server as SIGTERM does, without waiting for its end.
func (s *Server) BeginStop() { s.cancel() }

// Stop stops the server, waits for its end and returns the error that its Start
// returned.
func (s *Server) Stop() error {
	s.cancel()
	<-s.ended
	return s.err
}
