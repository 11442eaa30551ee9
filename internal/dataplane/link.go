package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A wire is the client's end of a gRPC stream.
type wire[Req, Resp any] interface {
	Send(req Req) error
	Recv() (Resp, error)
	CloseSend() error
}

// A parcel is sent in one piece: nothing else goes between its requests.
type parcel[Req any] struct {
	first Req
	rest  []Req
}

// A kind is what differs from one kind of stream to the next.
type kind[Resp any] interface {
	// deliver hands a response to its caller, or says how it breaks the protocol.
	// Only the receiver calls it.
	deliver(resp Resp) error
	// unended returns the fault of a server that ends the stream now; nil when it
	// owes nothing.
	unended() error
	// fail marks everything in flight as failed. The receiver calls it once, after
	// broken was closed.
	fail()
	// drain takes back every place within d, so that nothing more can be sent, and
	// reports whether it got them all.
	drain(d time.Duration) bool
	// Outstanding returns the IDs whose answer is still due.
	Outstanding() []string
}

// A gate says whether messages may still be sent.
type gate struct {
	// closing is closed when Close begins: nothing more is taken.
	closing chan struct{}
	// broken is closed when the stream is over, after cause was set.
	broken chan struct{}
	cause  error
}

// take waits for a free place. Every error is an ErrNotSent.
func take[T any](ctx context.Context, g *gate, free <-chan T) (place T, err error) {
	switch {
	case ctx.Err() != nil:
		return place, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
	case closed(g.broken):
		return place, fmt.Errorf("%w: %w", ErrNotSent, g.cause)
	case closed(g.closing):
		return place, fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	select {
	case place = <-free:
		return place, nil
	default:
	}
	select {
	case place = <-free:
		return place, nil
	case <-ctx.Done():
		return place, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
	case <-g.broken:
		return place, fmt.Errorf("%w: %w", ErrNotSent, g.cause)
	case <-g.closing:
		return place, fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
}

// takeBack takes n places for good within d, unless the stream breaks before.
func takeBack[T any](g *gate, free <-chan T, n int, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for range n {
		select {
		case <-free:
			continue
		default:
		}
		select {
		case <-free:
		case <-timer.C:
			return false
		case <-g.broken:
			return false
		}
	}
	return true
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Stats counts messages. Sent = Answered + Failed + Outstanding, exactly so
// when no call is running.
type Stats struct {
	// Sent messages: those that got a place and an ID.
	Sent int
	// Answered messages, those included whose caller had gone. The messages of a
	// batch are answered when the batch has ended.
	Answered int
	// Late is the part of Answered whose caller had gone.
	Late int
	// Failed messages: in flight when the stream broke.
	Failed int
	// Outstanding messages: the answer is still due.
	Outstanding int
}

type counts struct {
	sent, answered, late, failed atomic.Int64
}

// Stats returns the counts of this moment.
func (c *counts) Stats() Stats {
	// Sent is read last: it never seems smaller than its parts.
	s := Stats{Answered: int(c.answered.Load()), Late: int(c.late.Load()), Failed: int(c.failed.Load())}
	s.Sent = int(c.sent.Load())
	s.Outstanding = s.Sent - s.Answered - s.Failed
	return s
}

// A link is one open stream: what all kinds have in common.
type link[Req, Resp any] struct {
	gate
	counts

	kind kind[Resp]
	wire wire[Req, Resp]
	// cancel ends the stream at once.
	cancel context.CancelFunc
	conn   *grpc.ClientConn
	// outbox takes parcels to send. It has room for everything that can be in flight, so sending to it does not block.
	outbox chan parcel[Req]

	closeOnce    sync.Once
	closeErr     error
	drainTimeout time.Duration
	// ended says that Close ends the stream, which is then no fault.
	ended   atomic.Bool
	workers sync.WaitGroup
}

// run starts the goroutines of an open stream. At most places parcels are in flight.
func (l *link[Req, Resp]) run(k kind[Resp], o opened[Req, Resp], conn *grpc.ClientConn, s settings, places int) {
	l.kind, l.wire, l.cancel, l.conn = k, o.wire, o.cancel, conn
	l.outbox = make(chan parcel[Req], places)
	l.closing, l.broken = make(chan struct{}), make(chan struct{})
	l.drainTimeout = s.drainTimeout
	l.workers.Add(2)
	go l.send()
	go l.receive()
}

// send is the one goroutine that may call Send and CloseSend, which gRPC does
// not allow to run at the same time.
func (l *link[Req, Resp]) send() {
	defer l.workers.Done()
	for {
		select {
		case p, open := <-l.outbox:
			if !open {
				_ = l.wire.CloseSend() // the receiver sees what comes of it
				return
			}
			if !l.post(p) {
				return // the receiver gets the reason from Recv
			}
		case <-l.broken:
			return
		}
	}
}

func (l *link[Req, Resp]) post(p parcel[Req]) (ok bool) {
	if l.wire.Send(p.first) != nil {
		return false
	}
	for _, req := range p.rest {
		if l.wire.Send(req) != nil {
			return false
		}
	}
	return true
}

func (l *link[Req, Resp]) receive() {
	defer l.workers.Done()
	for {
		resp, err := l.wire.Recv()
		if err == nil {
			err = l.kind.deliver(resp)
		}
		if err != nil {
			l.breakWith(err)
			return
		}
	}
}

// breakWith ends the stream and fails everything in flight. Only the receiver
// calls it, once.
func (l *link[Req, Resp]) breakWith(err error) {
	if errors.Is(err, io.EOF) {
		if fault := l.kind.unended(); fault != nil {
			err = fault
		}
	}
	if l.ended.Load() && (errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled) {
		l.cause = ErrClosed
	} else {
		l.cause = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	close(l.broken)
	l.cancel()
	l.kind.fail()
}
