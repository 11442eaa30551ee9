package numathrottle

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Open joins the pool and returns the Throttle that draws on this processor's
// share. It does not wait for the store: until the store has answered, the
// Throttle grants nothing, Throttled says why, and the logger gets a line every
// five seconds. With FailFast the first answer is waited for, for about a second,
// and without it Open fails. ctx bounds Open and nothing else. Open may be called
// from any goroutine.
//
// Close the Throttle after everything that draws has stopped: it leaves the pool,
// so that the others have its share at once, and closes the connection. It takes
// no longer than about five seconds.
//
// Errors: one with a line for every fault of the configuration and its files, as
// Validate; with FailFast, what kept the store from answering. None shows a
// secret.
func Open(ctx context.Context, c Config) (*throttle.Throttle, error) {
	return open(ctx, c.withEnvironment(), nil)
}

// open is Open for a complete configuration of which faults are known already.
func open(ctx context.Context, c Config, faults []error) (*throttle.Throttle, error) {
	opts, undo, err := c.connect(ctx, faults, c.Limit.Max != 0)
	if err != nil {
		return nil, err
	}
	th, err := throttle.New(c.Limit, opts...)
	if err != nil {
		abandon(undo...)
		return nil, fmt.Errorf("numathrottle: %w", err)
	}
	return th, nil
}

// connect checks c, joins the pool if there is a limit, and returns what connects a
// limiter to it, and what undoes this.
func (c Config) connect(ctx context.Context, faults []error, limited bool) (opts []throttle.Option, undo []func(context.Context) error, err error) {
	store, wrong := c.check()
	faults = append(faults, wrong...)
	var creds *credentials
	if limited {
		creds, wrong = c.loadCredentials(&store)
		faults = append(faults, wrong...)
	}
	if err := config.Join(faults); err != nil {
		return nil, nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	opts = []throttle.Option{throttle.WithName(c.Pool)}
	switch {
	case !limited:
		return opts, nil, nil
	case store.Kind == config.Static:
		share, err := throttle.Replicas(store.Replicas)
		if err != nil {
			return nil, nil, fmt.Errorf("numathrottle: store: %w", err)
		}
		return append(opts, throttle.WithSharer(share)), nil, nil
	}
	b := c.backend(&store, creds)
	member, err := c.join(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	opts = append(opts, throttle.WithSharer(member), throttle.OnClose(member.Leave), throttle.OnClose(b.close))
	return opts, []func(context.Context) error{member.Leave, b.close}, nil
}

// A backend is a store and what is to be done when nobody uses it any more.
type backend struct {
	store consensus.Store
	// close waits for nothing beyond the end of its context.
	close func(context.Context) error
}

// backend returns the store that the URL names. It does not wait for a server.
func (c Config) backend(store *config.StoreURL, creds *credentials) backend {
	switch {
	case store.Kind == config.NATS:
		return c.openNATS(store, creds)
	case store.Kind.IsRedis():
		return c.openRedis(store, creds)
	default:
		if inNumaflow() {
			c.Logger.Warn("memory:// is not shared between pods: every pod uses the whole limit; set the store "+
				"to redis:// or nats://, or to static:// for a fixed number of pods", "pool", c.Pool, "processor", c.ID)
		}
		return openMemory(store.Name)
	}
}

// join makes this process a processor of the pool.
func (c Config) join(ctx context.Context, b backend) (*consensus.Member, error) {
	opts := []consensus.Option{consensus.WithID(c.ID), consensus.WithLogger(c.Logger)}
	if c.Lease > 0 {
		opts = append(opts, consensus.WithLease(c.Lease))
	}
	if c.Policy == PolicyEven {
		opts = append(opts, consensus.WithPolicy(consensus.Even))
	}
	if c.onStoreLoss() == StoreLossStop {
		opts = append(opts, consensus.WithOnStoreLoss(consensus.Stop))
	}
	if c.FailFast {
		opts = append(opts, consensus.WithFailFast())
	}
	member, err := consensus.Join(ctx, b.store, c.Pool, opts...)
	if err != nil {
		abandon(b.close)
		return nil, fmt.Errorf("numathrottle: store %s: %w", config.ShowStore(c.Store), err)
	}
	return member, nil
}

// abandon undoes what a failed Open has begun. Nothing was granted yet, so nobody
// has to be told in time; what fails here hides the error that counts.
func abandon(undo ...func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	for _, f := range undo {
		_ = f(ctx)
	}
}
