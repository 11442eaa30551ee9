package permits

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Defaults and bounds.
const (
	defaultMaxWait    = time.Minute
	defaultLease      = time.Minute
	defaultMaxPermits = 10_000
	defaultGrace      = 25 * time.Second

	// freeLease bounds the lease of a permit of no tokens.
	freeLease = 10 * time.Second

	// longestWait and longestLease bound a client's request.
	longestWait  = time.Hour
	longestLease = time.Hour

	connections = 4096
	maxBody     = 16 << 10
)

// A pauser pauses the limit: *throttle.Throttle and *throttle.InFlight.
type pauser interface {
	Pause(ctx context.Context, until time.Time, reason string, opts ...throttle.PauseOption) (throttle.PauseReceipts, error)
	Resume(ctx context.Context, opts ...throttle.PauseOption) error
}

// An apiConfig configures the API. The zero value of a field is its default.
type apiConfig struct {
	// Limiter is the limiter that permits are drawn from. If it is a throttle.Tagger, a call's tag selects the limiter of the tag.
	Limiter throttle.Limiter
	// Pauser is the target of /v1/pause. Defaults to Limiter, if it is one.
	Pauser pauser
	// Listen lists the addresses to listen on. It must not be empty.
	Listen []listen.Addr
	// Token is the token that callers must send as "Authorization: Bearer TOKEN". It may be empty only for unix sockets and loopback
	// addresses: then none is needed.
	Token string
	// TokenFile is the file that holds Token, if any. It is reread when it changes.
	TokenFile string
	// HostNames are further host names that a loopback address accepts.
	HostNames listen.Names
	// MaxWait is how long a call waits by default and at most: up to longestWait. Defaults to defaultMaxWait.
	MaxWait time.Duration
	// Lease is how long a permit is valid by default: up to longestLease. Defaults to defaultLease.
	Lease time.Duration
	// MaxPermits bounds the permits that are open or waited for at once. Defaults to defaultMaxPermits.
	MaxPermits int
	// MaxPermitsPerCaller bounds them for one caller: one address, or all unix sockets together. Defaults to half of MaxPermits for each
	// address of another host, and to MaxPermits for those of this host.
	MaxPermitsPerCaller int
	// NoPause disables /v1/pause, and waits in reports. PauseToken, if not empty, replaces Token for them. PauseTokenFile is the file that holds it, if
	// any, and is reread when it changes.
	NoPause        bool
	PauseToken     string
	PauseTokenFile string
	// Grace is how long the API continues after ctx has ended while clients still use it. Defaults to defaultGrace.
	Grace time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Ready, if not nil, is called with the addresses once the API listens.
	Ready func(addrs []string)

	quiet time.Duration // see listen.Server; set by tests
}

func (c apiConfig) withDefaults() apiConfig {
	set(&c.MaxWait, defaultMaxWait)
	set(&c.Lease, defaultLease)
	set(&c.MaxPermits, defaultMaxPermits)
	set(&c.Grace, defaultGrace)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if p, ok := c.Limiter.(pauser); ok && c.Pauser == nil {
		c.Pauser = p
	}
	return c
}

func set[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// runAPI serves the API until ctx has ended and no client uses it any more, or the grace period is over. Then it settles open permits as
// drawn. It does not close the limiter. Errors: an unavailable address, or one that needs a token, or a longer one; an error that ended the
// server before ctx did.
func runAPI(ctx context.Context, c apiConfig) error {
	if len(c.Listen) == 0 {
		return errors.New("permits: listen is empty, allowed: " + listen.Allowed)
	}
	if n, least := len(c.PauseToken), listen.LeastToken(c.Listen); n > 0 && n < least {
		return fmt.Errorf("permits: the token of pauses has %d bytes, allowed at an address that can be reached from elsewhere: at least %d", n, least)
	}
	c = c.withDefaults()
	set, err := listen.Open(ctx, c.Listen, connections, c.Token, c.Logger)
	if err != nil {
		return err
	}
	d := newDesk(c)
	server := &listen.Server{Set: set, Grace: c.Grace, Quiet: c.quiet, Busy: d.busy, HTTP: &http.Server{
		Handler:           d.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      c.MaxWait + 30*time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}}
	if c.Ready != nil {
		c.Ready(set.Addrs())
	}
	swept := d.sweepUntil(ctx)
	err = server.Run(ctx)
	d.close()
	<-swept
	return err
}
