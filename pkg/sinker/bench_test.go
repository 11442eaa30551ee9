package sinker_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const size = 500 // of a batch

// handlers are the bare handler, and the wrapped one with a limit that never binds.
func handlers(b *testing.B, tag string) map[string]sinksdk.Sinker {
	b.Helper()
	bare := sinksdk.SinkerFunc(post)
	l, err := throttle.New(throttle.Limit{Max: 1_000_000_000, Burst: 1_000_000_000})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return map[string]sinksdk.Sinker{
		"bare": bare, "wrapped": sinker.Wrap(bare, l), "tags": sinker.Wrap(bare, l, sinker.WithTag(sinker.TagFromHeader(tag))),
	}
}

// BenchmarkSocket compares them over a real socket. The unit is one message, in batches of 500.
func BenchmarkSocket(b *testing.B) {
	batch := make([]dataplane.Message, size)
	for i := range batch {
		batch[i] = dataplane.Message{Value: []byte(strconv.Itoa(i)), Headers: map[string]string{"tag": strconv.Itoa(i % 10)}}
	}
	for name, s := range handlers(b, "tag") {
		b.Run(name, func(b *testing.B) {
			_, k := serve(b, s)
			ctx := b.Context()
			for n := 0; b.Loop(); n++ {
				if n%size == 0 {
					_, err := k.Do(ctx, batch)
					require.NoError(b, err)
				}
			}
			require.NoError(b, k.Close())
		})
	}
}

// BenchmarkSink is the same without the socket: what a message costs in the wrapper.
func BenchmarkSink(b *testing.B) {
	for name, s := range handlers(b, "id") {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for sent := 0; sent < b.N; sent += size {
				in := make(chan sinksdk.Datum)
				go func() {
					defer close(in)
					for range min(size, b.N-sent) {
						in <- datum{"1"}
					}
				}()
				s.Sink(b.Context(), in)
			}
		})
	}
}
