package console

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config configures a console.
type Config struct {
	// Store holds the pools; it should be a driver.Lister. The caller closes it.
	Store driver.Store
	// StoreURL is shown. It contains no secret.
	StoreURL string
	// Listen is HOST:PORT. Defaults to DefaultListen.
	Listen string
	// Token opens a session. At least MinTokenBytes long; empty: the console is read-only and listens on loopback only.
	Token string
	// TokenFile is the file that holds Token, if any. It is reread when it changes, which ends the sessions of another token.
	TokenFile string
	// HostNames are further host names that a console on loopback accepts.
	HostNames listen.Names
	// Quotas returns the configured quotas of the processors of a pool; nil: none are known. The names and targets of tags are known only for
	// pools whose processors have these quotas.
	Quotas func(pool string) throttle.Quotas
	// Every is the polling interval of a pool that is being viewed. Defaults to a second.
	Every time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// DefaultListen is loopback alone.
const DefaultListen = "127.0.0.1:8090"

// Validate returns an error if c is invalid.
func (c *Config) Validate() error {
	host, port, err := net.SplitHostPort(c.listen())
	switch {
	case err != nil || port == "":
		return fmt.Errorf("console: listen is %.80q, allowed: HOST:PORT", c.listen())
	case c.Token != "" && len(c.Token) < MinTokenBytes:
		return fmt.Errorf("console: the token has %d bytes, allowed: at least %d", len(c.Token), MinTokenBytes)
	case c.Token == "" && !listen.Loopback(host):
		return fmt.Errorf("console: listen is %.80q, which others can reach, and there is no token, allowed: 127.0.0.1:PORT, or a token", c.listen())
	}
	return nil
}

func (c *Config) listen() string {
	if c.Listen == "" {
		return DefaultListen
	}
	return c.Listen
}

// A Console serves the page and its API. It is an http.Handler that is safe for concurrent use.
type Console struct {
	c        Config
	ctx      context.Context //nolint:containedctx // of the pollers, which outlive the requests that begin them
	hub      *hub
	list     *lister
	sessions *sessions
	loopback bool
	mux      *http.ServeMux
	streams  chan struct{} // one slot for each open stream
}

// mostStreams bounds the open streams.
const mostStreams = 100

// New returns a console whose pollers end with ctx. Errors: those of Config.Validate.
func New(ctx context.Context, c Config) (*Console, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Every == 0 {
		c.Every = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	host, _, _ := net.SplitHostPort(c.listen())
	h := &hub{store: c.Store, every: c.Every, configured: c.Quotas, feeds: map[string]*feed{}}
	sessions := newSessions(listen.TokenIn(c.TokenFile, c.Token, MinTokenBytes, c.Logger))
	k := &Console{
		c: c, ctx: ctx, hub: h, list: &lister{hub: h}, sessions: sessions, loopback: listen.Loopback(host),
		mux: http.NewServeMux(), streams: make(chan struct{}, mostStreams),
	}
	k.routes()
	return k, nil
}

// mostConnections bounds the connections to an address, besides those of browsers that have not logged in.
const mostConnections = 256

// When the console ends, requests may go on for shutdownTimeout, and it waits shutdownQuiet for another one.
const (
	shutdownTimeout = 3 * time.Second
	shutdownQuiet   = 20 * time.Millisecond
)

// Serve serves a console until ctx ends. It calls listening with its address. Errors: those of Config.Validate; one of the address.
func Serve(ctx context.Context, c Config, listening func(addr net.Addr)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, err := New(ctx, c)
	if err != nil {
		return err
	}
	addrs, ok := listen.Parse(c.listen())
	if !ok {
		return fmt.Errorf("console: listen is %.80q, allowed: HOST:PORT", c.listen())
	}
	set, err := listen.Open(ctx, addrs, mostConnections, c.Token, k.c.Logger)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	server := &listen.Server{Set: set, Grace: shutdownTimeout, Quiet: shutdownQuiet, HTTP: &http.Server{
		Handler: k, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog:    slog.NewLogLogger(k.c.Logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
	}}
	go k.hub.record(ctx)
	listening(set.Listeners()[0].Addr())
	if err := server.Run(ctx); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	return nil
}
