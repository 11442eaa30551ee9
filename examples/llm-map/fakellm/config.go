package fakellm

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Provider determines the headers, the refusals and the counting of the server.
type Provider string

// The providers.
const (
	OpenAI     Provider = "openai"
	Azure      Provider = "azure"
	Anthropic  Provider = "anthropic"
	SelfHosted Provider = "self-hosted"
)

// A Config configures a Server. The zero Config limits nothing.
type Config struct {
	// Provider defaults to OpenAI.
	Provider Provider
	// RequestsPerMinute and TokensPerMinute are the limits; 0 means none.
	RequestsPerMinute, TokensPerMinute int
	// Slice is how much of a minute's limit a bucket holds: 100 ms to 1 m. Defaults to 1 m.
	Slice time.Duration
	// InFlight bounds the concurrent calls; 0 means any number.
	InFlight int
	// Latency is the duration of a call, and PerToken the addition for each token of the answer.
	Latency, PerToken time.Duration
	// ContextTokens is the largest prompt, in tokens; 0 means any.
	ContextTokens int
	// DefaultMaxTokens bounds the answer if a call does not. Defaults to 1024.
	DefaultMaxTokens int
	// Quota bounds the tokens that the account may use in all; 0 means any number.
	Quota int
	// Forms are the forms of successive answers, starting over at the end; empty means Plain.
	Forms []Form
	// APIKey is the key that calls must send; empty means none.
	APIKey string
}

func (c Config) withDefaults() Config {
	if c.Provider == "" {
		c.Provider = OpenAI
	}
	if c.Slice == 0 {
		c.Slice = time.Minute
	}
	if c.DefaultMaxTokens == 0 {
		c.DefaultMaxTokens = 1024
	}
	return c
}

// validate returns every fault of a Config with its defaults filled in.
func (c Config) validate() error {
	var faults []error
	bad := func(field string, value any, allowed string) {
		faults = append(faults, fmt.Errorf("fakellm: %s is %v, allowed: %s", field, value, allowed))
	}
	switch c.Provider {
	case OpenAI, Azure, Anthropic, SelfHosted:
	default:
		bad("provider", c.Provider, "openai, azure, anthropic, self-hosted")
	}
	for _, n := range []struct {
		field string
		value int
	}{
		{"requests per minute", c.RequestsPerMinute},
		{"tokens per minute", c.TokensPerMinute},
		{"calls in flight", c.InFlight},
		{"context tokens", c.ContextTokens},
		{"default max tokens", c.DefaultMaxTokens},
		{"quota", c.Quota},
	} {
		if n.value < 0 || n.value > 1_000_000_000 {
			bad(n.field, n.value, "0 (none) to 1000000000")
		}
	}
	for _, f := range c.Forms {
		if !slices.Contains(Forms, f) {
			bad("form", f, fmt.Sprint(Forms))
		}
	}
	if c.Slice < 100*time.Millisecond || c.Slice > time.Minute {
		bad("slice", c.Slice, "100ms to 1m")
	}
	if c.Latency < 0 || c.PerToken < 0 {
		bad("latency", fmt.Sprintf("%s and %s per token", c.Latency, c.PerToken), "0 or more")
	}
	return errors.Join(faults...)
}

// charge returns a call's charge at arrival, in tokens.
func (c Config) charge(prompt, maxTokens int) int {
	if c.Provider == OpenAI {
		return max(prompt, maxTokens)
	}
	return prompt + maxTokens
}

// corrects reports whether the charge is corrected to the real usage.
func (c Config) corrects() bool { return c.Provider == Anthropic || c.Provider == SelfHosted }
