package grpcthrottle

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// An Interceptor draws tokens for the calls of gRPC clients; see the package documentation. One may serve any number of connections to the
// same service, which then share its pauses. All methods may be called from any number of goroutines at once.
type Interceptor struct {
	settings

	limiter throttle.Limiter // nil: unlimited
	pause   *httpthrottle.Pause
	briefly time.Duration // the limiter isn't told of a pause as short as this
}

// New returns an Interceptor that draws from l. If l is [throttle.Unlimited], which includes nil, nothing is drawn, and refusals are still
// obeyed. The error names every wrong option, with its value and the allowed ones.
func New(l throttle.Limiter, opts ...Option) (*Interceptor, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	i := &Interceptor{settings: s}
	if !throttle.Unlimited(l) {
		i.limiter = l
	}
	adaptive := hook.Adaptive(l)
	if adaptive {
		i.briefly = brief
	}
	i.pause = &httpthrottle.Pause{ToldOnly: adaptive, Max: s.maxPause}
	return i, nil
}

// DialOptions returns the options for grpc.NewClient: both interceptors, at the end of their chains, and no retries of gRPC's own.
func (i *Interceptor) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(i.Unary), grpc.WithChainStreamInterceptor(i.Stream), grpc.WithDisableRetry()}
}

// Unary is a grpc.UnaryClientInterceptor, for connections without [Interceptor.DialOptions]. They need grpc.WithDisableRetry: retries of a
// service config draw nothing. A retry that finds no connection would even give back the tokens of an attempt that was sent.
//
// It blocks until the tokens are there and the call has ended. Errors are those of the call, and for a refused draw those in the package
// documentation. A call that misses its deadline after waiting more than 80 % of its time fails with an error that is also
// throttle.ErrThrottled.
func (i *Interceptor) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx = tracked(ctx)
	d, err := i.draw(ctx, method, req)
	if err != nil {
		return err
	}
	defer d.settle()
	var server peer.Peer
	err = invoker(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.Peer(&server))...)
	if err != nil && server.Addr == nil { // no connection took the call
		d.permit.Cancel()
	} else {
		d.judge(ctx, err)
	}
	return blame(ctx, err)
}

// Stream is a grpc.StreamClientInterceptor; see [Interceptor.Unary]. It blocks until the tokens for opening the stream are there. A SendMsg
// that draws blocks until the tokens are there, and ends the stream when they are refused. If the client sends a single message and
// [WithCost] is set, the stream is opened by SendMsg: until then its other methods have nothing to return.
func (i *Interceptor) Stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	s := &stream{i: i, caller: ctx, method: method}
	s.start = func(ctx context.Context) (grpc.ClientStream, error) {
		return streamer(ctx, desc, cc, method, append(slices.Clip(opts), grpc.OnFinish(s.finish))...)
	}
	switch {
	case i.cost == nil:
		d, err := i.draw(ctx, method, nil)
		if err != nil {
			return nil, err
		}
		return s.open(d)
	case desc.ClientStreams:
		opened, err := s.open(&draw{i: i, source: i.limiter, sent: time.Now()})
		if err != nil {
			return nil, err
		}
		return &sender{ClientStream: opened, stream: s}, nil
	}
	return &single{stream: s}, nil
}
