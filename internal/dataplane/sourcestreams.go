package dataplane

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	sourcepb "github.com/numaproj/numaflow-go/pkg/apis/proto/source/v1"
)

// reads is the stream of reads of a source, one at a time.
type reads struct {
	link[*sourcepb.ReadRequest, *sourcepb.ReadResponse]

	place  chan struct{}
	ledger *ledger

	mu     sync.Mutex
	number int
	now    *read
}

// A read is one request for messages, in flight until the source ends it.
type read struct {
	number   int
	count    int
	began    time.Time
	messages []SourceMessage // the receiver's until done is closed
	done     chan struct{}
	failed   bool
	// abandoned says that the caller has gone.
	abandoned bool
}

func (r *reads) do(ctx context.Context, count int, timeoutMS uint32) ([]SourceMessage, error) {
	if _, err := take(ctx, &r.gate, r.place); err != nil {
		return nil, err
	}
	now := r.begin(count)
	r.outbox <- parcel[*sourcepb.ReadRequest]{first: &sourcepb.ReadRequest{
		Request: &sourcepb.ReadRequest_Request{NumRecords: uint64(count), TimeoutInMs: timeoutMS},
	}}
	select {
	case <-now.done:
	case <-ctx.Done():
		if r.abandon(now) {
			return nil, fmt.Errorf("read %d: no end yet: %w", now.number, context.Cause(ctx))
		}
		<-now.done
	}
	if now.failed {
		<-r.broken // cause is set
		r.place <- struct{}{}
		return now.messages, fmt.Errorf("read %d: %w", now.number, r.cause)
	}
	r.place <- struct{}{}
	return now.messages, nil
}

func (r *reads) begin(count int) *read {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	now := &read{number: r.number, count: count, began: time.Now(), done: make(chan struct{})}
	if closed(r.broken) { // the receiver has gone, and will not fail it
		now.failed = true
		close(now.done)
		return now
	}
	r.now = now
	return now
}

func (r *reads) abandon(now *read) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now.abandoned = r.now == now
	return now.abandoned
}

func (r *reads) deliver(resp *sourcepb.ReadResponse) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch eot := resp.GetStatus().GetEot(); {
	case resp.GetHandshake() != nil:
		return &ProtocolError{Fault: FaultHandshake}
	case resp.GetStatus().GetCode() != sourcepb.ReadResponse_Status_SUCCESS, eot && resp.GetResult() != nil:
		return &ProtocolError{Fault: FaultStatus, IDs: r.name(resp.GetResult())}
	case eot && r.now == nil:
		return &ProtocolError{Fault: FaultUnexpectedEOT}
	case eot:
		r.finish()
		return nil
	case resp.GetResult() == nil:
		return &ProtocolError{Fault: FaultEmpty, IDs: r.name(nil)}
	}
	return r.add(resp.GetResult())
}

// name is how an error names a result: by its offset, or by its read.
func (r *reads) name(result *sourcepb.ReadResponse_Result) []string {
	if o := result.GetOffset(); o != nil {
		return []string{Offset{Value: o.GetOffset(), Partition: o.GetPartitionId()}.String()}
	}
	return []string{strconv.Itoa(r.number)}
}

// add enters one message.
func (r *reads) add(result *sourcepb.ReadResponse_Result) error {
	m := SourceMessage{
		Message: Message{Keys: result.GetKeys(), Value: result.GetPayload(), Headers: result.GetHeaders()},
		Offset:  Offset{Value: result.GetOffset().GetOffset(), Partition: result.GetOffset().GetPartitionId()},
	}
	fault := Fault("")
	switch {
	case r.now == nil:
		fault = FaultAfterEOT
	case len(m.Offset.Value) == 0:
		return &ProtocolError{Fault: FaultOffset, IDs: []string{strconv.Itoa(r.number)}}
	case result.GetEventTime() == nil:
		fault = FaultEventTime
	case len(r.now.messages) == r.now.count:
		fault = FaultTooMany
	case !r.ledger.read(m.Offset):
		fault = FaultDuplicateID
	}
	if fault != "" {
		return &ProtocolError{Fault: fault, IDs: r.name(result)}
	}
	m.EventTime = result.GetEventTime().AsTime()
	r.now.messages = append(r.now.messages, m)
	return nil
}

// finish ends the read in flight cleanly.
func (r *reads) finish() {
	now := r.now
	r.now = nil
	r.ledger.ended(len(now.messages), time.Since(now.began))
	close(now.done)
	if now.abandoned {
		r.place <- struct{}{}
	}
}

func (r *reads) unended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		return nil
	}
	return &ProtocolError{Fault: FaultMissingEOT, IDs: []string{strconv.Itoa(r.now.number)}}
}

// fail gives the place back, if nobody else will: acknowledgements go on without
// reads.
func (r *reads) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		return
	}
	r.now.failed = true
	close(r.now.done)
	if r.now.abandoned {
		r.place <- struct{}{}
	}
	r.now = nil
}

func (r *reads) drain(d time.Duration) bool { return takeBack(&r.gate, r.place, 1, d) }

// Outstanding names the read in flight.
func (r *reads) Outstanding() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		return nil
	}
	return []string{"read " + strconv.Itoa(r.now.number)}
}

// acks is the stream of acknowledgements of a source, one at a time.
type acks struct {
	link[*sourcepb.AckRequest, *sourcepb.AckResponse]

	place  chan struct{}
	ledger *ledger

	mu  sync.Mutex
	now *ack
}

// An ack is one request in flight.
type ack struct {
	offsets   []Offset
	done      chan struct{}
	failed    bool
	abandoned bool
}

func (a *acks) do(ctx context.Context, offsets []Offset) error {
	if len(offsets) == 0 {
		return nil
	}
	if _, err := take(ctx, &a.gate, a.place); err != nil {
		return err
	}
	now := a.begin(offsets)
	request := &sourcepb.AckRequest{Request: &sourcepb.AckRequest_Request{}}
	for _, o := range offsets {
		request.Request.Offsets = append(request.Request.Offsets, o.proto())
	}
	a.outbox <- parcel[*sourcepb.AckRequest]{first: request}
	select {
	case <-now.done:
	case <-ctx.Done():
		if a.abandon(now) {
			return fmt.Errorf("acknowledgement of %d offsets from %s: no answer yet: %w", len(offsets), offsets[0], context.Cause(ctx))
		}
		<-now.done
	}
	a.place <- struct{}{}
	if now.failed {
		<-a.broken // cause is set
		return fmt.Errorf("acknowledgement of %d offsets from %s: %w", len(offsets), offsets[0], a.cause)
	}
	return nil
}

func (a *acks) begin(offsets []Offset) *ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := &ack{offsets: offsets, done: make(chan struct{})}
	if closed(a.broken) { // the receiver has gone, and will not fail it
		now.failed = true
		close(now.done)
		return now
	}
	a.now = now
	return now
}

func (a *acks) abandon(now *ack) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now.abandoned = a.now == now
	return now.abandoned
}

func (a *acks) deliver(resp *sourcepb.AckResponse) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case resp.GetHandshake() != nil:
		return &ProtocolError{Fault: FaultHandshake}
	case a.now == nil:
		return &ProtocolError{Fault: FaultUnasked}
	case resp.GetResult().GetSuccess() == nil:
		return &ProtocolError{Fault: FaultEmpty, IDs: offsetIDs(a.now.offsets)}
	}
	a.ledger.settle(a.now.offsets, &a.ledger.acked)
	a.over(false)
	return nil
}

// over ends the request in flight.
func (a *acks) over(failed bool) {
	now := a.now
	a.now = nil
	now.failed = failed
	close(now.done)
	if now.abandoned {
		a.place <- struct{}{}
	}
}

func (a *acks) unended() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil {
		return nil
	}
	return &ProtocolError{Fault: FaultMissingID, IDs: offsetIDs(a.now.offsets)}
}

func (a *acks) fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil {
		a.over(true)
	}
}

func (a *acks) drain(d time.Duration) bool { return takeBack(&a.gate, a.place, 1, d) }

// Outstanding names the offsets of the request in flight.
func (a *acks) Outstanding() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil {
		return nil
	}
	return offsetIDs(a.now.offsets)
}
