package console

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config is what a console is made of.
type Config struct {
	// Store is where the pools are; it should be a driver.Lister. It stays the caller's.
	Store consensus.Store
	// StoreURL is shown. It has no secret.
	StoreURL string
	// Listen is HOST:PORT. Defaults to DefaultListen.
	Listen string
	// Token opens a session, at least MinTokenBytes long; empty: the console only shows, on loopback alone.
	Token string
	// TokenFile is where Token stands, if anywhere: it is reread when it changes, which ends the sessions of another token.
	TokenFile string
	// HostNames are those by which a console on loopback may be called beside its own.
	HostNames listen.Names
	// Quotas are what processors are configured with. A pool whose processors have these shows names and targets of tags; of any other
	// pool with quotas they are not known.
	Quotas throttle.Quotas
	// Every is how often a pool is asked for that somebody looks at. Defaults to a second.
	Every time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// DefaultListen is loopback alone.
const DefaultListen = "127.0.0.1:8090"

// Validate says what is wrong with c, or nil.
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

// A Console serves the page and what it asks for. It is an http.Handler that may be used by any number of goroutines.
type Console struct {
	c        Config
	ctx      context.Context //nolint:containedctx // of the pollers, which outlive the requests that begin them
	hub      *hub
	list     *lister
	sessions *sessions
	loopback bool
	mux      *http.ServeMux
	streams  chan struct{} // a place for each stream that may be open
}

// mostStreams is how many streams may be open at a time.
const mostStreams = 100

// New returns a console whose pollers end with ctx. The error is that of Config.Validate.
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

// Of connections to an address there are so many at most, beside those of browsers that have not logged in.
const mostConnections = 256

// How long requests may go on when the console ends, and how long it waits for another one.
const (
	shutdownTimeout = 3 * time.Second
	shutdownQuiet   = 20 * time.Millisecond
)

// Serve serves a console until ctx ends. listening is told the address that it listens on. Errors: those of
// Config.Validate; one of the address.
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
	listening(set.Listeners()[0].Addr())
	if err := server.Run(ctx); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	return nil
}
