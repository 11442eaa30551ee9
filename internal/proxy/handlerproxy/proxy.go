package handlerproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A proxy is one run.
type proxy struct {
	Config

	log    *slog.Logger
	layout layout
	rules  rules
	action string
	conn   *grpc.ClientConn // to the handler
	// serve maps the methods that draw, by full name.
	serve map[string]func(platform grpc.ServerStream, method string) error

	mu     sync.Mutex
	info   []byte          // the handler's server-info file as published to the platform
	strays map[string]bool // unknown methods, which are logged once
}

// Run serves between the platform and a handler until ctx ends. It waits for the handler before it serves the platform. When ctx has ended,
// it lets open streams end by themselves for 15 s, as the SDKs do. Then it leaves the pool.
//
// Errors: all faults of c; a handler that does not start within HandlerWait, uses another protocol or is of another kind; an unavailable
// socket or file.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	if c.Pool.Logger == nil {
		c.Pool.Logger = c.Logger
	}
	p, err := newProxy(c)
	if err != nil {
		return err
	}
	defer func() { _ = p.conn.Close() }()
	limiter := c.Limiter
	if limiter == nil {
		th, err := numathrottle.Open(ctx, c.Pool)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, th.Close()) }() // after the server has stopped: it leaves the pool
		limiter = th
	}
	if p.rules.twoLevels {
		limiter = taglevel.Limiter(limiter)
	}
	p.wrap(limiter)
	if err := p.clear(); err != nil {
		return err
	}
	raw, err := p.awaitHandler(ctx)
	if err != nil {
		return err
	}
	return p.listenAndServe(ctx, raw)
}

func newProxy(c Config) (*proxy, error) {
	p := &proxy{Config: c, log: c.Logger.With("kind", string(c.Kind)), layout: layouts[c.Kind], rules: c.rules(), strays: map[string]bool{}}
	p.rules.cost = p.costOf()
	p.action, _, _ = parseAction(c.OnDenied)
	if err := p.checkWrapper(); err != nil {
		return nil, err
	}
	var err error
	// The path goes through a dialer, because a target would need escaping.
	p.conn, err = grpc.NewClient("passthrough:///handler",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a socket between two containers of a pod
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", c.HandlerSocket)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: askAgain, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		}),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(c.MaxMessageSize), grpc.MaxCallSendMsgSize(c.MaxMessageSize),
		),
	)
	return p, err
}

const (
	askAgain = 100 * time.Millisecond
	window   = 1 << 20
	// grace is how long open streams may continue after the signal to stop, as in the SDKs.
	grace = 15 * time.Second
)

// wrap puts the kind's wrapper around the calls of the handler.
func (p *proxy) wrap(l throttle.Limiter) {
	joined := func(serve func(x *exchange) error) func(grpc.ServerStream, string) error {
		return func(platform grpc.ServerStream, method string) error {
			x, err := p.join(platform, method)
			if err != nil {
				return err
			}
			return serve(x)
		}
	}
	method := "/" + p.layout.service + "/" + p.layout.method
	p.serve = map[string]func(grpc.ServerStream, string) error{}
	switch p.Kind {
	case Map:
		handle := p.mapUnary(l)
		p.serve[method] = joined(func(x *exchange) error { return p.serveUnary(x, handle) })
	case Transform:
		handle := p.transformUnary(l)
		p.serve[method] = joined(func(x *exchange) error { return p.serveUnary(x, handle) })
	case MapStream:
		handler := p.streamHandler(l)
		p.serve[method] = joined(func(x *exchange) error { return p.serveStream(x, handler) })
	case BatchMap:
		handler := p.batchHandler(l)
		p.serve[method] = joined(func(x *exchange) error { return p.serveBatchMap(x, handler) })
	case Source:
		source := p.sourceHandler(l)
		p.serve[method] = joined(func(x *exchange) error { return p.serveReads(x, source) })
		p.serve["/"+p.layout.service+"/PendingFn"] = func(platform grpc.ServerStream, method string) error {
			return p.servePending(platform, method, source)
		}
	default:
		handler := p.sinkHandler(l)
		p.serve[method] = joined(func(x *exchange) error { return p.serveSink(x, handler) })
	}
}

// awaitHandler waits until the handler is ready, and returns its server-info file.
func (p *proxy) awaitHandler(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.HandlerWait, errNotUp)
	defer cancel()
	p.log.Info("waiting for the handler", "handlerSocket", p.HandlerSocket)
	for {
		raw, about, err := readInfo(p.HandlerServerInfo)
		if err == nil {
			if err := p.checkInfo(&about); err != nil {
				return nil, err
			}
			if err = p.askReady(ctx); err == nil {
				p.log.Info("the handler is ready", "language", about.Language, "version", about.Version)
				return raw, nil
			}
			err = fmt.Errorf("handlerSocket %q does not answer: %w", p.HandlerSocket, err)
		} else {
			err = fmt.Errorf("handlerServerInfo %q: %w", p.HandlerServerInfo, err)
		}
		if pause(ctx, askAgain) == nil {
			continue
		}
		if errors.Is(context.Cause(ctx), errNotUp) {
			return nil, fmt.Errorf("handlerproxy: %w after %s: %w; allowed: a handler of kind %s that listens there", errNotUp, p.HandlerWait, err, p.Kind)
		}
		return nil, context.Cause(ctx)
	}
}

var (
	errNotUp    = errors.New("the handler is not up")
	errNotReady = errors.New("it says that it is not ready")
)

// askReady asks the handler whether it is ready.
func (p *proxy) askReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var reply frame
	if err := p.conn.Invoke(ctx, "/"+p.layout.service+"/IsReady", &frame{}, &reply); err != nil {
		return err
	}
	if number(reply.raw, 1) == 0 {
		return errNotReady
	}
	return nil
}

// listenAndServe serves the platform until ctx ends.
func (p *proxy) listenAndServe(ctx context.Context, raw []byte) error {
	var lc net.ListenConfig
	lis, err := lc.Listen(ctx, "unix", p.Socket)
	if err != nil {
		return fmt.Errorf("handlerproxy: socket is %q: %w", p.Socket, err)
	}
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(p.handle),
		grpc.MaxRecvMsgSize(p.MaxMessageSize), grpc.MaxSendMsgSize(p.MaxMessageSize),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		// The platform may ping as often as it likes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Nanosecond, PermitWithoutStream: true}),
	)
	if err := p.publish(raw); err != nil {
		return errors.Join(err, lis.Close())
	}
	p.log.Info("in front of the handler", "socket", p.Socket)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		cut := time.AfterFunc(grace, server.Stop)
		defer cut.Stop()
		server.GracefulStop()
	})
	err = server.Serve(lis)
	if !stop() {
		<-stopped
	}
	return err
}

// publish gives the platform the handler's server info, unless somebody else has put a file there meanwhile.
func (p *proxy) publish(raw []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Equal(raw, p.info) {
		return nil
	}
	if _, err := p.staleInfo(); err != nil {
		return err
	}
	text, err := marked(raw, p.Socket)
	if err == nil {
		err = writeInfo(p.ServerInfo, text)
	}
	if err != nil {
		return fmt.Errorf("handlerproxy: serverInfo is %q: %w", p.ServerInfo, err)
	}
	p.info = raw
	return nil
}

// handle serves a call of the platform: a method that draws, or any other by passing it on.
func (p *proxy) handle(_ any, platform grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(platform)
	if serve, ok := p.serve[method]; ok {
		return serve(platform, method)
	}
	if service, name := split(method); service != p.layout.service || !plainMethods[name] {
		p.noteStray(method)
	}
	err := p.passOn(platform, method)
	if err == nil && strings.HasSuffix(method, "/IsReady") {
		p.refresh()
	}
	return err
}

// plainMethods are the known methods without messages to draw for.
var plainMethods = map[string]bool{"IsReady": true, "AckFn": true, "NackFn": true, "PartitionsFn": true}

func split(method string) (service, name string) {
	service, name, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service, name
}

// noteStray logs once that a method passes that this version does not know.
func (p *proxy) noteStray(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.strays[method] {
		return
	}
	p.strays[method] = true
	p.log.Warn("a method that this version does not know passes without drawing tokens", "method", method)
}

// refresh publishes the server info of a handler that was restarted with another version.
func (p *proxy) refresh() {
	raw, about, err := readInfo(p.HandlerServerInfo)
	if err == nil {
		err = p.checkInfo(&about)
	}
	if err == nil {
		err = p.publish(raw)
	}
	if err != nil {
		p.log.Warn("the platform keeps the server info of an earlier handler", "error", err)
	}
}

// passOn passes a call and its answer through unchanged.
func (p *proxy) passOn(platform grpc.ServerStream, method string) error {
	ctx, cancel := context.WithCancel(withMetadata(platform.Context()))
	defer cancel()
	handler, err := p.conn.NewStream(ctx, bothWays, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			raw, err := receive(platform)
			if err != nil {
				_ = handler.CloseSend() // or the context has ended, which the handler sees
				return
			}
			if handler.SendMsg(&frame{raw}) != nil {
				return // the receiver sees why
			}
		}
	}()
	for {
		raw, err := receive(handler)
		if err != nil {
			platform.SetTrailer(handler.Trailer())
			if s, ok := status.FromError(err); ok {
				return s.Err()
			}
			return nil // the end
		}
		if err := platform.SendMsg(&frame{raw}); err != nil {
			return err
		}
	}
}
