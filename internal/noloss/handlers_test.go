package noloss

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The kinds of handlers.
const (
	kindMap       = "map"
	kindBatchMap  = "batch map"
	kindMapStream = "map stream"
	kindTransform = "transform"
	kindSink      = "sink"
	kindSource    = "source"
)

// done is how the answer of a handler begins.
func done(id string) []byte { return []byte("done " + id + " ") }

// handler makes the wrapped handler of the process.
func (w *worker) handler(l throttle.Limiter) (any, error) {
	quiet := slog.New(slog.DiscardHandler)
	switch w.Kind {
	case kindMap:
		if w.Bare {
			return w.noted(mapsdk.MapperFunc(waitForEver)), nil
		}
		return w.noted(w.careless(mapper.Wrap(mapsdk.MapperFunc(w.mapOne), l, w.mapOptions()...))), nil
	case kindBatchMap:
		return mapper.WrapBatch(batchmapsdk.BatchMapperFunc(w.mapBatch), l, w.mapOptions()...), nil
	case kindMapStream:
		var opts []mapper.StreamOption
		for _, opt := range w.mapOptions() {
			opts = append(opts, opt)
		}
		if w.With == withOutputs {
			opts = append(opts, mapper.PerOutput())
		}
		return mapper.WrapStream(mapstreamsdk.MapStreamerFunc(w.mapStream), l, opts...), nil
	case kindTransform:
		opts := []sourcer.TransformerOption{sourcer.WithLogger(quiet)}
		if w.MaxWait > 0 {
			opts = append(opts, sourcer.WithMaxWait(w.MaxWait), sourcer.OnDenied(sourcer.Nack()))
		}
		return sourcer.WrapTransformer(transformsdk.SourceTransformFunc(w.transform), l, opts...), nil
	case kindSink:
		opts := []sinker.Option{sinker.WithLogger(quiet)}
		if w.With == withTags {
			last := func(d sinksdk.Datum) string { return string(d.Value()[len(d.Value())-1:]) }
			opts = append(opts, sinker.WithTag(last))
		}
		switch w.OnDenied {
		case deniedNack:
			opts = append(opts, sinker.WithBatchBudget(w.MaxWait), sinker.OnDenied(sinker.Nack()))
		case deniedFail:
			opts = append(opts, sinker.WithBatchBudget(w.MaxWait), sinker.OnDenied(sinker.Fail()))
		}
		return w.carelessSink(sinker.Wrap(sinksdk.SinkerFunc(w.sink), l, opts...)), nil
	case kindSource:
		src, err := w.newSource()
		if err != nil {
			return nil, err
		}
		return sourcer.Wrap(src, l, sourcer.WithLogger(quiet)), nil
	}
	return nil, fmt.Errorf("no kind %q", w.Kind)
}

// What becomes of messages whose tokens do not come within the longest wait.
const (
	deniedNack = "nack"
	deniedFail = "fail"
)

func (w *worker) mapOptions() []mapper.Option {
	opts := []mapper.Option{mapper.WithLogger(slog.New(slog.DiscardHandler))}
	if w.MaxWait > 0 {
		opts = append(opts, mapper.WithMaxWait(w.MaxWait), mapper.OnDenied(mapper.Nack()))
	}
	return opts
}

func (w *worker) mapOne(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(w.work(d.Value())))
}

// waitForEver is a handler that has nothing but the wait.
func waitForEver(ctx context.Context, _ []string, _ mapsdk.Datum) mapsdk.Messages {
	<-ctx.Done()
	panic("context ended")
}

// noted notes the arrival of each message.
func (w *worker) noted(next mapsdk.Mapper) mapsdk.Mapper {
	return mapsdk.MapperFunc(func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		w.arrived(d.Value())
		return next.Map(ctx, keys, d)
	})
}

// carelessTime is for how long a careless wrapper lets the handler go on.
const carelessTime = 20 * time.Millisecond

// careless answers with an empty result when the context ends that it puts around
// the handler. The platform takes that for a message with nothing to forward.
func (w *worker) careless(next mapsdk.Mapper) mapsdk.Mapper {
	if !w.Careless {
		return next
	}
	return mapsdk.MapperFunc(func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(carelessTime, cancel)
		answer := make(chan mapsdk.Messages, 1)
		go func() { answer <- next.Map(ctx, keys, d) }()
		select {
		case out := <-answer:
			return out
		case <-ctx.Done():
			return mapsdk.MessagesBuilder()
		}
	})
}

// carelessSink reports success for what has not come back in time.
func (w *worker) carelessSink(next sinksdk.Sinker) sinksdk.Sinker {
	if !w.Careless {
		return next
	}
	return sinksdk.SinkerFunc(func(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(carelessTime, cancel)
		var ids []string
		copied := make(chan sinksdk.Datum, 1000)
		for d := range in {
			ids = append(ids, d.ID())
			copied <- d
		}
		close(copied)
		answer := make(chan sinksdk.Responses, 1)
		go func() { answer <- next.Sink(ctx, copied) }()
		select {
		case out := <-answer:
			return out
		case <-ctx.Done():
			var out sinksdk.Responses
			for _, id := range ids {
				out = out.Append(sinksdk.ResponseOK(id))
			}
			return out
		}
	})
}

func (w *worker) mapBatch(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		out = out.Append(batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.NewMessage(w.work(d.Value()))))
	}
	return out
}

// mapStream answers with two results, and notes the message between them.
func (w *worker) mapStream(ctx context.Context, _ []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
	defer close(out)
	send := func(value []byte) {
		select {
		case out <- mapstreamsdk.NewMessage(value):
		case <-ctx.Done():
		}
	}
	send([]byte("half " + string(d.Value())))
	send(w.work(d.Value()))
}

func (w *worker) transform(_ context.Context, _ []string, d transformsdk.Datum) transformsdk.Messages {
	return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(w.work(d.Value()), d.EventTime()))
}

func (w *worker) sink(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	out := sinksdk.ResponsesBuilder()
	for d := range in {
		w.work(d.Value())
		out = out.Append(sinksdk.ResponseOK(d.ID()))
	}
	return out
}

// newSource returns a source whose acknowledgements are noted, so that the next process delivers again only what was not acknowledged. What was
// on its way when a stream broke comes again, as in a queue with a visibility timeout.
func (w *worker) newSource() (*dataplane.Queue, error) {
	text, err := os.ReadFile(w.Notes) // it is there: openNotes has made it
	if err != nil {
		return nil, err
	}
	q := dataplane.NewQueue(w.Messages, strings.Fields(string(text))...)
	q.Again, q.OnAck = 2*time.Second, w.notes.note
	q.Before = func() {
		if w.panicIn.Swap(0) > 0 {
			panic("made to panic")
		}
	}
	return q, nil
}
