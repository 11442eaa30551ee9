package redpandaconnect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	// atHand is how long Access waits for a token itself.
	atHand = 10 * time.Millisecond
	// longestWait bounds what Access answers, because a token may come sooner than expected: another process stops, or a pause ends.
	longestWait = time.Second
	// unknownWait is what Access answers when nobody knows when a token comes, such as before the store has answered.
	unknownWait = 100 * time.Millisecond
)

func init() { //nolint:gochecknoinits // as plugins of Connect do
	service.MustRegisterRateLimit("numathrottle", spec(), func(conf *service.ParsedConfig, mgr *service.Resources) (service.RateLimit, error) {
		return newRateLimit(conf, mgr.Label())
	})
}

// positive is a lint rule, for a linter knows only the types of fields.
const positive = `root = if this < 1 || this > 1000000000 { ["is %v, allowed: 1 to 1000000000 tokens".format(this)] }`

func spec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Summary("A limit that all processes with the same pool and store share.").
		Description("Each access draws one token. All settings of numathrottle, such as logins to the store, can be given as variables "+
			"`NUMATHROTTLE_*`, or in the YAML file that `NUMATHROTTLE_CONFIG` names. Fields given here override them.").
		Fields(
			service.NewIntField("max").Optional().Example(600).LintRule(positive).Description("Tokens per `per`, over all processes."),
			service.NewDurationField("per").Optional().Example("1m").Description("The period of `max`; by default 1s."),
			service.NewIntField("burst").Optional().Example(10).LintRule(positive).
				Description("Tokens that can be saved up, over all processes; by default what `max` earns in 100 ms, at least 1."),
			service.NewStringField("pool").Optional().Example("orders/geocoder").
				Description("Processes with the same pool and store share the limit. Required with `store`."),
			service.NewStringField("store").Optional().Secret().Example("redis://redis:6379").
				Description("Where the pool is kept; by default `memory://`, this process alone."),
			service.NewStringField("tag").Optional().Example("acme").Description("The tenant, model or destination whose quota is used."),
		)
}

// A rateLimit is a resource of Connect.
type rateLimit struct {
	tokens throttle.Limiter // of the tag
	lease  *lease
}

func newRateLimit(conf *service.ParsedConfig, label string) (*rateLimit, error) {
	c, tag, err := settings(conf, label)
	if err != nil {
		return nil, fmt.Errorf("numathrottle: %w", err)
	}
	if c.Limit.Max == 0 {
		return nil, errors.New("numathrottle: max is 0, allowed: 1 to 1000000000 tokens")
	}
	l, err := share(c)
	if err != nil {
		return nil, err
	}
	r := &rateLimit{tokens: l.of.limiter, lease: l}
	if tag != "" {
		r.tokens = l.of.limiter.ForTag(tag)
	}
	r.releaseIfLost()
	return r, nil
}

// settings returns the settings of the process, with the fields of a resource in their place.
func settings(conf *service.ParsedConfig, label string) (c numathrottle.Config, tag string, err error) {
	if c, err = numathrottle.Load(); err != nil {
		return c, "", err
	}
	err = errors.Join(
		set(conf, "max", conf.FieldInt, &c.Limit.Max),
		set(conf, "per", conf.FieldDuration, &c.Limit.Per),
		set(conf, "burst", conf.FieldInt, &c.Limit.Burst),
		set(conf, "pool", conf.FieldString, &c.Pool),
		set(conf, "store", conf.FieldString, &c.Store),
		set(conf, "tag", conf.FieldString, &tag),
	)
	switch pool := conf.Contains("pool"); {
	case err == nil && conf.Contains("store") && !pool:
		err = errors.New("pool is not set, allowed with store: 1 to 256 bytes")
	case c.Store == "" && !pool:
		c.Pool = label // a limit of this process alone needs no name of its own
	}
	return c, tag, err
}

func set[T any](conf *service.ParsedConfig, name string, field func(path ...string) (T, error), at *T) error {
	if !conf.Contains(name) {
		return nil
	}
	v, err := field(name)
	if err == nil {
		*at = v
	}
	return err
}

// Access draws a token and returns 0. Without one it holds nothing, and returns when to try again, at most a second. It fails if the limiter
// is closed, or can never grant a token. It is safe for concurrent use.
func (r *rateLimit) Access(ctx context.Context) (time.Duration, error) {
	soon, cancel := context.WithTimeout(ctx, atHand)
	defer cancel()
	_, err := r.tokens.Acquire(soon, 1)
	refused, ok := errors.AsType[*throttle.Error](err)
	switch {
	case err == nil:
		return 0, nil
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case ok && refused.Reason.Final():
		return 0, fmt.Errorf("numathrottle: %w", err)
	case ok && refused.RetryAfter > 0:
		return min(refused.RetryAfter, longestWait), nil
	case ok || errors.Is(err, context.DeadlineExceeded):
		return unknownWait, nil
	}
	return 0, fmt.Errorf("numathrottle: %w", err)
}

// Close leaves the pool, unless other resources use it too. So the other processes have this one's share at once. It takes up to six
// seconds, or until ctx ends; then the pool is left in the background.
func (r *rateLimit) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- r.lease.release() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
