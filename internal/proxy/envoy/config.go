package envoy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Bounds of the server.
const (
	// LongestWait bounds Config.MaxWait.
	LongestWait = time.Minute

	connections  = 1024
	streams      = 1024
	maxMessage   = 4 << 20 // far above what Envoy accepts as headers: it lets a request pass if its call is refused as too long
	maxHeaders   = 16 << 10
	defaultGrace = 5 * time.Second
)

// A Config configures the service. The zero value of a field is its default.
type Config struct {
	// Limiter is the limiter that calls draw from. If it is a throttle.Tagger, the tags of a call select limiters.
	Limiter throttle.Limiter
	// Listen lists the addresses to listen on. It must not be empty.
	Listen []listen.Addr
	// Token is the token that callers must send in the metadata "authorization: Bearer TOKEN". It may be empty only for unix sockets and
	// loopback addresses: then none is needed.
	Token string
	// TokenFile is the file that holds Token, if any. It is reread when it changes.
	TokenFile string
	// Key is the entry of a descriptor whose value is the tag; empty: the values of all entries.
	Key string
	// AskOnly makes hits_addend of a descriptor a request for tokens: a refused one takes nothing. By default it is a cost, which is
	// charged in any case.
	AskOnly bool
	// MaxWait is how long a request for tokens waits: up to LongestWait. Envoy itself gives up after 20 ms by default. Defaults to 0: no
	// waiting.
	MaxWait time.Duration
	// Grace is how long calls under way may continue after ctx has ended. Defaults to 5 s.
	Grace time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Ready, if not nil, is called with the addresses once the service listens.
	Ready func(addrs []string)
}

// Run serves until ctx ends. It does not close the limiter. Errors: an unavailable address, or one that needs a token; an error that ended
// the server before ctx did.
func Run(ctx context.Context, c Config) error {
	if len(c.Listen) == 0 {
		return errors.New("envoyrls: listen is empty, allowed: " + listen.Allowed)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	set, err := listen.Open(ctx, c.Listen, connections, c.Token, c.Logger)
	if err != nil {
		return err
	}
	token := listen.TokenIn(c.TokenFile, c.Token, listen.LeastToken(c.Listen), c.Logger)
	server := grpc.NewServer(
		grpc.Creds(connCredentials{insecure.NewCredentials()}),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.InTapHandle(guard(token)),
		grpc.ChainUnaryInterceptor(refuseUnary),
		grpc.ChainStreamInterceptor(refuseStream),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(streams),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: time.Hour, Time: time.Minute, Timeout: 20 * time.Second}),
		// Envoy's connection_keepalive may ping each millisecond, also while there is no call. A ping is cheaper than a call.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Nanosecond, PermitWithoutStream: true}),
	)
	ratelimit.RegisterRateLimitServiceServer(server, &service{
		limiter: c.Limiter, key: c.Key, askOnly: c.AskOnly, wait: c.MaxWait, log: c.Logger,
	})
	alive := health.NewServer()
	healthgrpc.RegisterHealthServer(server, alive)
	if c.Ready != nil {
		c.Ready(set.Addrs())
	}
	return serve(ctx, c.Grace, server, set, alive)
}

// serve serves all addresses until ctx ends.
func serve(ctx context.Context, grace time.Duration, server *grpc.Server, set *listen.Set, alive *health.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg     sync.WaitGroup
		once   sync.Once
		failed error
	)
	for _, l := range set.Listeners() {
		wg.Go(func() {
			if err := server.Serve(l); err != nil && ctx.Err() == nil {
				once.Do(func() { failed = fmt.Errorf("envoyrls: %w", err) })
				cancel()
			}
		})
	}
	<-ctx.Done()
	alive.Shutdown()
	force := time.AfterFunc(grace, server.Stop)
	server.GracefulStop()
	force.Stop()
	wg.Wait()
	return errors.Join(failed, set.Close())
}
