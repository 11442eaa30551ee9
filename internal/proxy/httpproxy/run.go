package httpproxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Run serves until ctx has ended and the proxy is no longer in use, or the grace period is over. Errors: those of Validate; an unavailable
// address; those of numathrottle.Open; an error that ended the server before ctx did. None shows a secret.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	token, err := c.Serving.Secret()
	if err != nil {
		return err
	}
	addrs, _ := listen.Parse(c.Serving.Listen)
	// Every connection may wait for its turn, and surplus ones get an error response.
	set, err := listen.Open(ctx, addrs, 2*c.MaxRequests, token, c.Logger)
	if err != nil {
		return err
	}
	out, err := newEgress(&c, set.Addrs())
	if err != nil {
		return errors.Join(err, set.Close())
	}
	l, err := c.open(ctx)
	if err != nil {
		return errors.Join(err, set.Close())
	}
	defer func() { err = errors.Join(err, l.close()) }()
	p := newHandler(&c, l, token, out)
	c.tell(set.Addrs())
	server := &listen.Server{Set: set, Grace: c.Serving.Grace, Quiet: c.quiet, HTTP: &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return p.ended },
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}}
	err = server.Run(ctx)
	p.close()
	return err
}

// limits are what requests draw from.
type limits struct {
	limiter throttle.Limiter
	account *account.Limits // nil: they are none to an LLM
	closers []func() error
}

// open joins the pools of the limits.
func (c *Config) open(ctx context.Context) (l limits, err error) {
	if !c.isLLM() {
		if c.Limiter != nil {
			return limits{limiter: c.Limiter}, nil
		}
		all, err := proxy.OpenLimits(ctx, &c.Limits, c.Logger)
		if err != nil {
			return l, err
		}
		return limits{limiter: all.Limiter, closers: []func() error{all.Close}}, nil
	}
	of := c.account()
	purse, err := account.OpenPurse(ctx, of.Pool, c.Prices, c.Budget, of.BudgetQuotas(), false, c.Logger)
	if err != nil {
		return l, err
	}
	of.Purse = purse
	if l.account, err = account.Open(ctx, of, c.Logger); err != nil {
		return l, errors.Join(err, purse.Close())
	}
	l.limiter, l.closers = l.account.Limiter(), []func() error{l.account.Close, purse.Close}
	return l, nil
}

// Plan opens and closes the limits, for a changed settings file. Its ctx is opening.Planning.
func (c *Config) Plan(ctx context.Context, log *slog.Logger) error {
	of := c.withDefaults()
	of.Logger = log
	l, err := of.open(ctx)
	if err != nil {
		return err
	}
	return l.close()
}

// close leaves the pools.
func (l limits) close() error {
	var errs []error
	for _, end := range l.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// tell logs the addresses of the proxy, and the scope of its counting.
func (c *Config) tell(addrs []string) {
	c.Logger.Info("the HTTP proxy listens", "addresses", addrs, "upstream", c.Upstream, "forward", c.Forward)
	if c.Forward != "" && c.AllowConnect {
		c.Logger.Info("a CONNECT draws once for its connection; requests inside it are encrypted and not counted")
	}
	if c.Ready != nil {
		c.Ready(addrs)
	}
}
