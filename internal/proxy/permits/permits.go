package permits

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/envoy"
)

// DefaultListen is the default address of the HTTP API.
const DefaultListen = "127.0.0.1:7070"

// A Config configures Run. The zero value of a field is its default.
type Config struct {
	// Limits are the limits that permits are drawn from.
	Limits proxy.LimitConfig
	// Serving configures the HTTP API's listener. Its Listen defaults to DefaultListen. The rate limit service uses the same token.
	Serving proxy.Serving
	// MaxWait, PermitLease and MaxPermits are as in apiConfig.
	MaxWait, PermitLease time.Duration
	MaxPermits           int
	// MaxPermitsPerCaller, NoPause, PauseToken and PauseTokenFile are as in apiConfig. At most one of the latter two is set.
	MaxPermitsPerCaller int
	NoPause             bool
	PauseToken          numathrottle.Secret
	PauseTokenFile      string
	// RLSListen is the address of Envoy's rate limit service. Defaults to none.
	RLSListen string
	// RLSKey, RLSAskOnly and RLSWait are Key, AskOnly and MaxWait of envoy.Config.
	RLSKey     string
	RLSAskOnly bool
	RLSWait    time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Ready, if not nil, is called with the addresses of the HTTP API, and then with those of the rate limit service, if any.
	Ready func(addrs []string)
}

// Fields describes the settings, in the order of the reference.
func Fields() []config.Field[*Config] {
	own := config.WithPrefix(
		proxy.Prefix,
		config.DurationField("maxWait", time.Millisecond, longestWait, "`1m`", "How long a call waits at most, and by default",
			func(c *Config) *time.Duration { return &c.MaxWait }).Like("10s"),
		config.DurationField("permitLease", time.Second, longestLease, "`1m`",
			"How long a permit may be open before it counts as drawn; a client can ask for more",
			func(c *Config) *time.Duration { return &c.PermitLease }).Like("5m"),
		config.NumberField("maxPermits", 1, 1_000_000, "10000", "How many permits are open or waited for at once",
			func(c *Config) *int { return &c.MaxPermits }).In("permits").Like("500"),
		config.NumberField("maxPermitsPerCaller", 1, 1_000_000, "half of `maxPermits`, for callers of this host all of them",
			"How many of them one caller has, told by its address", func(c *Config) *int { return &c.MaxPermitsPerCaller }).In("permits").Like("100"),
		config.BoolField("noPause", "`/v1/pause` is turned off, and so is `retry_after_seconds` in reports", func(c *Config) *bool { return &c.NoPause }),
		program.SecretField("pauseToken",
			"What callers of `/v1/pause`, and of reports with `retry_after_seconds`, send in place of `token`; "+
				"at least 16 bytes at an address that isn't local",
			func(c *Config) *numathrottle.Secret { return &c.PauseToken }),
		config.PathField("pauseTokenFile", "none", "That token in a file; reread when it changes",
			func(c *Config) *string { return &c.PauseTokenFile }),
		proxy.Parsed("rlsListen", listen.Allowed, "none", "Where Envoy's rate limit service listens",
			func(c *Config) *string { return &c.RLSListen }, listen.Parse).Like("127.0.0.1:7071"),
		config.TextField("rlsKey", "a text", "all entries", "The entry of a descriptor whose value is the tag",
			func(c *Config) *string { return &c.RLSKey }).Like("tenant"),
		config.BoolField("rlsAskOnly", "`hits_addend` of a descriptor asks, and nothing is taken when it is refused: for routes that report no cost",
			func(c *Config) *bool { return &c.RLSAskOnly }),
		config.DurationField("rlsWait", time.Millisecond, envoy.LongestWait, "not at all", "How long a call of Envoy's waits for its tokens",
			func(c *Config) *time.Duration { return &c.RLSWait }).Like("10ms"),
	)
	return slices.Concat(config.About("Permit server", own...), proxy.LimitFields(func(c *Config) *proxy.LimitConfig { return &c.Limits }),
		proxy.ServingFields(DefaultListen, func(c *Config) *proxy.Serving { return &c.Serving }))
}

// Validate returns an error with a line for each fault of the settings besides those of the pool, or nil.
func (c *Config) Validate() error {
	faults := append(config.Check(Fields(), c), c.Serving.Check()...)
	if c.PauseToken.IsSet() && c.PauseTokenFile != "" {
		faults = append(faults, &config.FieldError{Field: "pauseTokenFile", Problem: "is set, and so is pauseToken", Allowed: "one of them"})
	}
	faults = append(faults, c.Limits.CheckQuotas()...)
	faults = append(faults, proxy.CheckLength("pauseToken", c.PauseToken, "listen", c.Serving.Listen)...)
	return config.Join(append(faults, c.Serving.CheckAddress("rlsListen", c.RLSListen)...))
}

// Run serves until ctx has ended and the server is no longer in use, or the grace period is over. Errors: those of Validate; an unavailable
// address; those of numathrottle.Open; an error that ended a server before ctx did. None shows a secret.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Serving = c.Serving.WithDefaults(DefaultListen)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	tokens, err := c.tokens()
	if err != nil {
		return err
	}
	limits, err := proxy.OpenLimits(ctx, &c.Limits, c.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limits.Close()) }()
	return c.serve(ctx, limits, tokens)
}

// tokens are the initial tokens for calls and for pauses; empty for none.
type tokens struct{ call, pause string }

func (c *Config) tokens() (t tokens, err error) {
	if t.call, err = c.Serving.Secret(); err == nil {
		t.pause, err = proxy.FirstToken(c.PauseToken, "pauseTokenFile", c.PauseTokenFile)
	}
	return t, err
}

// serve runs the servers. If one fails, the other ends, too.
func (c *Config) serve(ctx context.Context, limits *proxy.Limits, first tokens) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var servers sync.WaitGroup
	errs := make([]error, 2)
	api, _ := listen.Parse(c.Serving.Listen)
	servers.Go(func() {
		defer cancel()
		errs[0] = runAPI(ctx, apiConfig{
			Limiter: proxy.BoundTags(limits.Limiter, cmp.Or(c.MaxPermits, defaultMaxPermits)),
			Pauser:  limits.Main, Listen: api, Token: first.call, TokenFile: c.Serving.TokenFile, HostNames: c.Serving.Names(),
			MaxWait: c.MaxWait, Lease: c.PermitLease, MaxPermits: c.MaxPermits, MaxPermitsPerCaller: c.MaxPermitsPerCaller,
			NoPause: c.NoPause, PauseToken: first.pause, PauseTokenFile: c.PauseTokenFile, Grace: c.Serving.Grace,
			Logger: c.Logger, Ready: c.tell("permits"),
		})
	})
	if c.RLSListen != "" {
		rls, _ := listen.Parse(c.RLSListen)
		servers.Go(func() {
			defer cancel()
			errs[1] = envoy.Run(ctx, envoy.Config{
				Limiter: limits.Limiter, Listen: rls, Token: first.call, TokenFile: c.Serving.TokenFile, Key: c.RLSKey,
				AskOnly: c.RLSAskOnly, MaxWait: c.RLSWait, Grace: c.Serving.Grace,
				Logger: c.Logger, Ready: c.tell("rate limit service"),
			})
		})
	}
	servers.Wait()
	return errors.Join(errs...)
}

// tell logs the addresses of a server.
func (c *Config) tell(what string) func(addrs []string) {
	return func(addrs []string) {
		c.Logger.Info("listening", "server", what, "addresses", addrs)
		if c.Ready != nil {
			c.Ready(addrs)
		}
	}
}
