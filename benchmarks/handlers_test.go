package benchmarks

import (
	"bytes"
	"context"
	"io"
	"log"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// size is how many messages are in flight, or in a batch.
const size = 500

// sender sends size messages through a server, and returns when all are answered.
type sender func(ctx context.Context) error

// BenchmarkHandler compares a bare handler, which does almost nothing, with the wrapped one, through a server of numaflow-go. The limit
// never binds. The target is 0.98 of the bare handler's messages.
func BenchmarkHandler(b *testing.B) {
	log.SetOutput(io.Discard) // numaflow-go reports there that its servers stop
	m := mapsdk.MapperFunc(func(_ context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).WithKeys(keys))
	})
	batch := batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		out := batchmapsdk.BatchResponsesBuilder()
		for d := range in {
			out = out.Append(batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.NewMessage(d.Value()).WithKeys(d.Keys())))
		}
		return out
	})
	stream := mapstreamsdk.MapStreamerFunc(
		func(_ context.Context, keys []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
			defer close(out)
			out <- mapstreamsdk.NewMessage(d.Value()).WithKeys(keys)
		})
	transform := transformsdk.SourceTransformFunc(func(_ context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), d.EventTime()).WithKeys(keys))
	})
	sink := sinksdk.SinkerFunc(func(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
		out := sinksdk.ResponsesBuilder()
		for d := range in {
			out = out.Append(sinksdk.ResponseOK(d.ID()))
		}
		return out
	})
	source := &spring{}
	l := newThrottle(b, throttle.Limit{Max: 10_000_000})
	for _, k := range []struct {
		name          string
		bare, wrapped any
		dial          func(b *testing.B, socket string) sender
	}{
		{"map", m, mapper.Wrap(m, l), each(dataplane.Dial)},
		{"batch-map", batch, mapper.WrapBatch(batch, l), batches(dataplane.DialBatchMap)},
		{"stream-map", stream, mapper.WrapStream(stream, l), each(dataplane.DialMapStream)},
		{"stream-map-direct", stream, mapper.WrapStream(stream, l, mapper.Direct()), each(dataplane.DialMapStream)},
		{"transformer", transform, sourcer.WrapTransformer(transform, l), each(dataplane.DialTransform)},
		{"sink", sink, sinker.Wrap(sink, l), batches(dataplane.DialSink)},
		{"source", source, sourcer.Wrap(source, l), reads},
	} {
		for i, handler := range []any{k.bare, k.wrapped} {
			b.Run(k.name+"/"+[]string{"bare", "wrapped"}[i], func(b *testing.B) {
				send := k.dial(b, dataplane.Serve(b, handler).Socket)
				for b.Loop() {
					require.NoError(b, send(b.Context()))
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/size, "ns/message")
			})
		}
	}
}

// A conn is a connection to a handler that takes In and answers with Out.
type conn[In, Out any] interface {
	Do(ctx context.Context, in In) (Out, error)
	Close() error
}

type dialler[S any] func(ctx context.Context, socket string, opts ...dataplane.Option) (S, error)

func dial[S interface{ Close() error }](b *testing.B, to dialler[S], socket string) S {
	b.Helper()
	s, err := to(b.Context(), socket)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s
}

func message() dataplane.Message {
	return dataplane.Message{Keys: []string{"key"}, Value: bytes.Repeat([]byte("x"), 64)}
}

// each sends one message at a time, many of them in flight.
func each[S conn[dataplane.Message, Out], Out any](to dialler[S]) func(*testing.B, string) sender {
	return func(b *testing.B, socket string) sender {
		b.Helper()
		s, msg := dial(b, to, socket), message()
		return func(ctx context.Context) error {
			var running sync.WaitGroup
			var failed atomic.Pointer[error]
			for range size {
				running.Go(func() {
					if _, err := s.Do(ctx, msg); err != nil {
						failed.Store(&err)
					}
				})
			}
			running.Wait()
			if err := failed.Load(); err != nil {
				return *err
			}
			return nil
		}
	}
}

func batches[S conn[[]dataplane.Message, Out], Out any](to dialler[S]) func(*testing.B, string) sender {
	return func(b *testing.B, socket string) sender {
		b.Helper()
		s, batch := dial(b, to, socket), slices.Repeat([]dataplane.Message{message()}, size)
		return func(ctx context.Context) error {
			_, err := s.Do(ctx, batch)
			return err
		}
	}
}

// reads takes size messages and acknowledges them.
func reads(b *testing.B, socket string) sender {
	b.Helper()
	s := dial(b, dataplane.DialSource, socket)
	return func(ctx context.Context) error {
		for n := 0; n < size; {
			msgs, err := s.Read(ctx, size-n, time.Second)
			if err != nil {
				return err
			}
			offsets := make([]dataplane.Offset, len(msgs))
			for i := range msgs {
				offsets[i] = msgs[i].Offset
			}
			if err := s.Ack(ctx, offsets); err != nil {
				return err
			}
			n += len(msgs)
		}
		return nil
	}
}

// A spring is a source that always has messages.
type spring struct {
	sourcesdk.Sourcer

	n atomic.Int64
}

func (s *spring) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	value := message().Value
	for range r.Count() {
		offset := strconv.AppendInt(nil, s.n.Add(1), 10)
		out <- sourcesdk.NewMessage(value, sourcesdk.NewOffsetWithDefaultPartitionId(offset), time.Now())
	}
}

func (*spring) Ack(context.Context, sourcesdk.AckRequest)      {}
func (*spring) Nack(context.Context, sourcesdk.NackRequest)    {}
func (*spring) Pending(context.Context) int64                  { return 0 }
func (*spring) ActivePartitions(context.Context) []int32       { return sourcesdk.DefaultPartitions() }
func (*spring) TotalPartitions(context.Context) (total *int32) { return nil }
