package dataplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	sourcepb "github.com/numaproj/numaflow-go/pkg/apis/proto/source/v1"
)

// A Source is a source with its two streams, one for reads and one for acknowledgements. All its methods are safe for concurrent use. Like
// those of the platform's single actor, calls are serialised, so that a slow Read delays everything (see WithParallelCalls).
type Source struct {
	client sourcepb.SourceClient
	conn   *grpc.ClientConn
	reads  *reads
	acks   *acks
	// calls limits the calls without a stream.
	calls    chan struct{}
	parallel bool
	ledger   *ledger

	closeOnce    sync.Once
	closeErr     error
	drainTimeout time.Duration
}

// An Offset names a message of a source.
type Offset struct {
	Value     []byte
	Partition int32
}

// String is how the offset is named in errors: base64 of the value, and the
// partition, as the platform's message IDs.
func (o Offset) String() string {
	return fmt.Sprintf("%s-%d", base64.StdEncoding.EncodeToString(o.Value), o.Partition)
}

func (o Offset) proto() *sourcepb.Offset {
	return &sourcepb.Offset{Offset: o.Value, PartitionId: o.Partition}
}

// A SourceMessage is a message that was read. Message.Watermark is zero.
type SourceMessage struct {
	Message
	Offset Offset
}

// A Nacked is an offset that is refused. Options may be nil.
type Nacked struct {
	Offset  Offset
	Options *NackOptions
}

// SourceStats counts what a Source has done. Messages = Acked + Nacked +
// Outstanding, as long as every offset is settled once, over the connection that
// has read it.
type SourceStats struct {
	// Reads that have ended with an end-of-transmission mark, and those among them
	// without a message.
	Reads, EmptyReads int
	// Messages that were read.
	Messages int
	// Acked and Nacked offsets, of messages that were read here.
	Acked, Nacked int
	// Adopted offsets were settled here, and read over another connection.
	Adopted int
	// Outstanding messages are read and not settled.
	Outstanding int
	// LongestRead is the longest time from a read's request to its end.
	LongestRead time.Duration
}

// DialSource opens the streams to the source at socketPath, as Dial does to a unary
// mapper.
func DialSource(ctx context.Context, socketPath string, opts ...Option) (*Source, error) {
	return dial(ctx, "source", socketPath, opts, openSource)
}

func openSource(ctx context.Context, conn *grpc.ClientConn, s settings) (*Source, error) {
	client := sourcepb.NewSourceClient(conn)
	if err := waitReady(ctx, client.IsReady); err != nil {
		return nil, err
	}
	read, err := openStream(ctx, conn, client.ReadFn,
		&sourcepb.ReadRequest{Handshake: &sourcepb.Handshake{Sot: true}},
		func(resp *sourcepb.ReadResponse) bool {
			return resp.GetHandshake().GetSot() && resp.GetResult() == nil && !resp.GetStatus().GetEot()
		})
	if err != nil {
		return nil, fmt.Errorf("reads: %w", err)
	}
	ack, err := openStream(ctx, conn, client.AckFn,
		&sourcepb.AckRequest{Handshake: &sourcepb.Handshake{Sot: true}},
		func(resp *sourcepb.AckResponse) bool { return resp.GetHandshake().GetSot() })
	if err != nil {
		read.cancel()
		return nil, fmt.Errorf("acknowledgements: %w", err)
	}
	src := &Source{
		client: client, conn: conn, drainTimeout: s.drainTimeout, parallel: s.parallel,
		ledger: &ledger{open: map[string]bool{}},
	}
	one := make(chan struct{}, 1)
	one <- struct{}{}
	other := one
	src.calls = one
	if s.parallel {
		other, src.calls = make(chan struct{}, 1), nil
		other <- struct{}{}
	}
	src.reads = &reads{place: one, ledger: src.ledger}
	src.acks = &acks{place: other, ledger: src.ledger}
	src.reads.run(src.reads, read, conn, s, 1)
	src.acks.run(src.acks, ack, conn, s, 1)
	return src, nil
}

// Read asks for up to count messages within timeout, a whole number of milliseconds. It returns the messages that came until the source
// ended the read.
//
// When ctx ends before the read was asked for, nothing was sent. When it ends later,
// Read returns but the read goes on, and its messages are counted and given to nobody.
//
// Errors: the cause of ctx; ErrBroken when the stream broke before the end of the
// read, together with the messages that came before (the platform keeps them);
// ErrClosed when nothing was sent because Close had begun.
func (s *Source) Read(ctx context.Context, count int, timeout time.Duration) ([]SourceMessage, error) {
	ms := timeout.Milliseconds()
	if count < 1 || ms < 0 || ms > math.MaxUint32 || timeout%time.Millisecond != 0 {
		return nil, fmt.Errorf("read %d within %s: at least one message is to be read, and the timeout is whole milliseconds", count, timeout)
	}
	return s.reads.do(ctx, count, uint32(ms))
}

// Ack acknowledges offsets and waits until the source has answered. Offsets that
// were read over another connection may be among them.
//
// Errors: the cause of ctx (it may be that the source still gets them); ErrBroken when
// the stream broke before the answer; ErrClosed.
func (s *Source) Ack(ctx context.Context, offsets []Offset) error {
	return s.acks.do(ctx, offsets)
}

// Nack refuses offsets, each with its options, and waits until the source has
// answered.
//
// Errors: the cause of ctx, ErrClosed, ErrBroken with the server's gRPC status.
func (s *Source) Nack(ctx context.Context, nacked []Nacked) error {
	requests := make([]*sourcepb.NackRequest_Request, len(nacked))
	offsets := make([]Offset, len(nacked))
	for i, n := range nacked {
		offsets[i] = n.Offset
		requests[i] = &sourcepb.NackRequest_Request{
			Offsets: []*sourcepb.Offset{n.Offset.proto()}, NackOptions: n.Options.proto(),
		}
	}
	resp, err := unary(ctx, s, func(ctx context.Context) (*sourcepb.NackResponse, error) {
		return s.client.NackFn(ctx, &sourcepb.NackRequest{Request: requests})
	})
	if err != nil {
		return err
	}
	if resp.GetResult() == nil {
		return fmt.Errorf("%w: %w", ErrBroken, &ProtocolError{Fault: FaultEmpty, IDs: offsetIDs(offsets)})
	}
	s.ledger.settle(offsets, &s.ledger.nacked)
	return nil
}

// Pending asks how many messages wait in the source. A negative number means that
// it does not know.
func (s *Source) Pending(ctx context.Context) (int64, error) {
	resp, err := unary(ctx, s, func(ctx context.Context) (*sourcepb.PendingResponse, error) {
		return s.client.PendingFn(ctx, &emptypb.Empty{})
	})
	if err == nil && resp.GetResult() == nil { // what a panic in the handler comes to
		err = fmt.Errorf("%w: %w", ErrBroken, &ProtocolError{Fault: FaultEmpty, IDs: []string{"pending"}})
	}
	return resp.GetResult().GetCount(), err
}

// Partitions asks for the partitions that the source reads from, and how many there
// are in all; total is -1 when the source does not say.
func (s *Source) Partitions(ctx context.Context) (active []int32, total int, err error) {
	resp, err := unary(ctx, s, func(ctx context.Context) (*sourcepb.PartitionsResponse, error) {
		return s.client.PartitionsFn(ctx, &emptypb.Empty{})
	})
	if err == nil && resp.GetResult() == nil {
		err = fmt.Errorf("%w: %w", ErrBroken, &ProtocolError{Fault: FaultEmpty, IDs: []string{"partitions"}})
	}
	if err != nil {
		return nil, 0, err
	}
	total = -1
	if resp.GetResult().TotalPartitions != nil {
		total = int(resp.GetResult().GetTotalPartitions())
	}
	return resp.GetResult().GetPartitions(), total, nil
}

// unary makes a call that has no stream, when it is its turn.
func unary[T any](ctx context.Context, s *Source, call func(context.Context) (T, error)) (resp T, err error) {
	if s.calls != nil {
		// The actor outlives a stream, as the platform's does: only Close ends it.
		if _, err := take(ctx, &gate{closing: s.reads.closing, broken: make(chan struct{})}, s.calls); err != nil {
			return resp, err
		}
		defer func() { s.calls <- struct{}{} }()
	}
	resp, err = call(ctx)
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return resp, fmt.Errorf("no answer yet: %w", context.Cause(ctx))
	default:
		return resp, fmt.Errorf("%w: %w", ErrBroken, err)
	}
}

// Stats returns the counts of this moment.
func (s *Source) Stats() SourceStats { return s.ledger.stats() }

// Outstanding returns the offsets that were read and are not settled, sorted, as
// Offset.String names them.
func (s *Source) Outstanding() []string { return s.ledger.outstanding() }

// Broken is closed when the stream of reads is over, for whatever reason.
func (s *Source) Broken() <-chan struct{} { return s.reads.broken }

// Close accepts no more calls, and waits for the running ones for up to the drain timeout. Then it closes the sending sides, gives the
// server 50 ms to end its own, and ends streams and connection. Further calls return the same result. Messages that are read and not
// settled stay so.
//
// Errors: ErrBroken with the cause when a stream broke before or meanwhile; an error
// when a call was left without an answer.
func (s *Source) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Source) close() error {
	close(s.reads.closing)
	close(s.acks.closing)
	drained := s.reads.drain(s.drainTimeout)
	if s.parallel {
		drained = s.acks.drain(s.drainTimeout) && drained
	}
	readsLeft, acksLeft := s.reads.Outstanding(), s.acks.Outstanding()
	if drained {
		s.reads.end()
		s.acks.end()
		s.reads.awaitEnd(endGrace)
		s.acks.awaitEnd(endGrace)
	}
	s.Abort()
	return errors.Join(s.reads.closedWith(readsLeft), s.acks.closedWith(acksLeft))
}

// Abort breaks the connection at once, as a platform that was killed. Close may be
// called later.
func (s *Source) Abort() {
	s.reads.cancel()
	s.acks.cancel()
	s.reads.workers.Wait()
	s.acks.workers.Wait()
	_ = s.conn.Close()
}
