package opening

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Open is open.Open.
func Open(ctx context.Context, c Config) (*throttle.Throttle, error) {
	return open(ctx, c.withEnvironment(), &config.Reading{})
}

// open is Open for a complete configuration and the record of reading it, with more options of the limiter.
func open(ctx context.Context, c Config, r *config.Reading, more ...throttle.Option) (*throttle.Throttle, error) {
	if p := planOf(ctx); p != nil {
		if err := p.add(&c, 0, c.Quotas); err != nil {
			return nil, err
		}
		return throttle.New(throttle.Limit{})
	}
	j, err := c.connect(ctx, r, c.Limit.Max != 0)
	if err != nil {
		return nil, err
	}
	if c.Quotas.Given() {
		j.opts = append(j.opts, throttle.WithQuotas(c.Quotas))
	}
	th, err := throttle.New(c.Limit, append(j.opts, more...)...)
	if err != nil {
		abandon(j.undo...)
		return nil, fmt.Errorf("numathrottle: %w", err)
	}
	if err := c.start(ctx, &j); err != nil {
		_ = th.Close() // which undoes everything
		return nil, err
	}
	if err := j.monitor.watch(otelthrottle.Watched{Throttle: th, Member: j.member, Tags: slices.Collect(maps.Keys(c.Quotas.Tags))}); err != nil {
		_ = th.Close() // which undoes everything
		return nil, err
	}
	warnings := c.Warnings()
	switch limit := th.Limit(); {
	case limit.Max != 0:
		c.announce(j.logger, describe(limit))
	case len(warnings) == 0:
		j.logger.Info(noLimit, "pool", c.Pool, "pod", c.ID) //nolint:sloglint // it is a constant sentence
	}
	for _, warning := range warnings {
		j.logger.Warn(warning, "pool", c.Pool, "pod", c.ID) //nolint:sloglint // each is a constant sentence
	}
	return th, nil
}

// A connection joins a limiter to a pool.
type connection struct {
	opts    []throttle.Option
	member  *consensus.Member           // nil without a pool
	begin   func(context.Context) error // what lets the member sync
	monitor *monitor
	logger  *slog.Logger
	undo    []func(context.Context) error // what closing the limiter also does
}

// connect checks c, makes a member of the pool if there is a limit, and returns the connection for a limiter. The limiter is made, and start
// called, after that.
func (c Config) connect(ctx context.Context, r *config.Reading, limited bool) (j connection, err error) {
	store, wrong := c.check()
	r.Note(wrong...)
	var creds *drivers.Credentials
	if limited {
		r.Note(c.checkPool(&store)...)
		creds, wrong = c.loadCredentials(&store)
		r.Note(wrong...)
	}
	if err := r.Err(); err != nil {
		return j, err
	}
	c.Logger = c.logger()
	m, err := c.newMonitor(ctx, &store, limited)
	if err != nil {
		return j, err
	}
	j.logger, j.monitor, j.opts = c.Logger, m, append(m.observe(), throttle.WithName(c.Pool), throttle.WithLogger(c.Logger))
	j.opts = append(j.opts, hook.WithMeter(c.PodConcurrency).(throttle.Option)) //nolint:errcheck,forcetypeassert // as documented
	switch {
	case !limited:
	case store.Kind == config.Static:
		share, err := throttle.Replicas(store.Replicas)
		if err != nil {
			m.close(ctx)
			return j, fmt.Errorf("numathrottle: store: %w", err)
		}
		j.opts = append(j.opts, throttle.WithSharer(share))
	default:
		b, err := c.backend(&store, creds)
		if err != nil {
			m.close(ctx)
			return j, err
		}
		opts := m.syncs()
		if w := c.takeoverLock(store.Kind); w != nil {
			opts = append(opts, protocol.WithTakeoverLock(w))
		}
		if f := followerIn(ctx); f != nil {
			opts = append(opts, protocol.WithFiles(f.source(c.Pool)))
		}
		if j.member, err = c.join(ctx, b, append(opts, protocol.WithStart(&j.begin))); err != nil {
			m.close(ctx)
			return j, err
		}
		j.opts = append(j.opts, throttle.WithSharer(j.member))
		j.undo = append(j.undo, j.member.Leave, func(context.Context) error { return b.Close() })
	}
	j.undo = append(j.undo, func(ctx context.Context) error { m.close(ctx); return nil })
	for _, undo := range j.undo {
		j.opts = append(j.opts, throttle.OnClose(undo))
	}
	return j, nil
}

// longestLease returns what lowers the longest lease of a store; 0 is the store's own. Tests replace it: they need not wait for the freeze
// of a new pool.
var longestLease = func(time.Duration) time.Duration { return 0 }

// backend returns the store of the URL. It does not wait for a server. Close closes its connection.
func (c Config) backend(store *config.StoreURL, creds *drivers.Credentials) (driver.Store, error) {
	if store.Kind == config.Memory {
		return openMemory(store.Name), nil
	}
	return drivers.Open(&drivers.Request{URL: store, Credentials: creds, ID: c.ID, Logger: c.Logger, LongestLease: longestLease(c.Lease)})
}

// loadCredentials reads the files that the store's client needs.
func (c Config) loadCredentials(store *config.StoreURL) (*drivers.Credentials, []error) {
	creds := &drivers.Credentials{
		Username: c.StoreUsername, Password: drivers.Source{Text: c.StorePassword.Reveal(), Path: c.StorePasswordFile},
		SentinelUsername: c.StoreSentinelUsername,
		SentinelPassword: drivers.Source{Text: c.StoreSentinelPassword.Reveal(), Path: c.StoreSentinelPasswordFile},
		Token:            drivers.Source{Text: c.StoreToken.Reveal(), Path: c.StoreTokenFile},
		InURL:            c.StorePassword.inURL || c.StoreToken.inURL,
		CredsFile:        c.StoreCredsFile, NkeyFile: c.StoreNkeyFile,
		CAFile: c.StoreCAFile, CertFile: c.StoreCertFile, KeyFile: c.StoreKeyFile,
	}
	return creds, creds.Load(store)
}

// join makes a member of the pool, which joins it when it is started.
func (c Config) join(ctx context.Context, store driver.Store, opts []consensus.Option) (*consensus.Member, error) {
	opts = append(opts, consensus.WithID(c.ID), consensus.WithLogger(c.Logger.With("store", config.ShowStore(c.Store))))
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
	member, err := consensus.Join(ctx, store, c.Pool, opts...)
	if err != nil {
		_ = store.Close() // the other error matters
		return nil, c.storeError(err)
	}
	return member, nil
}

// start lets the member sync, after the limiter has been attached to it: the first sync names its terms.
func (c Config) start(ctx context.Context, j *connection) error {
	if j.begin == nil {
		return nil
	}
	if err := j.begin(ctx); err != nil {
		return c.storeError(err)
	}
	return nil
}

// storeError names the store in an error; a remedy comes first.
func (c Config) storeError(err error) error {
	if said, ok := errors.AsType[*drivers.RemedyError](err); ok {
		err = said
	}
	return fmt.Errorf("numathrottle: store %s: %w", config.ShowStore(c.Store), err)
}

// connectTimeout bounds the cleanup of a connection no longer needed.
const connectTimeout = time.Second

// abandon undoes the steps of a failed Open. Nothing was granted yet, so no notice is urgent; errors here would hide the error that
// matters.
func abandon(undo ...func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	for _, f := range undo {
		_ = f(ctx)
	}
}
