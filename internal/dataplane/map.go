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

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
)

// A Map is one open MapFn stream. All its methods may be called from any number
// of goroutines at once.
type Map struct {
	conn   *grpc.ClientConn
	stream mappb.Map_MapFnClient
	// cancel ends the stream at once.
	cancel context.CancelFunc

	calls []call
	// free holds the places that nothing is in flight on.
	free chan *call
	// outbox takes requests to the sender. It has a place for every call and
	// each call has at most one request in it, so sending to it never blocks.
	outbox chan *mappb.MapRequest

	// closing is closed when Close begins: nothing more is taken.
	closing chan struct{}
	// broken is closed when the stream is over, after cause was set.
	broken chan struct{}
	cause  error

	sent, answered, late, failed atomic.Int64

	closeOnce    sync.Once
	closeErr     error
	drainTimeout time.Duration
	// ended says that Close ends the stream, which is then no fault.
	ended   atomic.Bool
	workers sync.WaitGroup
}

// Stats counts messages. Sent = Answered + Failed + Outstanding, exactly so
// when no Do is running.
type Stats struct {
	// Sent messages: those that got a place and an ID.
	Sent int
	// Answered messages, those included whose caller had gone.
	Answered int
	// Late is the part of Answered whose caller had gone.
	Late int
	// Failed messages: in flight when the stream broke.
	Failed int
	// Outstanding messages: the answer is still due.
	Outstanding int
}

// Do sends one message and returns what the handler made of it: nil for an
// empty answer. It blocks until a place is free, then until the answer is there.
//
// When ctx ends before a place is free nothing was sent. When it ends later, Do
// returns but the message stays in flight and keeps its place until the server
// answers it; its ID is in the error.
//
// Errors: the cause of ctx; ErrBroken when the stream broke before the answer
// came (the platform would redeliver the message); ErrClosed when the message
// was not sent because Close had begun.
func (m *Map) Do(ctx context.Context, msg Message) ([]Result, error) {
	c, err := m.take(ctx)
	if err != nil {
		return nil, err
	}
	turn := c.begin()
	id := formatID(c.place, turn)
	m.sent.Add(1)
	m.outbox <- newRequest(id, msg)

	select {
	case resp := <-c.done:
		m.free <- c
		return results(resp), nil
	case <-ctx.Done():
		if c.move(turn, statePending, stateAbandoned) {
			return nil, fmt.Errorf("message %s: no answer yet: %w", id, context.Cause(ctx))
		}
	case <-m.broken:
		m.fail(c, turn)
	}
	// The answer or the break came in the same instant.
	if _, state := c.now(); state == stateFailed {
		return nil, fmt.Errorf("message %s: %w", id, m.cause)
	}
	resp := <-c.done
	m.free <- c
	return results(resp), nil
}

// take waits for a free place.
func (m *Map) take(ctx context.Context) (*call, error) {
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("message not sent: %w", context.Cause(ctx))
	case closed(m.broken):
		return nil, fmt.Errorf("message not sent: %w", m.cause)
	case closed(m.closing):
		return nil, fmt.Errorf("message not sent: %w", ErrClosed)
	}
	select {
	case c := <-m.free:
		return c, nil
	default:
	}
	select {
	case c := <-m.free:
		return c, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("message not sent: %w", context.Cause(ctx))
	case <-m.broken:
		return nil, fmt.Errorf("message not sent: %w", m.cause)
	case <-m.closing:
		return nil, fmt.Errorf("message not sent: %w", ErrClosed)
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// send is the one goroutine that may call Send and CloseSend, which gRPC does
// not allow to run at the same time.
func (m *Map) send() {
	defer m.workers.Done()
	for {
		select {
		case req, open := <-m.outbox:
			if !open {
				_ = m.stream.CloseSend() // the receiver sees what comes of it
				return
			}
			if m.stream.Send(req) != nil {
				return // the receiver gets the reason from Recv
			}
		case <-m.broken:
			return
		}
	}
}

func (m *Map) receive() {
	defer m.workers.Done()
	for {
		resp, err := m.stream.Recv()
		if err == nil {
			err = m.deliver(resp)
		}
		if err != nil {
			m.breakWith(err)
			return
		}
	}
}

// deliver hands an answer to its caller, or says how it breaks the protocol.
func (m *Map) deliver(resp *mappb.MapResponse) error {
	id := resp.GetId()
	if resp.GetHandshake() != nil {
		return &ProtocolError{Fault: FaultHandshake}
	}
	if resp.GetStatus() != nil {
		return &ProtocolError{Fault: FaultStatus, IDs: []string{id}}
	}
	place, turn, ok := parseID(id)
	if !ok || place >= len(m.calls) {
		return &ProtocolError{Fault: FaultUnknownID, IDs: []string{id}}
	}
	c := &m.calls[place]
	present, _ := c.now()
	switch {
	case turn > present:
		return &ProtocolError{Fault: FaultUnknownID, IDs: []string{id}}
	case c.move(turn, statePending, stateAnswered):
		m.answered.Add(1)
		c.done <- resp
		return nil
	case c.move(turn, stateAbandoned, stateAnswered):
		m.answered.Add(1)
		m.late.Add(1)
		m.free <- c
		return nil
	default:
		return &ProtocolError{Fault: FaultDuplicateID, IDs: []string{id}}
	}
}

// breakWith ends the stream and fails everything in flight. Only the receiver
// calls it, once.
func (m *Map) breakWith(err error) {
	outstanding := m.Outstanding()
	if errors.Is(err, io.EOF) && len(outstanding) > 0 {
		err = &ProtocolError{Fault: FaultMissingID, IDs: outstanding}
	}
	if m.ended.Load() && (errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled) {
		m.cause = ErrClosed
	} else {
		m.cause = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	close(m.broken)
	m.cancel()
	for i := range m.calls {
		turn, _ := m.calls[i].now()
		m.fail(&m.calls[i], turn)
	}
}

// fail marks the turn as failed if its answer is still due.
func (m *Map) fail(c *call, turn uint64) {
	if c.move(turn, statePending, stateFailed) || c.move(turn, stateAbandoned, stateFailed) {
		m.failed.Add(1)
	}
}

// Outstanding returns the IDs whose answer is still due, in the order of their
// places; after the stream broke, none.
func (m *Map) Outstanding() []string {
	var ids []string
	for i := range m.calls {
		turn, state := m.calls[i].now()
		if state == statePending || state == stateAbandoned {
			ids = append(ids, formatID(i, turn))
		}
	}
	return ids
}

// Stats returns the counts of this moment.
func (m *Map) Stats() Stats {
	// Sent is read last: it never seems smaller than its parts.
	s := Stats{Answered: int(m.answered.Load()), Late: int(m.late.Load()), Failed: int(m.failed.Load())}
	s.Sent = int(m.sent.Load())
	s.Outstanding = s.Sent - s.Answered - s.Failed
	return s
}
