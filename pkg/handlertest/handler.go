package handlertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// Errors to compare with errors.Is.
var (
	// ErrProtocol is that the handler broke the protocol. The text says how, and names the messages.
	ErrProtocol = errors.New("the handler broke the protocol")
	// ErrBroken is that the stream ended before the message was answered: the handler broke the protocol, ended or failed. The
	// core would have the message delivered again.
	ErrBroken = dataplane.ErrBroken
)

// Times that no caller sets.
const (
	// callTimeout is how long a call lasts whose context has no deadline.
	callTimeout = time.Minute
	// closeTimeout is how long Close waits for answers that are still due: those of calls that were given up.
	closeTimeout = time.Second
	// dialInterval is the pause between two attempts to reach a socket.
	dialInterval = 20 * time.Millisecond
)

// A Handler is a connection to a handler. It opens its streams with the first call, and is of the kind of that call from then
// on. All its methods may be called from any number of goroutines at once. Once a stream is broken every call fails, as a pod
// would be started anew.
type Handler struct {
	socket string
	// lock is a mutex that can be waited for with a context; it guards what follows.
	lock   chan struct{}
	kind   string // the method that the handler is called by; empty: not known yet
	stream stream // nil before the first call
	closed bool
}

// A stream is what each kind of connection has.
type stream interface{ Close() error }

func newHandler(socket, kind string) *Handler {
	return &Handler{socket: socket, kind: kind, lock: make(chan struct{}, 1)}
}

// Start serves handler, a Mapper, BatchMapper, MapStreamer, SourceTransformer, Sinker or Sourcer of numaflow-go, wrapped or
// not, on a socket of its own, and returns a connection to it. The test fails at once when it is something else, and at its end
// when the server failed or the handler broke the protocol. The cleanup of tb closes the connection and stops the server; an
// earlier Close is allowed, and its error is then the caller's.
func Start(tb testing.TB, handler any) *Handler {
	tb.Helper()
	h := newHandler(dataplane.Serve(tb, handler).Socket, kindOf(handler))
	tb.Cleanup(func() {
		if err := h.close(); err != nil {
			tb.Errorf("handler %T: %v", handler, err)
		}
	})
	return h
}

// kindOf returns the method by which a handler is called, for the types that sdkserver.New takes.
func kindOf(handler any) string {
	switch handler.(type) {
	case mapsdk.Mapper:
		return "Map"
	case batchmapsdk.BatchMapper:
		return "BatchMap"
	case mapstreamsdk.MapStreamer:
		return "MapStream"
	case transformsdk.SourceTransformer:
		return "Transform"
	case sinksdk.Sinker:
		return "Sink"
	case sourcesdk.Sourcer:
		return "Read"
	}
	return ""
}

// Dial connects to a handler that listens on the unix socket at path, in any language and process. It waits until somebody
// does, or ctx ends, or a minute has passed if ctx has no deadline. Close the Handler.
//
// The first call decides of which kind the handler is. Whether a unary, a batch or a stream map listens cannot be seen from
// the socket: called by the wrong one of the three methods, it breaks the protocol or does not answer.
func Dial(ctx context.Context, path string) (*Handler, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return newHandler(path, ""), conn.Close()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("nobody listens on the socket %s: %w: %w", path, context.Cause(ctx), err)
		case <-time.After(dialInterval):
		}
	}
}

// bounded gives a context a deadline that has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("the call had no deadline, and ended after %s: %w", callTimeout, context.DeadlineExceeded))
}

// open returns the stream of a kind, and opens it for the first call.
func open[S stream](ctx context.Context, h *Handler, kind string,
	dial func(ctx context.Context, socket string, opts ...dataplane.Option) (S, error),
) (s S, err error) {
	select {
	case h.lock <- struct{}{}:
		defer func() { <-h.lock }()
	case <-ctx.Done():
		return s, context.Cause(ctx)
	}
	switch {
	case h.closed:
		return s, fmt.Errorf("%s: the connection is closed", kind)
	case h.kind != "" && h.kind != kind:
		return s, fmt.Errorf("%s: this handler is called by %s, and by no other kind of call", kind, h.kind)
	case h.stream != nil:
		return h.stream.(S), nil //nolint:errcheck,forcetypeassert // each kind has one type
	}
	s, err = dial(ctx, h.socket, dataplane.WithDrainTimeout(closeTimeout))
	if err != nil {
		return s, explain(err)
	}
	h.kind, h.stream = kind, s
	return s, nil
}

// Close ends the connection. It waits up to a second for answers that are still due. A second Close does nothing.
//
// Errors: [ErrProtocol] and [ErrBroken] for what happened since the last call, or was the error of a call before; one that names
// messages without an answer.
func (h *Handler) Close() error { return h.close() }

func (h *Handler) close() error {
	h.lock <- struct{}{}
	defer func() { <-h.lock }()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.stream == nil {
		return nil
	}
	return explain(h.stream.Close())
}

// explain marks what is a fault of the handler.
func explain(err error) error {
	if _, ok := errors.AsType[*dataplane.ProtocolError](err); ok {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return err
}
