package handlerproxy

import (
	"context"
	"runtime"
	"sync"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A batch is the platform's messages up to an end-of-transmission mark.
type batch struct {
	exchange *exchange
	messages map[string]*message // by ID; the worker's, once the batch is read
	done     chan struct{}       // closed: all are answered

	asked int // messages sent to the handler

	mu      sync.Mutex
	mark    []byte        // the platform's, once the batch is read
	replies [][]byte      // of the handler, without its mark
	end     []byte        // its mark
	ended   chan struct{} // closed when the mark has come
}

type batchKey struct{}

// batchOf returns the batch for which a wrapper's handler was called.
func batchOf(ctx context.Context) *batch {
	b, _ := ctx.Value(batchKey{}).(*batch)
	return b
}

// serveBatches serves a stream of batches, one after the other. handle answers one batch; in yields its messages.
func serveBatches[D any](x *exchange, datum func(*message) D, handle func(ctx context.Context, b *batch, in <-chan D) error) error {
	var now *batch // of the reader
	var in chan D
	var mu sync.Mutex
	var hearing *batch // the batch that the handler answers
	begin := func() error {
		now = &batch{exchange: x, messages: map[string]*message{}, done: make(chan struct{}), ended: make(chan struct{})}
		in = make(chan D)
		mu.Lock()
		hearing = now
		mu.Unlock()
		b, in := now, in
		return x.do(func() error {
			defer close(b.done)
			return handle(context.WithValue(x.ctx, batchKey{}, b), b, in)
		})
	}
	read := func(raw []byte) error {
		m, e, err := x.newMessage(raw)
		if err != nil {
			return err
		}
		if now == nil {
			if err := begin(); err != nil {
				return err
			}
		}
		if e.end {
			b := now
			now = nil
			b.closeWith(raw)
			close(in)
			return x.wait(b.done)
		}
		if _, twice := now.messages[m.id]; twice {
			return status.Errorf(codes.InvalidArgument, "numathrottle: message %.60q is in the batch already", m.id)
		}
		now.messages[m.id] = m
		select {
		case in <- datum(m):
			return nil
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
	}
	x.unread = func() { // as numaflow-go does, for the wrapper reads to the end
		if now != nil {
			x.fail(errUnfinished)
			close(in)
		}
	}
	return x.run(read, func(raw []byte) error {
		mu.Lock()
		b := hearing
		mu.Unlock()
		return x.hear(b, raw)
	})
}

var errUnfinished = status.Error(codes.Canceled, "numathrottle: the stream has ended in the middle of a batch")

// closeWith marks the batch as read.
func (b *batch) closeWith(mark []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mark = mark
}

// wait waits until a channel is closed, or for the end of the exchange.
func (x *exchange) wait(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	}
}

// hear processes a response of the handler to a batch.
func (x *exchange) hear(b *batch, raw []byte) error {
	e, err := x.proxy.layout.response.open(raw)
	if err != nil {
		return status.Error(codes.Internal, "numathrottle: from the handler: "+err.Error())
	}
	if b != nil && b.take(raw, e.end) {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.leaving { // numaflow-go takes the end of a stream for the end of an empty batch
		x.proxy.log.Error("an answer of the handler is left out: it belongs to no batch, or to one that has ended")
	}
	return nil
}

// take records a response; it returns false if the batch has ended.
func (b *batch) take(raw []byte, end bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.end != nil:
		return false
	case end:
		b.end = raw
		close(b.ended)
	default:
		b.replies = append(b.replies, raw)
	}
	return true
}

// ask sends the messages of in to the handler, and waits for the end of its answer. It does not call the handler for no messages.
func ask[D any](ctx context.Context, b *batch, in <-chan D) {
	for d := range in {
		if err := b.exchange.tell(own(d).raw); err != nil {
			b.exchange.fail(err)
		}
		b.asked++
	}
	b.mu.Lock()
	mark := b.mark
	b.mu.Unlock()
	if b.asked == 0 || mark == nil {
		return
	}
	if err := b.exchange.tell(mark); err != nil {
		b.exchange.fail(err)
	}
	select {
	case <-b.ended:
	case <-ctx.Done():
		runtime.Goexit()
	}
}

// finish sends the end-of-transmission mark: the handler's, or the proxy's if the handler got no messages.
func (b *batch) finish() error {
	if b.end != nil {
		return b.exchange.say(b.end)
	}
	if b.exchange.proxy.Kind.isSink() {
		return b.exchange.say(sinkEnd)
	}
	return b.exchange.say(batchEnd)
}

// A batchNext is the handler inside the wrapper of a batch map.
type batchNext struct{ p *proxy }

func (n batchNext) BatchMap(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	b := batchOf(ctx)
	ask(ctx, b, in)
	l := &n.p.layout.response
	responses := batchmapsdk.BatchResponsesBuilder()
	for _, raw := range b.replies {
		e, _ := l.open(raw)
		r := batchmapsdk.NewBatchResponse(e.id)
		if n.p.ExemptDropped && l.onlyDrops(raw) {
			r = r.Append(batchmapsdk.MessageToDrop())
		}
		responses = responses.Append(r)
		if m := b.messages[e.id]; m != nil {
			m.answer = raw
		}
	}
	return responses
}

func (p *proxy) serveBatchMap(x *exchange, handler batchmapsdk.BatchMapper) error {
	return serveBatches(x, func(m *message) batchmapsdk.Datum { return m },
		func(ctx context.Context, b *batch, in <-chan batchmapsdk.Datum) error {
			for _, r := range handler.BatchMap(ctx, in).Items() {
				m := b.messages[r.Id()]
				delete(b.messages, r.Id())
				var raw []byte
				switch {
				case m == nil:
					continue // without a limit nothing has compared the answers with the batch: this one has no message, or is the second
				case m.answer != nil:
					raw = m.answer
				default:
					raw = p.batchResponse(m, r.Items())
				}
				if err := x.say(raw); err != nil {
					return err
				}
			}
			return b.finish()
		})
}

func (p *proxy) batchHandler(l throttle.Limiter) batchmapsdk.BatchMapper {
	return mapper.WrapBatch(batchNext{p}, l, p.mapOptions()...)
}
