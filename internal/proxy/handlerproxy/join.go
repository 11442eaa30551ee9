package handlerproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// An exchange joins a stream of the platform to its own stream to the handler. When either fails, the other fails, too.
type exchange struct {
	proxy *proxy
	// ctx ends with the exchange; its cause is the status for the platform.
	ctx      context.Context //nolint:containedctx // lives as long as the stream that it belongs to
	cancel   context.CancelCauseFunc
	platform grpc.ServerStream
	handler  grpc.ClientStream

	toPlatform, toHandler sync.Mutex // gRPC takes one Send at a time

	mu      sync.Mutex
	pending map[string]*message // sent to the handler, by ID
	closing bool                // no further worker may start
	workers sync.WaitGroup
	busy    sync.WaitGroup    // unfinished work; only the reader adds to it
	unread  func()            // called when nothing more is read; nil: nothing
	idle    chan func() error // to an idle worker
	leaving bool              // the handler's stream is to end: its end is no fault
}

var (
	errHandlerLeft = status.Error(codes.Unavailable, "numathrottle: the handler has ended its stream")
	errNoHandshake = status.Error(codes.FailedPrecondition,
		"numathrottle: the handler's first response is no handshake, so its SDK speaks an older protocol; allowed: one of Numaflow 1.4 or later")
	errNoHello = status.Error(codes.InvalidArgument, "numathrottle: the first request of the stream is no handshake")
)

// join opens the stream to the handler for a stream of the platform, and passes the handshakes.
func (p *proxy) join(platform grpc.ServerStream, method string) (*exchange, error) {
	ctx, cancel := context.WithCancelCause(withMetadata(platform.Context()))
	x := &exchange{proxy: p, ctx: ctx, cancel: cancel, platform: platform, pending: map[string]*message{}, idle: make(chan func() error)}
	handler, err := p.conn.NewStream(ctx, bothWays, method)
	if err != nil {
		cancel(err)
		return nil, err
	}
	x.handler = handler
	if err := x.shakeHands(); err != nil {
		cancel(err)
		return nil, err
	}
	return x, nil
}

var bothWays = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// withMetadata passes on the headers of a call.
func withMetadata(ctx context.Context) context.Context {
	in, _ := metadata.FromIncomingContext(ctx)
	out := metadata.MD{}
	for key, values := range in {
		switch key {
		case ":authority", "content-type", "user-agent", "te", "grpc-accept-encoding":
		default:
			out[key] = values
		}
	}
	return metadata.NewOutgoingContext(ctx, out)
}

func (x *exchange) shakeHands() error {
	l := &x.proxy.layout
	hello, err := receive(x.platform)
	if err != nil {
		return err
	}
	if !flagged(hello, l.request.handshake) {
		return errNoHello
	}
	if err := x.tell(hello); err != nil {
		return err
	}
	welcome, err := receive(x.handler)
	if errors.Is(err, io.EOF) {
		return errHandlerLeft
	}
	if err != nil {
		return err
	}
	if !flagged(welcome, l.response.handshake) {
		return errNoHandshake
	}
	return x.say(welcome)
}

type receiver interface{ RecvMsg(m any) error }

func receive(from receiver) ([]byte, error) {
	var f frame
	err := from.RecvMsg(&f)
	return f.raw, err
}

// say sends a frame to the platform.
func (x *exchange) say(raw []byte) error {
	x.toPlatform.Lock()
	defer x.toPlatform.Unlock()
	return x.platform.SendMsg(&frame{raw})
}

// tell sends a frame to the handler. The stream's end reports its error.
func (x *exchange) tell(raw []byte) error {
	x.toHandler.Lock()
	defer x.toHandler.Unlock()
	if err := x.handler.SendMsg(&frame{raw}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// fail ends both streams.
func (x *exchange) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = errHandlerLeft
	}
	x.cancel(err)
}

// run reads from both sides until the platform ends its stream and everything is answered, or either side fails. The function read
// receives the platform's frames, and heard those of the handler. Each is called by one goroutine.
func (x *exchange) run(read, received func(raw []byte) error) error {
	defer x.end()
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		x.listen(received)
	}()
	reading := make(chan error, 1)
	go func() {
		err := x.readAll(read)
		if x.unread != nil {
			x.unread()
		}
		reading <- err
	}()
	select {
	case <-x.ctx.Done():
		return x.verdict()
	case err := <-reading:
		if err != nil {
			x.fail(err)
			return x.verdict()
		}
	}
	x.busy.Wait() // all messages are answered, or the exchange has failed
	x.leave()
	select {
	case <-x.ctx.Done():
		return x.verdict()
	case <-listening:
		return nil
	}
}

// readAll passes on the platform's frames until it ends its stream.
func (x *exchange) readAll(read func(raw []byte) error) error {
	for {
		raw, err := receive(x.platform)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := read(raw); err != nil {
			return err
		}
	}
}

// listen passes on the handler's frames. If the handler ends its stream early, the exchange fails.
func (x *exchange) listen(received func(raw []byte) error) {
	for {
		raw, err := receive(x.handler)
		if err == nil {
			err = received(raw)
		}
		if err == nil {
			continue
		}
		x.mu.Lock()
		fault := !x.leaving || !errors.Is(err, io.EOF)
		x.mu.Unlock()
		if fault {
			x.fail(err)
		}
		return
	}
}

// leave ends the stream to the handler cleanly.
func (x *exchange) leave() {
	x.mu.Lock()
	x.leaving = true
	x.mu.Unlock()
	x.toHandler.Lock()
	defer x.toHandler.Unlock()
	_ = x.handler.CloseSend() // the listener sees its end
}

// end waits for the workers, whose streams have ended.
func (x *exchange) end() {
	x.mu.Lock()
	x.closing = true
	x.mu.Unlock()
	x.cancel(nil)
	x.workers.Wait()
}

// verdict returns the final status of the platform's stream.
func (x *exchange) verdict() error {
	err := context.Cause(x.ctx)
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return status.FromContextError(context.Canceled).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}

// do gives work to a worker: an idle one, whose stack has grown already, or another one.
func (x *exchange) do(work func() error) error {
	x.busy.Add(1)
	select {
	case x.idle <- work:
		return nil
	default:
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closing {
		x.busy.Done()
		return context.Cause(x.ctx)
	}
	x.workers.Go(func() {
		x.perform(work)
		for {
			select {
			case work := <-x.idle:
				x.perform(work)
			case <-x.ctx.Done():
				return
			}
		}
	})
	return nil
}

// perform does some work. A panic in it fails the exchange, so that its message is redelivered. The work may also end the worker by
// runtime.Goexit, once the exchange is over.
func (x *exchange) perform(work func() error) {
	done := false
	defer func() {
		r := recover()
		switch {
		case r != nil:
			x.fail(status.Errorf(codes.Internal, "numathrottle: %v", r))
		case !done: // by Goexit, which is valid only when the exchange is over
			x.fail(status.Error(codes.Unavailable, "numathrottle: a message is not handled"))
		}
		x.busy.Done()
	}()
	if err := work(); err != nil {
		x.fail(err)
	}
	done = true
}

// newMessage parses a request of the platform.
func (x *exchange) newMessage(raw []byte) (*message, envelope, error) {
	at := &x.proxy.layout.request
	e, err := at.open(raw)
	if err != nil {
		return nil, e, status.Error(codes.InvalidArgument, err.Error())
	}
	return &message{raw: raw, id: e.id, body: e.body, at: at, exchange: x}, e, nil
}

// expect registers a message before it is sent to the handler, so that its replies find it.
func (x *exchange) expect(m *message, room int) error {
	m.replies = make(chan []byte, room)
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, twice := x.pending[m.id]; twice {
		return status.Errorf(codes.InvalidArgument, "numathrottle: message %.60q is in the handler already", m.id)
	}
	x.pending[m.id] = m
	return nil
}

// find returns the message of a reply, or nil if there is none, which is logged. The last reply to a message removes it.
func (x *exchange) find(id string, last bool) *message {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.pending[id]
	switch {
	case m == nil:
		x.proxy.log.Error("an answer of the handler is left out: no message with its ID waits for one, or it has been answered", "id", id)
	case last:
		delete(x.pending, id)
	}
	return m
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w", context.Cause(ctx))
	}
}
