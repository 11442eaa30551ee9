package envoy

import (
	"bytes"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
)

// What a request of too many items costs doesn't grow with their number.
func TestItemsAreNotDecoded(t *testing.T) {
	entries := append([]byte{0x12, 0xc0, 0x84, 0x3d}, bytes.Repeat([]byte{0x0a, 0}, 500_000)...) // of one descriptor
	for _, raw := range [][]byte{bytes.Repeat([]byte{0x12, 0}, 500_000), entries, bytes.Repeat([]byte{0x7a, 0}, 500_000)} {
		require.Less(t, testing.AllocsPerRun(1, func() {
			require.NoError(t, newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, &ratelimit.RateLimitRequest{}))
		}), 100.0)
	}
}
