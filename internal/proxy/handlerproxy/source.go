package handlerproxy

import (
	"context"
	"runtime"
	"sync"
	"time"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The fields of a read, its results, and the number of pending messages.
const (
	readBody, readCount, readTimeout = 1, 1, 2

	readResult, readPayload, readHeaders = 1, 1, 5

	pendingResult, pendingCount = 1, 1
)

// A reading is one read of the platform.
type reading struct {
	exchange       *exchange
	raw            []byte
	count, timeout uint64        // as the platform requested
	replies        chan []byte   // of the handler
	done           chan struct{} // closed: answered

	mu      sync.Mutex
	passing [][]byte // results that the wrapper has, in its order
	end     []byte   // the handler's mark; nil if it was not called
}

type readingKey struct{}

// A sourceNext is the source inside the wrapper. Its other methods are never called: those calls bypass it.
type sourceNext struct {
	sourcesdk.Sourcer

	p *proxy
}

// Read requests as many messages from the handler as there are tokens.
func (n sourceNext) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	rd, _ := ctx.Value(readingKey{}).(*reading)
	if err := rd.exchange.tell(rd.request(r)); err != nil {
		rd.exchange.fail(err)
	}
	for {
		var raw []byte
		select {
		case raw = <-rd.replies:
		case <-ctx.Done():
			runtime.Goexit()
		}
		if result, ok := last(raw, readResult); ok {
			rd.push(raw)
			select {
			case out <- n.p.sourceMessage(result):
			case <-ctx.Done():
				runtime.Goexit()
			}
			continue
		}
		if flagged(raw, readResponse.status) {
			rd.mu.Lock()
			rd.end = raw
			rd.mu.Unlock()
			return
		}
		if err := rd.exchange.say(raw); err != nil {
			rd.exchange.fail(err)
		}
	}
}

// request returns the platform's request with the wrapper's figures.
func (rd *reading) request(r sourcesdk.ReadRequest) []byte {
	timeout := uint64(max(r.TimeOut()+time.Millisecond-1, 0) / time.Millisecond)
	if r.Count() == rd.count && timeout == rd.timeout {
		return rd.raw
	}
	body, _ := last(rd.raw, readBody)
	return setMessage(rd.raw, readBody, setNumber(setNumber(body, readCount, r.Count()), readTimeout, timeout))
}

// Count and TimeOut return the platform's request.
func (rd *reading) Count() uint64          { return rd.count }
func (rd *reading) TimeOut() time.Duration { return time.Duration(rd.timeout) * time.Millisecond }

func (rd *reading) push(raw []byte) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.passing = append(rd.passing, raw)
}

// pop returns the result that the wrapper has just passed on: the wrapper keeps the order.
func (rd *reading) pop() []byte {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	raw := rd.passing[0]
	rd.passing = rd.passing[1:]
	return raw
}

// sourceMessage returns a result as a message for the cost rule.
func (p *proxy) sourceMessage(result []byte) sourcesdk.Message {
	if p.rules.cost == nil {
		return sourcesdk.Message{}
	}
	payload, _ := last(result, readPayload)
	return sourcesdk.NewMessage(payload, sourcesdk.Offset{}, time.Time{}).WithHeaders(texts(result, readHeaders))
}

// serveReads serves a stream of reads, one after the other.
func (p *proxy) serveReads(x *exchange, source sourcesdk.Sourcer) error {
	var mu sync.Mutex
	var now *reading
	read := func(raw []byte) error {
		body, ok := last(raw, readBody)
		if !ok {
			return status.Error(codes.InvalidArgument, "numathrottle: a read request has no request")
		}
		rd := &reading{
			exchange: x, raw: raw, count: number(body, readCount), timeout: number(body, readTimeout),
			replies: make(chan []byte, repliesAhead), done: make(chan struct{}),
		}
		mu.Lock()
		now = rd
		mu.Unlock()
		if err := rd.begin(source); err != nil {
			return err
		}
		return x.wait(rd.done)
	}
	return x.run(read, func(raw []byte) error {
		mu.Lock()
		rd := now
		mu.Unlock()
		if rd == nil {
			return status.Error(codes.Internal, "numathrottle: the handler answers a read before there was one")
		}
		select {
		case rd.replies <- raw:
		case <-x.ctx.Done():
		}
		return nil
	})
}

// begin starts to answer a read.
func (rd *reading) begin(source sourcesdk.Sourcer) error {
	x := rd.exchange
	out := make(chan sourcesdk.Message)
	err := x.do(func() error {
		source.Read(context.WithValue(x.ctx, readingKey{}, rd), rd, out)
		close(out)
		return nil
	})
	if err != nil {
		return err
	}
	return x.do(func() error {
		for {
			select {
			case _, ok := <-out:
				if !ok {
					return rd.finish()
				}
				if err := x.say(rd.pop()); err != nil {
					return err
				}
			case <-x.ctx.Done():
				return context.Cause(x.ctx)
			}
		}
	})
}

// finish sends the mark: the handler's, or the proxy's if there were no tokens to call the handler.
func (rd *reading) finish() error {
	defer close(rd.done)
	rd.mu.Lock()
	end := rd.end
	rd.mu.Unlock()
	if end == nil {
		end = readEnd
	}
	return rd.exchange.say(end)
}

// A pendingCall is one request for the number of pending messages.
type pendingCall struct {
	method     string
	raw, reply []byte
	err        error
}

type pendingKey struct{}

// Pending asks the handler.
func (n sourceNext) Pending(ctx context.Context) int64 {
	c, _ := ctx.Value(pendingKey{}).(*pendingCall)
	var reply frame
	if c.err = n.p.conn.Invoke(withMetadata(ctx), c.method, &frame{c.raw}, &reply); c.err != nil {
		return -1
	}
	c.reply = reply.raw
	result, _ := last(c.reply, pendingResult)
	return int64(number(result, pendingCount))
}

// servePending answers the number of pending messages, clamped by the wrapper.
func (p *proxy) servePending(platform grpc.ServerStream, method string, source sourcesdk.Sourcer) error {
	raw, err := receive(platform)
	if err != nil {
		return err
	}
	c := &pendingCall{method: method, raw: raw}
	pending := source.Pending(context.WithValue(platform.Context(), pendingKey{}, c))
	if c.err != nil {
		return c.err
	}
	result, _ := last(c.reply, pendingResult)
	if int64(number(result, pendingCount)) != pending {
		c.reply = setMessage(c.reply, pendingResult, setNumber(result, pendingCount, uint64(pending)))
	}
	return platform.SendMsg(&frame{c.reply})
}

func (p *proxy) sourceHandler(l throttle.Limiter) sourcesdk.Sourcer {
	return sourcer.Wrap(sourceNext{p: p}, l, p.sourceOptions()...)
}
