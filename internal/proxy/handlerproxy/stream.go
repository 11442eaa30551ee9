package handlerproxy

import (
	"context"
	"runtime"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// repliesAhead bounds the outputs of a message that wait in the proxy. Beyond that the handler waits.
const repliesAhead = 64

// A streamNext is the handler inside the wrapper of a stream map. It passes on each response of the handler as the value of an output.
type streamNext struct{ p *proxy }

func (n streamNext) MapStream(ctx context.Context, _ []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
	m := own(d)
	l := &n.p.layout.response
	m.send(repliesAhead)
	for {
		raw := m.reply(ctx)
		if e, _ := l.open(raw); e.end {
			m.answer = raw
			close(out)
			return
		}
		for _, part := range n.p.parts(raw) {
			output := mapstreamsdk.NewMessage(part)
			if n.p.ExemptDropped && l.onlyDrops(part) {
				output = mapstreamsdk.MessageToDrop()
				output = mapstreamsdk.NewMessage(part).WithTags(output.Tags())
			}
			select {
			case out <- output:
			case <-ctx.Done():
				runtime.Goexit()
			}
		}
	}
}

// parts splits a response by results if each result draws.
func (p *proxy) parts(raw []byte) [][]byte {
	l := &p.layout.response
	results := all(raw, l.results)
	if !p.PerOutput || len(results) < 2 {
		return [][]byte{raw}
	}
	rest := without(raw, l.results)
	parts := make([][]byte, len(results))
	for i, result := range results {
		part := protowire.AppendTag(nil, l.results, protowire.BytesType)
		parts[i] = append(protowire.AppendBytes(part, result), rest...)
	}
	return parts
}

// serveStream serves a stream of messages with many answers each, and an end.
func (p *proxy) serveStream(x *exchange, handler mapstreamsdk.MapStreamer) error {
	read := func(raw []byte) error {
		m, _, err := x.newMessage(raw)
		if err != nil {
			return err
		}
		outputs := make(chan mapstreamsdk.Message, 1)
		err = x.do(func() error {
			handler.MapStream(x.ctx, p.keysOf(m), m, outputs)
			return nil
		})
		if err != nil {
			return err
		}
		return x.do(func() error { return x.passOutputs(m, outputs) })
	}
	return x.run(read, func(raw []byte) error { return x.deliver(raw, func(e envelope) bool { return e.end }) })
}

// passOutputs sends the outputs of one message to the platform, and the end of its answer.
func (x *exchange) passOutputs(m *message, outputs <-chan mapstreamsdk.Message) error {
	for {
		select {
		case out, ok := <-outputs:
			raw := out.Value()
			switch asked := m.replies != nil; {
			case !ok && asked:
				return x.say(m.answer)
			case !ok:
				return x.say(streamEnd(m.id))
			case !asked:
				raw = x.proxy.streamResponse(m, out)
			}
			if err := x.say(raw); err != nil {
				return err
			}
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
	}
}

func (p *proxy) streamHandler(l throttle.Limiter) mapstreamsdk.MapStreamer {
	opts := make([]mapper.StreamOption, 0, 8)
	for _, opt := range p.mapOptions() {
		opts = append(opts, opt)
	}
	if p.PerOutput {
		opts = append(opts, mapper.PerOutput())
	}
	return mapper.WrapStream(streamNext{p}, l, opts...)
}
