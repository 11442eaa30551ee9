// Package account limits the calls of one account at a provider of LLMs as the provider counts them. It opens the pools of the account's
// limits, draws from all of them or from none, and settles with the usage of the answer.
package account

import (
	"net/http"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config is an account's limits, and how its calls count. The zero value of a field is its default; a limit of 0 is none.
type Config struct {
	// Provider decides how calls count. Defaults to self-hosted.
	Provider profile.Name

	RequestsPerMinute, InputTokensPerMinute, OutputTokensPerMinute, TokensPerMinute, InFlight int
	RequestsPerDay, TokensPerDay                                                              Day

	// Announced makes the limits follow what the service announces; the configured ones are the most then. Where nothing is configured for a
	// limit of a minute that the provider announces, that is followed too.
	Announced bool

	// Charge and CachedInput replace the provider's way of counting. OutputWeight is the weight of a token of an answer beside one of the prompt.
	Charge       profile.Charge
	CachedInput  profile.CachedInput
	OutputWeight int
	// CountInputs counts each text of a call for embeddings as a request.
	CountInputs bool
	// OutputTokens is what an answer counts before one was seen, and at most if the request does not bound it. Defaults to 1024.
	OutputTokens int
	// Media has the costs of images, sounds and files.
	Media prompt.Media

	// Pool configures how the limits are shared; each has a pool of its own below Pool.Pool. Its Limit is the one that Main counts against.
	Pool numathrottle.Config
	// Limiter, if not nil, replaces all limits: it counts tokens, as Main does with it, else as TokensPerMinute.
	Limiter throttle.Limiter
	// Main adds the limit of Pool and its quotas: tokens of prompts and answers, by usage.
	Main bool
	// Quotas are those of the main limit: of the first of tokens, input, output and requests that is set.
	Quotas throttle.Quotas
	// QuotasOf are those of limits by their settings, such as requestsPerMinute, and of the budget in money, in millionths of the currency
	// ("budget").
	QuotasOf opening.QuotasOf
	// Tag names the tenant of a request of Transport; nil: none. A refusal concerns the account, and so all tenants.
	Tag func(*http.Request) string
	// Shape, if not nil, completes the limit of a kind before its pool is opened.
	Shape func(k profile.Kind, isMain bool, l throttle.Limit) throttle.Limit
	// Purse has the prices and their budget; nil: none.
	Purse *Purse
	// AnyType reads the usage from answers of any type. Without it only JSON and streams have one: others may hold anything.
	AnyType bool
	// Name is the deployment in metrics. Defaults to the pool.
	Name string
}

// A Reset says when a limit of a day is there again.
type Reset string

// The resets.
const (
	Rolling  Reset = "rolling"  // refilled all the time
	Midnight Reset = "midnight" // whole again at midnight
)

// A Day is a limit of a day.
type Day struct {
	Amount int   `json:"amount"`
	Reset  Reset `json:"reset,omitempty"`
	// Zone is the time zone of the midnight. Defaults to UTC.
	Zone string `json:"zone,omitempty"`
	// Burst is how much a rolling limit saves up. Defaults to Amount.
	Burst int `json:"burst,omitempty"`
}

const day = 24 * time.Hour

// limit returns the limit and the quotas of a day's limit.
func (d Day) limit() (throttle.Limit, throttle.Quotas) {
	if d.Reset != Midnight {
		burst := d.Burst
		if burst == 0 {
			burst = d.Amount
		}
		return throttle.Limit{Max: d.Amount, Per: day, Burst: burst}, throttle.Quotas{}
	}
	return unbounded, d.quotas()
}

// quotas returns the budget of a limit with a reset at midnight; none for another.
func (d Day) quotas() throttle.Quotas {
	if d.Reset != Midnight {
		return throttle.Quotas{}
	}
	b := throttle.Budget{Amount: int64(d.Amount), Per: limitPerDay, Zone: d.Zone}
	return throttle.Quotas{Other: throttle.Quota{Budgets: []throttle.Budget{b}}}
}

// Profile returns how the account counts.
func (c *Config) Profile() profile.Profile {
	return profile.Of(c.Provider).WithCharge(c.Charge).WithCachedInput(c.CachedInput)
}

// A set is a limit that is set.
type set struct {
	kind profile.Kind // empty for the main one of Config.Main
	max  int
	key  string // its setting
}

// perMinute returns the limits of a minute, the one that has the quotas first.
func (c *Config) perMinute() (all []set) {
	for _, s := range []set{
		{profile.Tokens, c.TokensPerMinute, "tokensPerMinute"},
		{profile.Input, c.InputTokensPerMinute, "inputTokensPerMinute"},
		{profile.Output, c.OutputTokensPerMinute, "outputTokensPerMinute"},
		{profile.Requests, c.RequestsPerMinute, "requestsPerMinute"},
	} {
		if s.max == 0 && c.Announced && slices.Contains(announcers[c.Provider].kinds, s.kind) {
			s.max = mostAnnounced(s.kind)
		}
		if s.max > 0 {
			all = append(all, s)
		}
	}
	return all
}

// days returns the limits of a day.
func (c *Config) days() (all []set) {
	for _, s := range []set{{profile.RequestsDay, c.RequestsPerDay.Amount, "requestsPerDay"}, {profile.TokensDay, c.TokensPerDay.Amount, "tokensPerDay"}} {
		if s.max > 0 {
			all = append(all, s)
		}
	}
	return all
}

// Limited reports whether one of the limits of an LLM is set: any but those that every service may have.
func (c *Config) Limited() bool {
	return c.Announced || c.InputTokensPerMinute+c.OutputTokensPerMinute+c.TokensPerMinute+c.RequestsPerDay.Amount+c.TokensPerDay.Amount > 0
}

// Any reports whether a limit is set.
func (c *Config) Any() bool { return c.Limited() || c.RequestsPerMinute+c.InFlight > 0 || c.Main }

// Lacking returns the settings of limits that the provider does not have.
func (c *Config) Lacking() (keys []string) {
	p := c.Profile()
	for _, s := range append(c.perMinute(), c.days()...) {
		if p.Lacks(s.kind) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// idle returns the settings that change nothing, because no limit counts by them.
func (c *Config) idle() (keys []string) {
	counts := func(k profile.Kind) bool {
		return slices.ContainsFunc(append(c.perMinute(), c.days()...), func(s set) bool { return s.kind == k })
	}
	if c.Limiter != nil || counts(profile.Tokens) || counts(profile.TokensDay) {
		return nil
	}
	for _, s := range []struct {
		key string
		set bool
	}{{"outputWeight", c.OutputWeight > 1}, {"charge", c.Charge != ""}, {"cachedInput", c.CachedInput != "" && !counts(profile.Input)}} {
		if s.set {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// Limits returns the limits of a minute, by their settings.
func (c *Config) Limits() map[string]throttle.Limit {
	all := map[string]throttle.Limit{}
	for i, s := range c.perMinute() {
		all[s.key] = c.shaped(s, i == 0 && !c.Main)
	}
	return all
}

// shaped returns a limit of a minute as its pool has it.
func (c *Config) shaped(s set, isMain bool) throttle.Limit {
	const second = 60
	l := throttle.Limit{Max: s.max, Per: time.Minute, Burst: (s.max + second - 1) / second}
	if c.Shape != nil {
		l = c.Shape(s.kind, isMain, l)
	}
	return c.follow(l, s.kind, c.amount(s.kind) > 0)
}

// QuotaLimit returns the limit that quotas are parts of; the zero Limit for none.
func (c *Config) QuotaLimit() throttle.Limit {
	if c.Main {
		return c.Pool.Limit
	}
	for _, s := range c.perMinute() {
		return c.shaped(s, true)
	}
	return throttle.Limit{}
}

// LiveKeys returns the settings of an account that a changed file changes without a restart.
func LiveKeys() []string {
	return []string{
		"requestsPerMinute", "inputTokensPerMinute", "outputTokensPerMinute", "tokensPerMinute", "requestsPerDay", "tokensPerDay", budgetKey, "prices",
	}
}
