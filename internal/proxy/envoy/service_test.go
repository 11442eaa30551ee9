package envoy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/envoy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// start runs the service, and returns a connection to it.
func start(t *testing.T, c envoy.Config) *grpc.ClientConn {
	t.Helper()
	if c.Listen == nil {
		c.Listen = []listen.Addr{{Network: "tcp", Address: "127.0.0.1:0"}}
	}
	c.Logger = slog.New(slog.DiscardHandler)
	ready := make(chan []string, 1)
	c.Ready = func(addrs []string) { ready <- addrs }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- envoy.Run(ctx, c) }()
	conn, err := grpc.NewClient((<-ready)[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		stop()
		require.NoError(t, <-ended)
	})
	return conn
}

// describe makes a descriptor of keys and values.
func describe(pairs ...string) *descriptor.RateLimitDescriptor {
	d := &descriptor.RateLimitDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &descriptor.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func ask(t *testing.T, conn *grpc.ClientConn, hits uint32, all ...*descriptor.RateLimitDescriptor) (*ratelimit.RateLimitResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: "d", Descriptors: all, HitsAddend: hits})
}

func TestALimit(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 10, Per: time.Hour, Burst: 10})
	require.NoError(t, err)
	conn := start(t, envoy.Config{Limiter: th})
	res, err := ask(t, conn, 5, describe("k", "a"), describe("k", "b"))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode(), "a new bucket is empty")
	require.Len(t, res.GetStatuses(), 2)
	st := res.GetStatuses()[1]
	require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, st.GetCode())
	require.EqualValues(t, 10, st.GetCurrentLimit().GetRequestsPerUnit())
	require.Equal(t, ratelimit.RateLimitResponse_RateLimit_HOUR, st.GetCurrentLimit().GetUnit())
	require.InDelta(t, 1800, st.GetDurationUntilReset().AsDuration().Seconds(), 20)
	header := map[string]string{}
	for _, h := range res.GetResponseHeadersToAdd() {
		header[h.GetKey()] = h.GetValue()
	}
	require.Equal(t, "limit", header["x-numathrottle-reason"])
	require.Regexp(t, `^1[78]\d\d$`, header["retry-after"])
}

func TestHits(t *testing.T) {
	for _, c := range []struct {
		hits uint32
		own  []uint64
		want int
	}{
		{0, nil, 1},
		{7, nil, 7},
		{7, []uint64{3}, 3},
		{7, []uint64{3, 9}, 9},
	} {
		l := throttletest.New()
		conn := start(t, envoy.Config{Limiter: l})
		all := []*descriptor.RateLimitDescriptor{describe("k", "v")}
		if c.own != nil {
			all = nil
			for _, n := range c.own {
				d := describe("k", "v")
				d.HitsAddend = wrapperspb.UInt64(n)
				all = append(all, d)
			}
		}
		res, err := ask(t, conn, c.hits, all...)
		require.NoError(t, err)
		require.Equal(t, ratelimit.RateLimitResponse_OK, res.GetOverallCode())
		require.Equal(t, c.want, l.Draws()[0].Cost)
	}
}

// What Envoy sends for a route with a cost: it asks with zero hits, and reports when the stream is done.
func TestACostIsReportedOverGRPC(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 10, Per: time.Hour, Burst: 10})
	require.NoError(t, err)
	conn := start(t, envoy.Config{Limiter: th})
	hits := func(n uint64) *descriptor.RateLimitDescriptor {
		d := describe("model", "gpt")
		d.HitsAddend = wrapperspb.UInt64(n)
		return d
	}
	for range 2 {
		_, err := ask(t, conn, 0, hits(10))
		require.NoError(t, err)
	}
	res, err := ask(t, conn, 0, hits(0))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode())
	require.InDelta(t, 2.1*3600, res.GetStatuses()[0].GetDurationUntilReset().AsDuration().Seconds(), 20)
	require.EqualValues(t, 10, res.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
}

// A tenants limiter has one limiter for each tag.
type tenants struct {
	throttle.Limiter

	tag map[string]throttle.Limiter
}

func (t *tenants) ForTag(tag string) throttle.Limiter { return t.tag[tag] }

func TestDescriptorsAreTags(t *testing.T) {
	denied := &throttle.Error{Reason: throttle.ReasonLimit, Tag: "b", RetryAfter: time.Second}
	a, ab := throttletest.New(), throttletest.New()
	b := throttletest.New(throttletest.Deny(denied))
	l := &tenants{throttletest.New(), map[string]throttle.Limiter{"a": a, "a/b": ab, "b": b}}

	conn := start(t, envoy.Config{Limiter: l})
	_, err := ask(t, conn, 2, describe("x", "a", "y", "b"))
	require.NoError(t, err)
	require.Equal(t, 2, ab.Draws()[0].Cost, "the values of all entries")

	conn = start(t, envoy.Config{Limiter: l, Key: "tenant"})
	res, err := ask(t, conn, 1, describe("x", "z", "tenant", "a"))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OK, res.GetOverallCode())
	require.Len(t, a.Draws(), 1)
	res, err = ask(t, conn, 1, describe("tenant", "b"))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode())
	require.Equal(t, "x-numathrottle-tag", res.GetResponseHeadersToAdd()[1].GetKey())
	require.Equal(t, "b", res.GetResponseHeadersToAdd()[1].GetValue())
}

func TestAllTagsHaveToAgree(t *testing.T) {
	limit := func(l throttle.Limit) *throttle.Throttle {
		th, err := throttle.New(l)
		require.NoError(t, err)
		return th
	}
	full, empty := limit(throttle.Limit{Max: 100_000, Burst: 100_000}), limit(throttle.Limit{Max: 1, Per: time.Hour})
	require.Eventually(t, func() bool { p, ok := full.TryAcquire(1); p.Cancel(); return ok }, 5*time.Second, time.Millisecond)
	conn := start(t, envoy.Config{Limiter: &tenants{full, map[string]throttle.Limiter{"full": full, "empty": empty}}})
	before := full.Status().Granted
	res, err := ask(t, conn, 1, describe("k", "full"), describe("k", "empty"), describe("k", "full"))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode())
	require.Equal(t, before, full.Status().Granted, "a call that is refused draws nothing")
	res, err = ask(t, conn, 1, describe("k", "full"), describe("k", "full"))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OK, res.GetOverallCode())
	require.Equal(t, before+1, full.Status().Granted, "a tag counts once")
}

// What a client of Envoy has a say in is never an error: Envoy would let the request pass.
func TestRequestsThatNobodyExpects(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 1000, Per: time.Hour}, throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {}}}))
	require.NoError(t, err)
	defer th.Close()
	conn := start(t, envoy.Config{Limiter: th})
	hits := func(n uint64, key string) *descriptor.RateLimitDescriptor {
		d := describe("k", key)
		d.HitsAddend = wrapperspb.UInt64(n)
		return d
	}
	for _, tag := range []string{"", strings.Repeat("x", 300), "a\x00\n", "\u2028", strings.Repeat("x", 200_000), "/", "acme/../x"} {
		for _, d := range []*descriptor.RateLimitDescriptor{describe("k", tag), hits(0, tag)} {
			res, err := ask(t, conn, 5, d)
			require.NoError(t, err)
			require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode(), "%.20q", tag)
			for _, h := range res.GetResponseHeadersToAdd() {
				require.NotContains(t, h.GetValue(), "\n")
				require.Less(t, len(h.GetValue()), 200)
			}
		}
	}
	// As Envoy sends the header of a client, which need be no text.
	for _, tag := range []string{"\xff", "ac\xffme", "\xe2\x80", "\xf0\x9f\x98\x80\xff" + strings.Repeat("\xc0", 1000)} {
		const place = "____"
		d := []*descriptor.RateLimitDescriptor{describe("k", place+strings.Repeat("_", len(tag)))}
		good, err := proto.Marshal(&ratelimit.RateLimitRequest{Domain: "d", Descriptors: d})
		require.NoError(t, err)
		raw := bytes.Replace(good, []byte(strings.Repeat("_", len(tag))), []byte(tag), 1)
		var res ratelimit.RateLimitResponse
		codec := grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")})
		err = conn.Invoke(t.Context(), ratelimit.RateLimitService_ShouldRateLimit_FullMethodName, raw, &res, codec)
		require.NoError(t, err)
		require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode(), "%q", tag)
	}
	// A cost is charged, however large it is.
	res, err := ask(t, conn, 0, hits(math.MaxUint64, "acme"))
	require.NoError(t, err)
	require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode())
	require.Less(t, th.Status().Tokens, -1000.0)
	for _, n := range []uint32{math.MaxUint32, 1 << 31} { // that no draw may cost
		res, err = ask(t, conn, n, describe("q", "acme"))
		require.NoError(t, err)
		require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode())
		require.Equal(t, "too_large", res.GetResponseHeadersToAdd()[0].GetValue())
	}
	// What only a configuration can be wrong in is one.
	_, err = ask(t, conn, 1)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "descriptors has 0 items, allowed: 1 to 64")
	_, err = ask(t, conn, 1, describe("k", strings.Repeat("x", 5<<20)))
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "the size of a request is bounded")
}

// A rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	raw, ok := v.([]byte)
	if !ok {
		return nil, errors.New("no bytes")
	}
	return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
}

func TestTheEndOfTheLimiter(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 1})
	require.NoError(t, err)
	conn := start(t, envoy.Config{Limiter: th})
	require.NoError(t, th.Close())
	_, err = ask(t, conn, 1, describe("k", "v"))
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestTokenAndHealth(t *testing.T) {
	const canary = "hunter2-canary"
	conn := start(t, envoy.Config{Limiter: throttletest.New(), Token: canary})
	_, err := ask(t, conn, 1, describe("k", "v"))
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	require.NotContains(t, err.Error(), canary)
	request := &ratelimit.RateLimitRequest{Descriptors: []*descriptor.RateLimitDescriptor{describe("k", "v")}}
	wrong := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+canary+"!")
	_, err = ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(wrong, request)
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	require.NotContains(t, err.Error(), canary)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+canary)
	_, err = ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, request)
	require.NoError(t, err)
	alive, err := healthgrpc.NewHealthClient(conn).Check(ctx, &healthgrpc.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthgrpc.HealthCheckResponse_SERVING, alive.GetStatus())
	watch, err := healthgrpc.NewHealthClient(conn).Watch(t.Context(), &healthgrpc.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.Equal(t, codes.Unauthenticated, status.Code(err))
}

func TestAnAddressMustBeGiven(t *testing.T) {
	require.ErrorContains(t, envoy.Run(t.Context(), envoy.Config{}), "envoyrls: listen is empty, allowed: ")
	err := envoy.Run(t.Context(), envoy.Config{Listen: []listen.Addr{{Network: "tcp", Address: "0.0.0.0:0"}}})
	require.ErrorContains(t, err, "can be reached from elsewhere")
}
