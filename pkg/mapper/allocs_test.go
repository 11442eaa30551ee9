package mapper_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// spacious is a limit that never binds.
func spacious(t *testing.T) throttle.Limiter {
	t.Helper()
	l, err := throttle.New(throttle.Limit{Max: 1_000_000_000, Burst: 1_000_000_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// Garbage costs throughput: a server with a small heap collects it once for about a thousand messages. It is the channel
// that the handler closes; a pump of its own for each message makes it 464 bytes.
func TestAStreamedMessageMakesLittleGarbage(t *testing.T) {
	testkit.SkipRace(t, "it makes garbage of its own")
	h := mapstreamsdk.MapStreamerFunc(func(_ context.Context, _ []string, _ mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
		to <- mapstreamsdk.NewMessage(nil)
		close(to)
	})
	d := mapstreamsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil)
	of := func(h mapstreamsdk.MapStreamer) float64 {
		return testkit.Allocated(10_000, func() {
			to := make(chan mapstreamsdk.Message, 1)
			h.MapStream(t.Context(), nil, d, to)
			runtime.Gosched() // the wrapper's goroutine ends, as it does beside a real server
		})
	}
	bare := of(h)
	require.Less(t, of(mapper.WrapStream(h, spacious(t)))-bare, 250.0)
}

// A list of its own for each batch makes it 134 bytes a message.
func TestAMessageOfABatchMakesLittleGarbage(t *testing.T) {
	testkit.SkipRace(t, "it makes garbage of its own")
	const size = 500
	h := batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		out := make(batchmapsdk.BatchResponses, 0, size)
		for d := range in {
			out = out.Append(batchmapsdk.NewBatchResponse(d.Id()))
		}
		return out
	})
	d := batchmapsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, "id", nil)
	of := func(h batchmapsdk.BatchMapper) float64 {
		return testkit.Allocated(200, func() {
			in := make(chan batchmapsdk.Datum, size)
			for range size {
				in <- d
			}
			close(in)
			h.BatchMap(t.Context(), in)
		}) / size
	}
	bare := of(h)
	require.Less(t, of(mapper.WrapBatch(h, spacious(t)))-bare, 20.0)
}
