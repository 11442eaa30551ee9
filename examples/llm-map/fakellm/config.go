package fakellm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Provider determines the headers, the refusals and the counting of the server.
type Provider string

// The providers.
const (
	OpenAI        Provider = "openai"
	Azure         Provider = "azure"
	Anthropic     Provider = "anthropic"
	Gemini        Provider = "gemini"
	Bedrock       Provider = "bedrock"
	BedrockMantle Provider = "bedrock-mantle"
	Groq          Provider = "groq"
	SelfHosted    Provider = "self-hosted"
)

// Providers lists all providers.
var Providers = []Provider{OpenAI, Azure, Anthropic, Gemini, Bedrock, BedrockMantle, Groq, SelfHosted}

// Values of Config.CachedInput.
const (
	Free    = "free"
	Counted = "counted"
)

// A Config configures a Server. The zero Config limits nothing.
type Config struct {
	// Provider defaults to OpenAI.
	Provider Provider
	// The limits; 0 means none. A limit that the provider does not have is a fault.
	RequestsPerMinute, InputTokensPerMinute, OutputTokensPerMinute, TokensPerMinute int
	RequestsPerDay, TokensPerDay                                                    int
	// Slice is how much of a minute's limit a bucket holds: 100 ms to 1 m. Defaults to 1 m.
	Slice time.Duration
	// DaySlice is how much of a day's limit a bucket holds: 1 s to 24 h. Defaults to 24 h.
	DaySlice time.Duration
	// DayZone is the IANA name of the time zone at whose midnight the limits per day are whole again. Empty means that they are refilled
	// continuously, except at Gemini, where it means America/Los_Angeles.
	DayZone string
	// InFlight bounds the concurrent calls; 0 means any number.
	InFlight int
	// CachedInput is Free or Counted: whether input that is read from a cache counts. Empty means as the provider counts it.
	CachedInput string
	// CacheMissedAtArrival: the charge at arrival has the whole prompt in it, as at providers that look into the cache later.
	CacheMissedAtArrival bool
	// OutputWeight is what a token of output counts for against TokensPerMinute and TokensPerDay once it is produced. Defaults to 1.
	OutputWeight int
	// CountInputs: each input of a call for embeddings counts as a request, as it does at Gemini.
	CountInputs bool

	// TokensPerByte is how many tokens a byte of a prompt has. Defaults to 0.25. Spread, 0 to 0.9, is by how much of that the prompts differ.
	TokensPerByte, Spread float64
	// CachedShare and WriteShare, 0 to 1, are the parts of a prompt that are read from a cache, and put into one; for an hour if LongWrites.
	CachedShare, WriteShare float64
	LongWrites              bool
	// AnswerLeast and AnswerMost bound the length of an answer, as its maximum does. Without AnswerMost it is between an eighth of the
	// maximum and all of it. Seed varies the lengths. ReasoningShare, 0 to 1, is the part that is thought.
	AnswerLeast, AnswerMost int
	Seed                    uint64
	ReasoningShare          float64
	// Prices are what calls cost.
	Prices Prices

	// Latency is the duration of a call, and PerToken the addition for each token of the answer.
	Latency, PerToken time.Duration
	// ContextTokens is the largest prompt, in tokens; 0 means any.
	ContextTokens int
	// DefaultMaxTokens bounds the answer if a call does not. Defaults to 1024.
	DefaultMaxTokens int
	// Quota bounds the tokens that the account may use in all; 0 means any number.
	Quota int
	// Forms are the forms of successive answers of the chat endpoint, starting over at the end; empty means Plain.
	Forms []Form
	// APIKey is the key that calls must send; empty means none.
	APIKey string
}

func (c Config) withDefaults() Config {
	if c.Provider == "" {
		c.Provider = OpenAI
	}
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&c.Slice, time.Minute}, {&c.DaySlice, 24 * time.Hour}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	for _, n := range []struct {
		value     *int
		otherwise int
	}{{&c.DefaultMaxTokens, 1024}, {&c.OutputWeight, 1}} {
		if *n.value == 0 {
			*n.value = n.otherwise
		}
	}
	if c.TokensPerByte == 0 {
		c.TokensPerByte = 0.25
	}
	if c.DayZone == "" {
		c.DayZone = profiles[c.Provider].zone
	}
	return c
}

// amount returns the configured number of a limit.
func (c Config) amount(l Limit) int {
	return map[Limit]int{
		Requests: c.RequestsPerMinute, InputTokens: c.InputTokensPerMinute, OutputTokens: c.OutputTokensPerMinute, Tokens: c.TokensPerMinute,
		RequestsDay: c.RequestsPerDay, TokensDay: c.TokensPerDay,
	}[l]
}

// complaint adds a fault.
type complaint func(field string, value any, allowed string)

// validate returns every fault of a Config with its defaults filled in.
func (c Config) validate() error {
	var faults []error
	bad := func(field string, value any, allowed string) {
		faults = append(faults, fmt.Errorf("fakellm: %s is %v, allowed: %s", field, value, allowed))
	}
	if !slices.Contains(Providers, c.Provider) {
		bad("provider", c.Provider, providerNames())
	}
	c.checkNumbers(bad)
	c.checkLimits(bad)
	for _, f := range c.Forms {
		if !slices.Contains(Forms, f) {
			bad("form", f, fmt.Sprint(Forms))
		}
	}
	if c.Slice < 100*time.Millisecond || c.Slice > time.Minute {
		bad("slice", c.Slice, "100ms to 1m")
	}
	if c.DaySlice < time.Second || c.DaySlice > 24*time.Hour {
		bad("day slice", c.DaySlice, "1s to 24h")
	}
	if c.Latency < 0 || c.PerToken < 0 {
		bad("latency", fmt.Sprintf("%s and %s per token", c.Latency, c.PerToken), "0 or more")
	}
	if c.CachedInput != "" && c.CachedInput != Free && c.CachedInput != Counted {
		bad("cached input", c.CachedInput, "free or counted")
	}
	if _, err := time.LoadLocation(c.DayZone); err != nil {
		bad("day zone", c.DayZone, "the IANA name of a time zone")
	}
	if c.AnswerLeast > c.AnswerMost {
		bad("answer tokens", fmt.Sprintf("%d to %d", c.AnswerLeast, c.AnswerMost), "the least before the most")
	}
	return errors.Join(faults...)
}

// checkLimits finds limits that the provider does not have.
func (c Config) checkLimits(bad complaint) {
	p, known := profiles[c.Provider]
	for _, l := range allLimits {
		if known && c.amount(l) != 0 && !slices.Contains(p.limits, l) {
			bad("limit on "+string(l), c.amount(l), fmt.Sprintf("0; %s has limits on %v", c.Provider, p.limits))
		}
	}
}

var decimalNumber = regexp.MustCompile(`^([0-9]{1,10}(\.[0-9]{1,9})?)?$`)

// checkNumbers finds numbers that are out of bounds.
func (c Config) checkNumbers(bad complaint) {
	for _, n := range []struct {
		field string
		value int
	}{
		{"requests per minute", c.RequestsPerMinute},
		{"input tokens per minute", c.InputTokensPerMinute},
		{"output tokens per minute", c.OutputTokensPerMinute},
		{"tokens per minute", c.TokensPerMinute},
		{"requests per day", c.RequestsPerDay},
		{"tokens per day", c.TokensPerDay},
		{"calls in flight", c.InFlight},
		{"output weight", c.OutputWeight},
		{"least answer tokens", c.AnswerLeast},
		{"context tokens", c.ContextTokens},
		{"default max tokens", c.DefaultMaxTokens},
		{"quota", c.Quota},
	} {
		if n.value < 0 || n.value > 1_000_000_000 {
			bad(n.field, n.value, "0 (none) to 1000000000")
		}
	}
	for _, n := range []struct {
		field string
		value float64
		most  float64
	}{
		{"tokens per byte", c.TokensPerByte, 10},
		{"spread", c.Spread, 0.9},
		{"cached share", c.CachedShare, 1},
		{"written share", c.WriteShare, 1},
		{"reasoning share", c.ReasoningShare, 1},
	} {
		if !(n.value >= 0 && n.value <= n.most) {
			bad(n.field, n.value, fmt.Sprintf("0 to %g", n.most))
		}
	}
	prices := map[string]json.Number{
		"input": c.Prices.Input, "output": c.Prices.Output, "cachedInput": c.Prices.CachedInput, "cacheWrite": c.Prices.CacheWrite,
		"cacheWrite1h": c.Prices.CacheWrite1h, "perCall": c.Prices.PerCall,
	}
	for _, kind := range slices.Sorted(maps.Keys(prices)) {
		if !decimalNumber.MatchString(string(prices[kind])) {
			bad("price "+kind, prices[kind], "a decimal number")
		}
	}
}

// providerNames lists the providers, with commas between.
func providerNames() string {
	var names []string
	for _, p := range Providers {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
