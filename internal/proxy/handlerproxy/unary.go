package handlerproxy

import (
	"context"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A unary handles one message and returns its response: the handler's, or the wrapper's.
type unary func(ctx context.Context, m *message) []byte

// serveUnary serves a stream of messages that are answered one by one, in any order.
func (p *proxy) serveUnary(x *exchange, handle unary) error {
	read := func(raw []byte) error {
		m, _, err := x.newMessage(raw)
		if err != nil {
			return err
		}
		return x.do(func() error { return x.say(handle(x.ctx, m)) })
	}
	return x.run(read, func(raw []byte) error { return x.deliver(raw, func(envelope) bool { return true }) })
}

// deliver passes a reply of the handler to its waiting message.
func (x *exchange) deliver(raw []byte, last func(envelope) bool) error {
	e, err := x.proxy.layout.response.open(raw)
	if err != nil {
		return status.Error(codes.Internal, "numathrottle: from the handler: "+err.Error())
	}
	m := x.find(e.id, last(e))
	if m == nil {
		return nil
	}
	select {
	case m.replies <- raw:
	case <-x.ctx.Done():
	}
	return nil
}

// A mapNext is the handler inside the wrapper of a map.
type mapNext struct{ p *proxy }

func (n mapNext) Map(ctx context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
	m := own(d)
	m.ask(ctx)
	if n.p.ExemptDropped && n.p.layout.response.onlyDrops(m.answer) {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	}
	return nil // the answer itself bypasses the wrapper
}

func (p *proxy) mapUnary(l throttle.Limiter) unary {
	wrapped := mapper.Wrap(mapNext{p}, l, p.mapOptions()...)
	return func(ctx context.Context, m *message) []byte {
		made := wrapped.Map(ctx, p.keysOf(m), m)
		if m.answer != nil {
			return m.answer
		}
		return p.mapResponse(m, made)
	}
}

// A transformNext is the same for a source transformer.
type transformNext struct{ p *proxy }

func (n transformNext) Transform(ctx context.Context, _ []string, d transformsdk.Datum) transformsdk.Messages {
	m := own(d)
	m.ask(ctx)
	if n.p.ExemptDropped && n.p.layout.response.onlyDrops(m.answer) {
		return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(m.EventTime()))
	}
	return nil
}

func (p *proxy) transformUnary(l throttle.Limiter) unary {
	wrapped := sourcer.WrapTransformer(transformNext{p}, l, p.transformOptions()...)
	return func(ctx context.Context, m *message) []byte {
		made := wrapped.Transform(ctx, p.keysOf(m), m)
		if m.answer != nil {
			return m.answer
		}
		return p.transformResponse(m, made)
	}
}

// own returns the proxy's message behind a datum: the wrappers pass on the datum that they received.
func own(d any) *message {
	m, _ := d.(*message)
	return m
}

// keysOf returns the keys of a message if a setting needs them.
func (p *proxy) keysOf(m *message) []string {
	if p.rules.needsKeys {
		return m.Keys()
	}
	return nil
}
