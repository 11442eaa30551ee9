package redelivery

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The kinds of handlers.
const (
	unaryMap  = "map"
	batchMap  = "batch map"
	streamMap = "stream map"
	transform = "transformer"
	sink      = "sink"
)

const handled = time.Duration(-1)

// newPod wraps a handler that does nothing. Without a maxWait messages wait.
func newPod(t *testing.T, kind string, l throttle.Limiter, maxWait time.Duration) pod {
	t.Helper()
	ctx, quiet := t.Context(), slog.New(slog.DiscardHandler)
	opts := []mapper.Option{mapper.WithMaxWait(maxWait), mapper.OnDenied(mapper.Nack()), mapper.WithLogger(quiet)}
	if maxWait == 0 {
		opts[1] = nil
	}
	switch kind {
	case unaryMap:
		m := mapper.Wrap(mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages { return nil }), l, opts...)
		return func([]int) []time.Duration { return one(nackOf(m.Map(ctx, nil, datum()).Items())) }
	case streamMap:
		closes := func(_ context.Context, _ []string, _ mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) { close(out) }
		m := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(closes), l, opts[0], opts[1], opts[2])
		return func([]int) []time.Duration {
			out := make(chan mapstreamsdk.Message, 1)
			m.MapStream(ctx, nil, datum(), out)
			var all []mapstreamsdk.Message
			for msg := range out {
				all = append(all, msg)
			}
			return one(nackOf(all))
		}
	case transform:
		same := func(_ context.Context, _ []string, d transformsdk.Datum) transformsdk.Messages {
			return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(nil, d.EventTime()))
		}
		m := sourcer.WrapTransformer(transformsdk.SourceTransformFunc(same), l,
			sourcer.WithMaxWait(maxWait), sourcer.OnDenied(sourcer.Nack()), sourcer.WithLogger(quiet))
		return func([]int) []time.Duration { return one(nackOf(m.Transform(ctx, nil, transformDatum{}).Items())) }
	case batchMap:
		m := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(answerAll), l, opts...)
		return func(ids []int) []time.Duration {
			in := make(chan batchmapsdk.Datum, len(ids))
			for _, id := range ids {
				in <- batchmapsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, strconv.Itoa(id), nil)
			}
			close(in)
			var out []time.Duration
			for _, r := range m.BatchMap(ctx, in).Items() {
				out = append(out, nackOf(r.Items()))
			}
			require.Len(t, out, len(ids))
			return out
		}
	case sink:
		return sinkPod(t, l, maxWait)
	}
	require.Fail(t, "no such kind", kind)
	return nil
}

func sinkPod(t *testing.T, l throttle.Limiter, maxWait time.Duration) pod {
	t.Helper()
	takes := func(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
		var out sinksdk.Responses
		for d := range in {
			out = out.Append(sinksdk.ResponseOK(d.ID()))
		}
		return out
	}
	opts := []sinker.Option{sinker.WithBatchBudget(maxWait), sinker.OnDenied(sinker.Nack()), sinker.WithLogger(slog.New(slog.DiscardHandler))}
	if maxWait == 0 {
		opts[1] = nil
	}
	s := sinker.Wrap(sinksdk.SinkerFunc(takes), l, opts...)
	return func(ids []int) []time.Duration {
		in, place := make(chan sinksdk.Datum, len(ids)), map[string]int{}
		for i, id := range ids {
			in <- sinkDatum{id: strconv.Itoa(id)}
			place[strconv.Itoa(id)] = i
		}
		close(in)
		out := make([]time.Duration, len(ids))
		responses := s.Sink(t.Context(), in)
		require.Len(t, responses, len(ids))
		for _, r := range responses {
			out[place[r.ID]] = handled
			if r.Nack {
				out[place[r.ID]] = time.Duration(*r.NackOptions.Delay) * time.Millisecond
			}
		}
		return out
	}
}

func answerAll(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		out = out.Append(batchmapsdk.NewBatchResponse(d.Id()))
	}
	return out
}

func datum() mapsdk.Datum {
	return mapsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, nil, nil)
}

type transformDatum struct{ transformsdk.Datum }

func (transformDatum) EventTime() time.Time { return time.Time{} }

type sinkDatum struct {
	sinksdk.Datum

	id string
}

func (d sinkDatum) ID() string { return d.id }

func one(d time.Duration) []time.Duration { return []time.Duration{d} }

// nackOf is the delay of a nack, or handled.
func nackOf[M any](answer []M) time.Duration {
	if len(answer) == 0 {
		return handled
	}
	m, ok := any(answer[0]).(interface{ NackOptions() *mapsdk.NackOptions })
	if !ok || m.NackOptions() == nil {
		return handled
	}
	return time.Duration(*m.NackOptions().Delay) * time.Millisecond
}
