package dataplane

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// An answer is a handler's response to one message of a batch.
type answer[Res any] struct {
	id  string
	res Res
}

// A batch is a number of messages, sent together and ended by a mark. The server answers them in any order and ends with its own mark.
type batch[Res any] struct {
	ids   []string
	index map[string]int // position in ids
	// results and answered are the receiver's until done is closed.
	results  []Res
	answered []bool
	left     int
	// done is closed when the batch has ended; Invariant: then all are answered, or
	// failed is set.
	done   chan struct{}
	failed bool
	// abandoned says that the caller has gone.
	abandoned bool
}

// batches is a stream of batches, one at a time: batch map and sink.
type batches[Req, Resp, Res any] struct {
	link[Req, Resp]

	// place is taken by the batch in flight.
	place chan struct{}
	// inspect reads a response; eot says that it ends the batch.
	inspect func(Resp) (answers []answer[Res], eot bool, err error)

	mu     sync.Mutex
	number int         // of batches so far
	now    *batch[Res] // in flight, or nil
	before *batch[Res] // the one before, to tell late results from unknown ones
}

func (b *batches[Req, Resp, Res]) start(o opened[Req, Resp], s settings, inspect func(Resp) ([]answer[Res], bool, error)) {
	b.inspect = inspect
	b.place = make(chan struct{}, 1)
	b.place <- struct{}{}
	b.run(b, o, o.conn, s, 1)
}

// newIDs names the messages of a batch, "<batch>-<message>".
func (b *batches[Req, Resp, Res]) newIDs(n int) []string {
	b.mu.Lock()
	b.number++
	number := b.number
	b.mu.Unlock()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(number) + "-" + strconv.Itoa(i)
	}
	return ids
}

// do sends a batch and waits for its end. The requests end with the mark. The
// results are in the order of the ids.
func (b *batches[Req, Resp, Res]) do(ctx context.Context, ids []string, requests []Req) ([]Res, error) {
	if _, err := take(ctx, &b.gate, b.place); err != nil {
		return nil, err
	}
	now := b.begin(ids)
	b.outbox <- parcel[Req]{first: requests[0], rest: requests[1:]}
	select {
	case <-now.done:
	case <-ctx.Done():
		if b.abandon(now) {
			return nil, fmt.Errorf("batch of %d from message %s: no end yet: %w", len(ids), ids[0], context.Cause(ctx))
		}
		<-now.done
	}
	if now.failed {
		<-b.broken // cause is set
		return nil, fmt.Errorf("batch of %d from message %s: %w", len(ids), ids[0], b.cause)
	}
	b.place <- struct{}{}
	return now.results, nil
}

func (b *batches[Req, Resp, Res]) begin(ids []string) *batch[Res] {
	now := &batch[Res]{
		ids: ids, index: make(map[string]int, len(ids)), left: len(ids),
		results: make([]Res, len(ids)), answered: make([]bool, len(ids)), done: make(chan struct{}),
	}
	for i, id := range ids {
		now.index[id] = i
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent.Add(int64(len(ids)))
	if closed(b.broken) { // the receiver has gone, and will not fail it
		b.failNow(now)
		return now
	}
	b.now = now
	return now
}

// abandon says that nobody waits for the batch any more; false when it has ended.
func (b *batches[Req, Resp, Res]) abandon(now *batch[Res]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now.abandoned = b.now == now
	return now.abandoned
}

func (b *batches[Req, Resp, Res]) deliver(resp Resp) error {
	answers, eot, err := b.inspect(resp)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range answers {
		if fault := b.answer(a); fault != "" {
			return &ProtocolError{Fault: fault, IDs: []string{a.id}}
		}
	}
	if !eot {
		return nil
	}
	switch {
	case b.now == nil && closed(b.closing):
		return nil // numaflow-go may take the end of the stream for the end of an empty batch
	case b.now == nil:
		return &ProtocolError{Fault: FaultUnexpectedEOT}
	case b.now.left > 0:
		return &ProtocolError{Fault: FaultMissingID, IDs: b.now.unanswered()}
	}
	b.finish()
	return nil
}

// answer enters one answer, or returns its fault.
func (b *batches[Req, Resp, Res]) answer(a answer[Res]) Fault {
	if b.now != nil {
		if i, ok := b.now.index[a.id]; ok {
			if b.now.answered[i] {
				return FaultDuplicateID
			}
			b.now.results[i], b.now.answered[i] = a.res, true
			b.now.left--
			return ""
		}
	}
	if b.before != nil {
		if _, ok := b.before.index[a.id]; ok {
			return FaultAfterEOT
		}
	}
	return FaultUnknownID
}

// finish ends the batch in flight cleanly.
func (b *batches[Req, Resp, Res]) finish() {
	now := b.now
	b.now, b.before = nil, now
	b.answered.Add(int64(len(now.ids)))
	close(now.done)
	if now.abandoned {
		b.late.Add(int64(len(now.ids)))
		b.place <- struct{}{}
	}
}

// unanswered returns the IDs without an answer.
func (b *batch[Res]) unanswered() []string {
	var ids []string
	for i, id := range b.ids {
		if !b.answered[i] {
			ids = append(ids, id)
		}
	}
	return ids
}

func (b *batches[Req, Resp, Res]) unended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.now == nil:
		return nil
	case b.now.left > 0:
		return &ProtocolError{Fault: FaultMissingID, IDs: b.now.unanswered()}
	default:
		return &ProtocolError{Fault: FaultMissingEOT, IDs: slices.Clone(b.now.ids)}
	}
}

func (b *batches[Req, Resp, Res]) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil {
		b.failNow(b.now)
		b.now = nil
	}
}

func (b *batches[Req, Resp, Res]) failNow(now *batch[Res]) {
	b.failed.Add(int64(len(now.ids)))
	now.failed = true
	close(now.done)
}

func (b *batches[Req, Resp, Res]) drain(d time.Duration) bool {
	return takeBack(&b.gate, b.place, 1, d)
}

// Outstanding returns the IDs of the batch in flight, in its order: a batch that has
// not ended is as if nothing of it was answered. After the stream broke, none.
func (b *batches[Req, Resp, Res]) Outstanding() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		return nil
	}
	return slices.Clone(b.now.ids)
}
