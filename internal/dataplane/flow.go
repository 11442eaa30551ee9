package dataplane

import (
	"context"
	"fmt"
	"time"
)

// A flow is a stream of single messages, many in flight at once and answered in
// any order: unary map, stream map and transform.
type flow[Req, Resp any] struct {
	link[Req, Resp]

	calls []call[Resp]
	// free holds the places that nothing is in flight on.
	free chan *call[Resp]
	// inspect reads a response: the message that it answers, and whether it is the last for it; or returns the response's own fault.
	inspect func(Resp) (id string, last bool, err error)
	// owed is the fault of a server that ends the stream with answers due.
	owed Fault
}

// start makes the places of a flow and runs its link.
func (f *flow[Req, Resp]) start(o opened[Req, Resp], s settings, inspect func(Resp) (string, bool, error), owed Fault) {
	f.inspect, f.owed = inspect, owed
	f.calls = make([]call[Resp], s.concurrency)
	f.free = make(chan *call[Resp], s.concurrency)
	for i := range f.calls {
		c := &f.calls[i]
		c.place = i
		c.done = make(chan Resp, 1)
		f.free <- c
	}
	f.run(f, o, o.conn, s, s.concurrency)
}

// do sends one message and waits for its last response. parts are those before it.
func (f *flow[Req, Resp]) do(ctx context.Context, request func(id string) Req) (last Resp, parts []Resp, err error) {
	c, err := take(ctx, &f.gate, f.free)
	if err != nil {
		return last, nil, err
	}
	turn := c.begin()
	id := formatID(c.place, turn)
	f.sent.Add(1)
	f.outbox <- parcel[Req]{first: request(id)}

	select {
	case last = <-c.done:
		return last, f.release(c), nil
	case <-ctx.Done():
		if c.move(turn, statePending, stateAbandoned) {
			return last, nil, fmt.Errorf("message %s: no answer yet: %w", id, context.Cause(ctx))
		}
	case <-f.broken:
		f.failTurn(c, turn)
	}
	// The answer or the break came in the same instant.
	if _, state := c.now(); state == stateFailed {
		return last, nil, fmt.Errorf("message %s: %w", id, f.cause)
	}
	last = <-c.done
	return last, f.release(c), nil
}

// release gives the place back, and returns the collected parts of its turn.
func (f *flow[Req, Resp]) release(c *call[Resp]) []Resp {
	parts := c.parts
	f.free <- c
	return parts
}

func (f *flow[Req, Resp]) deliver(resp Resp) error {
	id, last, err := f.inspect(resp)
	if err != nil {
		return err
	}
	place, turn, ok := parseID(id)
	if !ok || place >= len(f.calls) {
		return &ProtocolError{Fault: FaultUnknownID, IDs: []string{id}}
	}
	c := &f.calls[place]
	present, due := c.due()
	switch {
	case turn > present:
		return &ProtocolError{Fault: FaultUnknownID, IDs: []string{id}}
	case turn < present || !due:
		return &ProtocolError{Fault: again(last), IDs: []string{id}}
	case !last:
		c.parts = append(c.parts, resp)
	case c.move(turn, statePending, stateAnswered):
		f.answered.Add(1)
		c.done <- resp
	case c.move(turn, stateAbandoned, stateAnswered):
		f.answered.Add(1)
		f.late.Add(1)
		f.free <- c
	}
	return nil
}

// again is the fault of a response to a message that had its last one.
func again(last bool) Fault {
	if last {
		return FaultDuplicateID
	}
	return FaultAfterEOT
}

func (f *flow[Req, Resp]) unended() error {
	if ids := f.Outstanding(); len(ids) > 0 {
		return &ProtocolError{Fault: f.owed, IDs: ids}
	}
	return nil
}

func (f *flow[Req, Resp]) fail() {
	for i := range f.calls {
		turn, _ := f.calls[i].now()
		f.failTurn(&f.calls[i], turn)
	}
}

// failTurn marks the turn as failed if its answer is still due.
func (f *flow[Req, Resp]) failTurn(c *call[Resp], turn uint64) {
	if c.move(turn, statePending, stateFailed) || c.move(turn, stateAbandoned, stateFailed) {
		f.failed.Add(1)
	}
}

func (f *flow[Req, Resp]) drain(d time.Duration) bool {
	return takeBack(&f.gate, f.free, len(f.calls), d)
}

// Outstanding returns the IDs whose answer is still due, in the order of their
// places; after the stream broke, none.
func (f *flow[Req, Resp]) Outstanding() []string {
	var ids []string
	for i := range f.calls {
		if turn, due := f.calls[i].due(); due {
			ids = append(ids, formatID(i, turn))
		}
	}
	return ids
}
