package grpcthrottle

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A stream is one that was opened, or is to be.
type stream struct {
	i      *Interceptor
	caller context.Context //nolint:containedctx // the call's own
	method string
	start  func(ctx context.Context) (grpc.ClientStream, error)

	// Set by open.
	ctx    context.Context //nolint:containedctx // that of the stream
	cancel context.CancelFunc

	mu     sync.Mutex
	held   *draw // its permit is settled at the end of the stream; nil: each message has one
	last   *draw // the last one, which learns how the stream ended
	opened bool
	ended  bool
	err    error // of the end
}

// open opens the stream with the tokens of d. If that fails nothing has left.
func (s *stream) open(d *draw) (grpc.ClientStream, error) {
	s.ctx, s.cancel = context.WithCancel(s.caller)
	s.held, s.last = d, d
	opened, err := s.start(s.ctx)
	if err != nil {
		s.cancel()
		d.permit.Cancel()
		return nil, err
	}
	s.mu.Lock()
	s.opened = true
	ended := s.ended
	s.mu.Unlock()
	if ended {
		s.end()
	}
	return opened, nil
}

// finish is called by gRPC when the stream has ended, at any time after its start.
func (s *stream) finish(err error) {
	s.mu.Lock()
	s.ended, s.err = true, err
	opened := s.opened
	s.mu.Unlock()
	if opened {
		s.end()
	}
}

func (s *stream) end() {
	defer s.cancel()
	defer s.held.settle()
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	last.judge(s.caller, s.err)
}

// over reports whether the stream has ended.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// A sender is a stream whose messages draw one by one.
type sender struct {
	grpc.ClientStream

	stream *stream
}

// SendMsg implements grpc.ClientStream.
func (s *sender) SendMsg(msg any) error {
	d, err := s.stream.i.draw(s.stream.ctx, s.stream.method, msg)
	if err != nil {
		if s.stream.over() {
			return io.EOF // RecvMsg has the status
		}
		s.stream.cancel() // as after any error of SendMsg
		return err
	}
	s.stream.mu.Lock()
	s.stream.last = d
	s.stream.mu.Unlock()
	if err := s.ClientStream.SendMsg(msg); err != nil {
		d.permit.Cancel() // an error says that the message was not sent
		return err
	}
	d.settle()
	return nil
}

// A single is a stream on which the client sends one message. That opens it, so that no call is at the server while it waits for tokens.
type single struct {
	stream *stream

	mu   sync.Mutex
	sent grpc.ClientStream // nil: not yet
}

var errNotSent = status.Error(codes.FailedPrecondition, "grpcthrottle: the stream opens with its message, and none was sent")

// opened returns the stream; nil: it is not opened.
func (s *single) opened() grpc.ClientStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// SendMsg implements grpc.ClientStream.
func (s *single) SendMsg(msg any) error {
	if opened := s.opened(); opened != nil {
		return opened.SendMsg(msg)
	}
	d, err := s.stream.i.draw(s.stream.caller, s.stream.method, msg)
	if err != nil {
		return err
	}
	opened, err := s.stream.open(d)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.sent = opened
	s.mu.Unlock()
	return opened.SendMsg(msg)
}

// RecvMsg implements grpc.ClientStream.
func (s *single) RecvMsg(msg any) error {
	if opened := s.opened(); opened != nil {
		return opened.RecvMsg(msg)
	}
	return errNotSent
}

// Header implements grpc.ClientStream.
func (s *single) Header() (metadata.MD, error) {
	if opened := s.opened(); opened != nil {
		return opened.Header()
	}
	return nil, errNotSent
}

// Trailer implements grpc.ClientStream.
func (s *single) Trailer() metadata.MD {
	if opened := s.opened(); opened != nil {
		return opened.Trailer()
	}
	return nil
}

// CloseSend implements grpc.ClientStream.
func (s *single) CloseSend() error {
	if opened := s.opened(); opened != nil {
		return opened.CloseSend()
	}
	return nil
}

// Context implements grpc.ClientStream.
func (s *single) Context() context.Context {
	if opened := s.opened(); opened != nil {
		return opened.Context()
	}
	return s.stream.caller
}
