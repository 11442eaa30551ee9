package permitapi

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
	DefaultMaxWait    = time.Minute
	DefaultLease      = time.Minute
	DefaultMaxPermits = 10_000
	DefaultGrace      = 25 * time.Second

	// FreeLease is how long a permit of no tokens is good for at most.
	FreeLease = 10 * time.Second

	// LongestWait and LongestLease bound what a client may ask for.
	LongestWait  = time.Hour
	LongestLease = time.Hour

	connections = 4096
	maxBody     = 16 << 10
)

// A Pauser pauses the limit: *throttle.Throttle and *throttle.InFlight.
type Pauser interface {
	Pause(ctx context.Context, until time.Time, reason string, opts ...throttle.PauseOption) (throttle.PauseReceipts, error)
	Resume(ctx context.Context, opts ...throttle.PauseOption) error
}

// A Config says what the API hands out, and where. The zero value of a field is its default.
type Config struct {
	// Limiter is what permits are drawn from. Where it is a throttle.Tagger, a call's tag
	// chooses the limiter of the tag.
	Limiter throttle.Limiter
	// Pauser is what /v1/pause pauses. Defaults to Limiter, if it is one.
	Pauser Pauser
	// Listen is where the API listens. It must not be empty.
	Listen []listen.Addr
	// Token is what callers have to send as "Authorization: Bearer TOKEN"; empty: nothing,
	// which only unix sockets and loopback addresses allow.
	Token string
	// TokenFile is where Token stands, if anywhere: it is reread when it changes.
	TokenFile string
	// HostNames are those by which a loopback address may be called beside its own.
	HostNames listen.Names
	// MaxWait is how long a call waits that does not say, and at most: up to LongestWait.
	// Defaults to DefaultMaxWait.
	MaxWait time.Duration
	// Lease is how long a permit is good for when the call does not say: up to LongestLease.
	// Defaults to DefaultLease.
	Lease time.Duration
	// MaxPermits is how many permits may be open or waited for at once. Defaults to
	// DefaultMaxPermits.
	MaxPermits int
	// MaxPermitsPerCaller is how many of them one caller has at most: an address from which calls come, or all unix sockets together.
	// Defaults to half of MaxPermits for each address that is not of this host, and to MaxPermits for those of this host.
	MaxPermitsPerCaller int
	// NoPause turns /v1/pause off. PauseToken, if not empty, is what its callers have to send in place of Token. PauseTokenFile is where it
	// stands, if anywhere: it is reread when it changes.
	NoPause        bool
	PauseToken     string
	PauseTokenFile string
	// Grace is how long the API goes on after ctx has ended while somebody still uses it.
	// Defaults to DefaultGrace.
	Grace time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Ready, if not nil, is told the addresses once the API listens.
	Ready func(addrs []string)

	quiet time.Duration // see listen.Server; set by tests
}

func (c Config) withDefaults() Config {
	set(&c.MaxWait, DefaultMaxWait)
	set(&c.Lease, DefaultLease)
	set(&c.MaxPermits, DefaultMaxPermits)
	set(&c.Grace, DefaultGrace)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if p, ok := c.Limiter.(Pauser); ok && c.Pauser == nil {
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

// Run serves the API until ctx has ended and nobody uses it any more, or the grace is over.
// Permits that are still open then are settled as drawn. It does not close the limiter.
// Errors: an address that cannot be had, or that needs a token, or a longer one; what ended the server before
// ctx did.
func Run(ctx context.Context, c Config) error {
	if len(c.Listen) == 0 {
		return errors.New("permitapi: listen is empty, allowed: " + listen.Allowed)
	}
	if n, least := len(c.PauseToken), listen.LeastToken(c.Listen); n > 0 && n < least {
		return fmt.Errorf("permitapi: the token of pauses has %d bytes, allowed at an address that can be reached from elsewhere: at least %d", n, least)
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
