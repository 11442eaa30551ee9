package httpproxy

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// DefaultListen is the default address of the proxy.
const DefaultListen = "127.0.0.1:7080"

// Defaults and bounds.
const (
	defaultMaxWait     = time.Minute
	defaultMaxAttempts = 4
	defaultTimeout     = 5 * time.Minute
	defaultIdle        = 5 * time.Minute
	defaultMaxBody     = 64 << 20
	defaultBuffer      = 1 << 20
	defaultMaxRequests = 512
)

// classifier returns how refusals are read of requests that are none to an LLM.
func classifier(provider profile.Name) httpthrottle.Classifier {
	if provider == profile.Generic || provider == profile.SelfHosted {
		return httpthrottle.Generic
	}
	return account.Classifier(provider)
}

// A Config configures Run. The zero value of a field is its default.
type Config struct {
	// Limits are the limits that requests draw from.
	Limits proxy.LimitConfig
	// Limiter, if set, replaces Limits. Run does not close it.
	Limiter throttle.Limiter
	// LLM are the limits on calls of an LLM, and how they count; its Pool, limits on requests and on calls in flight are those of Limits.
	LLM account.Config
	// Prices are the prices of models, and Budget what all calls may cost.
	Prices map[string]account.Price
	Budget account.Budget

	// Upstream is the service behind the reverse proxy: an http or https URL, with a path if its base URL has one.
	Upstream string
	// Forward lists the hosts that the forward proxy may connect to.
	Forward string
	// AllowConnect lets the forward proxy open tunnels, which count connections and not the calls inside.
	AllowConnect bool
	// AllowAddresses are addresses that the forward proxy may dial besides public ones, in the form of dialguard.ParseAddresses.
	AllowAddresses string
	// Serving configures the listener. Its Listen defaults to DefaultListen.
	Serving proxy.Serving

	// Provider is the API whose error format the responses use, and whose way of counting calls of an LLM have. Defaults to generic.
	Provider profile.Name
	// Cost is how much a request draws, Tag for which tag, and Settle its final cost.
	Cost, Tag, Settle string

	// MaxWait bounds how long a request waits for its tokens, and for one refusal. Defaults to a minute.
	MaxWait time.Duration
	// MaxAttempts bounds the attempts of a request. Defaults to 4.
	MaxAttempts int
	// RetryFailures also retries idempotent requests that failed for other reasons.
	RetryFailures bool
	// AnswerTimeout bounds the time until the service's response begins. IdleTimeout bounds the silence of a response or a tunnel, and how
	// far the body of a request may fall behind 1 KiB a second. Both default to 5 minutes.
	AnswerTimeout, IdleTimeout time.Duration
	// MaxBody bounds the body of a request, in bytes. BodyBuffer is how much of it is kept, so that it can be sent again. They default to
	// 64 MiB and 1 MiB.
	MaxBody, BodyBuffer int
	// EgressProxy sends requests through the proxy in the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in lower case.
	EgressProxy bool
	// MaxRequests bounds the concurrent requests and tunnels. Defaults to 512.
	MaxRequests int

	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Ready, if not nil, is called with the addresses once the proxy listens.
	Ready func(addrs []string)

	quiet time.Duration // see listen.Server; set by tests
}

// Fields describes the proxy's own settings, in the order of the reference.
func Fields() []config.Field[*Config] {
	own := config.WithPrefix(
		proxy.Prefix,
		config.EndpointField("upstream", "none", "The service that the reverse proxy stands for, such as `https://api.openai.com`",
			func(c *Config) *string { return &c.Upstream }).Like("https://api.openai.com"),
		proxy.Parsed("forward", allowedHosts, "none: no forward proxy", "Where the forward proxy may go",
			func(c *Config) *string { return &c.Forward }, parseHosts).Like("api.openai.com,*.example.com:8443"),
		config.BoolField("allowConnect", "The forward proxy makes tunnels (`CONNECT`, for `https`) and counts them, not the calls inside",
			func(c *Config) *bool { return &c.AllowConnect }),
		proxy.Parsed("allowAddresses", dialguard.AllowedAddresses, "none",
			"Which addresses the forward proxy may dial beside public ones; services in a cluster need `private`. "+
				"The upstream, and addresses that `forward` names, may be dialled anyway",
			func(c *Config) *string { return &c.AllowAddresses }, func(text string) (dialguard.Addresses, bool) {
				a, err := dialguard.ParseAddresses(text)
				return a, err == nil
			}).Like("private"),
		config.ChoiceField("provider", "Whose refusals the answers have, see [http.md](http.md#what-becomes-of-an-answer), and who counts "+
			"calls of an LLM, see [llm.md](llm.md); `generic` and `self-hosted` are the same",
			func(c *Config) *profile.Name { return &c.Provider }, append([]profile.Name{profile.Generic}, profile.Names()...)...),
		proxy.Parsed("cost", allowedCost, "`1`", "How many tokens a request draws",
			func(c *Config) *string { return &c.Cost }, parseCost).Like("json max_tokens"),
		taglevel.Field(allowedTag, "For which tenant or model a request draws; see [quotas.md](quotas.md#two-levels)", "header X-Tenant",
			func(c *Config) *string { return &c.Tag }, parseTag),
		proxy.Parsed("settle", allowedSettle, "`usage` for LLMs, else `drawn`",
			"The final cost of a request: as drawn, the usage in an LLM's answer, or a header of the answer",
			func(c *Config) *string { return &c.Settle }, func(text string) (meterRule, bool) { return parseSettle(text, nil) }).Like("usage"),
		config.DurationField("maxWait", time.Millisecond, time.Hour, "`1m`", "How long a request waits for its tokens, and for one refusal",
			func(c *Config) *time.Duration { return &c.MaxWait }).Like("30s"),
		config.NumberField("maxAttempts", 1, 100, "4", "How often a request is sent at most",
			func(c *Config) *int { return &c.MaxAttempts }).In("times").Like("2"),
		config.BoolField("retryFailures", "Also repeat idempotent requests that failed for other reasons",
			func(c *Config) *bool { return &c.RetryFailures }),
		config.DurationField("answerTimeout", time.Second, time.Hour, "`5m`", "How long the service may take to begin its answer",
			func(c *Config) *time.Duration { return &c.AnswerTimeout }).Like("2m"),
		config.DurationField("idleTimeout", time.Second, time.Hour, "`5m`",
			"How long an answer or a tunnel may be silent, and how far a body may fall behind 1 KiB a second",
			func(c *Config) *time.Duration { return &c.IdleTimeout }).Like("10m"),
		config.NumberField("maxBody", 1, 1<<30, "67108864", "The longest body of a request, in bytes",
			func(c *Config) *int { return &c.MaxBody }).In("bytes").Like("10485760"),
		config.NumberField("bodyBuffer", 1, 64<<20, "1048576", "What is kept of a body, in bytes, so that it can be sent again",
			func(c *Config) *int { return &c.BodyBuffer }).In("bytes").Like("262144"),
		config.BoolField("egressProxy", "Requests go out through the proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name",
			func(c *Config) *bool { return &c.EgressProxy }),
		config.NumberField("maxRequests", 1, 100_000, "512", "How many requests and tunnels may be open at once",
			func(c *Config) *int { return &c.MaxRequests }).In("requests").Like("128"),
	)
	at := func(c *Config) *account.Config { return &c.LLM }
	llm := config.WithPrefix(proxy.Prefix, slices.Concat(account.LimitFields(at), account.CountFields(at), account.MediaFields(at),
		account.MoneyFields(func(c *Config) *map[string]account.Price { return &c.Prices }, func(c *Config) *account.Budget { return &c.Budget }))...)
	llm = slices.DeleteFunc(llm, func(f config.Field[*Config]) bool { return f.Key == "max" }) // see MaxField
	return slices.Concat(config.About("HTTP proxy", own...), config.About("HTTP proxy for LLMs", llm...),
		proxy.LimitFields(func(c *Config) *proxy.LimitConfig { return &c.Limits }),
		proxy.ServingFields(DefaultListen, func(c *Config) *proxy.Serving { return &c.Serving }))
}

// MaxField replaces the library's setting max: it may also be announced.
func MaxField() config.Field[*Config] {
	number := opening.LimitFields(func(c *Config) *opening.Config { return (*opening.Config)(&c.Limits.Pool) }, "max")[0]
	return number.OrWord("announced", func(c *Config) *bool { return &c.LLM.Announced })
}

// QuotasField replaces the library's setting quotas: they may name limits.
func QuotasField() config.Field[*Config] {
	return proxy.QuotasField(account.QuotaLimits, func(c *Config) *proxy.LimitConfig { return &c.Limits })
}

func (c *Config) withDefaults() Config {
	d := *c
	d.Serving = d.Serving.WithDefaults(DefaultListen)
	d.Provider = cmp.Or(d.Provider, profile.Generic)
	d.MaxWait = cmp.Or(d.MaxWait, defaultMaxWait)
	d.MaxAttempts = cmp.Or(d.MaxAttempts, defaultMaxAttempts)
	d.AnswerTimeout = cmp.Or(d.AnswerTimeout, defaultTimeout)
	d.IdleTimeout = cmp.Or(d.IdleTimeout, defaultIdle)
	d.MaxBody = cmp.Or(d.MaxBody, defaultMaxBody)
	d.BodyBuffer = cmp.Or(d.BodyBuffer, defaultBuffer)
	d.MaxRequests = cmp.Or(d.MaxRequests, defaultMaxRequests)
	if d.isLLM() {
		d.Cost = costLLM
		d.Settle = cmp.Or(d.Settle, settleUsage)
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}

// Validate returns an error with a line for each fault of the proxy's own settings, or nil.
func (c *Config) Validate() error {
	faults := config.Check(Fields(), c)
	if c.Upstream == "" && c.Forward == "" {
		faults = append(faults, &config.FieldError{Field: "upstream", Problem: "is not set, and neither is forward", Allowed: "one of them, or both"})
	}
	if c.LLM.Announced && c.Limits.Pool.Limit != (throttle.Limit{}) {
		faults = append(faults, &config.FieldError{
			Field: "max", Problem: "is announced, beside per or another setting of a limit that is a number", Allowed: "`announced` without them",
		})
	}
	if c.LLM.Limited() && c.Cost != "" && c.Cost != costLLM {
		faults = append(faults, &config.FieldError{
			Field: "cost", Problem: fmt.Sprintf("is %q beside a limit on the calls of an LLM", c.Cost), Allowed: "`llm`, or none",
		})
	}
	if len(c.Prices) > 0 && !c.isLLM() {
		faults = append(faults, &config.FieldError{Field: "prices", Problem: "are set, but the cost is not that of an LLM", Allowed: "with `cost: llm`"})
	}
	faults = append(faults, account.CheckMoney(c.Prices, c.Budget, c.Limits.QuotasOf.Limits["budget"], true)...)
	switch of := c.account(); {
	case len(faults) > 0:
	case c.isLLM():
		faults = of.CheckPools(c.Budget)
	default:
		faults = c.Limits.CheckQuotas()
	}
	return config.Join(append(faults, c.Serving.Check()...))
}
