package envoy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/envoy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// wire opens an HTTP/2 connection to the service, in frames.
func wire(t *testing.T, target string) (*http2.Framer, net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", target)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	f := http2.NewFramer(c, c)
	require.NoError(t, f.WriteSettings())
	return f, c
}

// strangersCalls makes calls until n are made or the server ends the connection, waits for its end, and returns how many were made.
func strangersCalls(t *testing.T, target string, block []byte, n int) (made int) {
	t.Helper()
	f, c := wire(t, target)
	defer c.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c)
	}()
	for err := error(nil); made < n && err == nil; made++ {
		id := uint32(2*made + 1)
		first := block[:min(len(block), 16<<10)]
		err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(first) == len(block)})
		for rest := block[len(first):]; len(rest) > 0 && err == nil; {
			n := min(len(rest), 16<<10)
			err = f.WriteContinuation(id, n == len(rest), rest[:n])
			rest = rest[n:]
		}
	}
	if half, ok := c.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	<-ended
	return made
}

// headersOf encodes the headers of a call, with n bytes and other headers more.
func headersOf(n int, more ...string) []byte {
	var out bytes.Buffer
	enc := hpack.NewEncoder(&out)
	for _, h := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", ratelimit.RateLimitService_ShouldRateLimit_FullMethodName},
		{":authority", "a"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
		{"x-filler", strings.Repeat("~", n)},
	} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	for h := range slices.Chunk(more, 2) {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	return out.Bytes()
}

// A call without the token is refused when its headers have come, whatever its message will be.
func TestStrangersAreRefusedBeforeTheirMessage(t *testing.T) {
	conn := start(t, envoy.Config{Limiter: throttletest.New(), Token: "canary-0123456789"})
	for _, header := range []string{"", "Bearer wrong", "Basic wrong"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			ratelimit.RateLimitService_ShouldRateLimit_FullMethodName)
		require.NoError(t, err)
		require.Equal(t, codes.Unauthenticated, status.Code(stream.RecvMsg(&ratelimit.RateLimitResponse{})))
	}
}

// A stranger's headers cost hardly more memory than they have bytes, in one call or in many.
func TestHeadersOfStrangersCostLittle(t *testing.T) {
	const sent = 20 << 20
	conn := start(t, envoy.Config{Limiter: throttletest.New(), Token: "canary-0123456789"})
	for _, size := range []int{100, 4000, 12_000, 60_000, 8 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			block := headersOf(size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for left := sent; left > 0; { // over as many connections as it takes
				left -= len(block) * strangersCalls(t, conn.Target(), block, left/len(block)+1)
			}
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*sent))
		})
	}
}

// Nothing remains of a stranger's calls when their connections have ended, however long they might have taken.
func TestCallsOfStrangersLeaveNothing(t *testing.T) {
	conn := start(t, envoy.Config{Limiter: throttletest.New(), Token: "canary-0123456789"})
	for _, timeout := range []string{"99999999H", "61S", "1S"} {
		block := headersOf(0, "grpc-timeout", timeout)
		calls := func(connections int) uint64 {
			for range connections {
				strangersCalls(t, conn.Target(), block, 90)
			}
			var now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&now)
			return now.HeapAlloc
		}
		before := calls(10)
		calls(100)
		require.Eventually(t, func() bool { return calls(0) < before+2<<20 }, 10*time.Second, 100*time.Millisecond, timeout)
	}
}

// Envoy's connection_keepalive pings as often as it is told, also while no call is made or one waits.
func TestPingsOfEnvoy(t *testing.T) {
	conn := start(t, envoy.Config{Limiter: throttletest.New()})
	f, _ := wire(t, conn.Target())
	for i := range 100 {
		require.NoError(t, f.WritePing(false, [8]byte{byte(i)}))
		for {
			frame, err := f.ReadFrame()
			require.NoError(t, err)
			_, away := frame.(*http2.GoAwayFrame)
			require.False(t, away, "ping %d", i)
			if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() && ping.Data[0] == byte(i) {
				break
			}
		}
	}
}

// A request of too many items is refused without being decoded, and one that may be read is not.
func TestItemsAreCountedOnTheWire(t *testing.T) {
	conn := start(t, envoy.Config{Limiter: throttletest.New()})
	send := func(raw []byte) error {
		var res ratelimit.RateLimitResponse
		return conn.Invoke(t.Context(), ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, raw, &res,
			grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")}))
	}
	descriptors := func(n int) []byte { return bytes.Repeat([]byte{0x12, 0}, n) }
	entries := func(n int) []byte { // of two descriptors
		half := bytes.Repeat([]byte{0x0a, 0}, n/2)
		one := append([]byte{0x12, byte(len(half)&0x7f | 0x80), byte(len(half)>>7&0x7f | 0x80), byte(len(half) >> 14)}, half...)
		return bytes.Repeat(one, 2)
	}
	one := describe("k", strings.Repeat("x", 3<<20))
	long, err := proto.Marshal(&ratelimit.RateLimitRequest{Domain: "d", Descriptors: []*descriptor.RateLimitDescriptor{one}})
	require.NoError(t, err)
	require.NoError(t, send(long), "Envoy lets a request pass that is refused as too long")
	require.NoError(t, send(descriptors(64)))
	require.NoError(t, send(entries(1024)))
	for _, raw := range [][]byte{descriptors(65), descriptors(500_000), entries(1026), entries(500_000)} {
		err := send(raw)
		require.Equal(t, codes.InvalidArgument, status.Code(err), err)
		require.ErrorContains(t, err, "too many items, allowed: ")
	}
}
