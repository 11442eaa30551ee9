// Package profile is the table of how providers of LLMs count: what each of their limits is charged when a call begins, and what when its
// usage is known.
package profile

import "slices"

// A Name names a provider.
type Name string

// The providers.
const (
	SelfHosted    Name = "self-hosted"
	OpenAI        Name = "openai"
	Azure         Name = "azure"
	Anthropic     Name = "anthropic"
	Gemini        Name = "gemini"
	Bedrock       Name = "bedrock"
	BedrockMantle Name = "bedrock-mantle"
	Groq          Name = "groq"
	Mistral       Name = "mistral"
	OpenRouter    Name = "openrouter"
	Cohere        Name = "cohere"
	DeepSeek      Name = "deepseek"
	// Generic is another name for SelfHosted.
	Generic Name = "generic"
)

// A Kind is a kind of limit. It is also the suffix of the name of the limit's pool.
type Kind string

// The kinds of limits.
const (
	Requests    Kind = "requests"     // a minute
	Input       Kind = "input"        // tokens of prompts a minute
	Output      Kind = "output"       // tokens of answers a minute
	Tokens      Kind = "tokens"       // of both a minute
	RequestsDay Kind = "requests-day" // a day
	TokensDay   Kind = "tokens-day"   // a day
	InFlight    Kind = "in-flight"    // calls at once
)

// Terms are the parts of a draw, in tokens.
type Terms uint8

// The terms add up, unless Larger is among them.
const (
	Prompt  Terms = 1 << iota // the estimate of the prompt
	Answer                    // the learned length of an answer, at most what the request allows
	Longest                   // the longest answer that the request allows
	Larger                    // the larger of the others instead of their sum
)

// Parts are the parts of a usage that a limit counts in the end; without any it keeps the draw.
type Parts uint8

// The parts of a usage.
const (
	Uncached Parts = 1 << iota // input that had nothing to do with a cache
	Writes                     // input that was put into a cache
	Reads                      // input that came from a cache
	Written                    // output
)

// AllInput are the parts of the prompt.
const AllInput = Uncached | Writes | Reads

// A Rule is a limit's way of counting a call: its draw, and the parts of the usage that replace it.
type Rule struct {
	Draw   Terms
	Settle Parts
}

// Settles reports whether the usage of a call corrects the draw.
func (r Rule) Settles() bool { return r.Settle != 0 }

// A Profile is how a provider counts.
type Profile struct {
	// Chars means that it estimates prompts at four characters a token, and limits the estimate.
	Chars bool
	// PerInput means that each text of a call for embeddings is a request.
	PerInput bool
	// Input, Output and Tokens are the rules of the limits on tokens. Those of a day are as Tokens.
	Input, Output, Tokens Rule
	// Has are the limits that it has; nil: any.
	Has []Kind
}

// byUsage is how most providers count.
var byUsage = Profile{
	Input:  Rule{Prompt, AllInput},
	Output: Rule{Answer, Written},
	Tokens: Rule{Prompt | Longest, AllInput | Written},
}

// with returns the profile of byUsage with some changes, for a provider with some limits.
func with(change func(p *Profile), has ...Kind) Profile {
	p := byUsage
	p.Has = has
	if change != nil {
		change(&p)
	}
	return p
}

// profiles is the table. Where a provider lacks a limit, the row says how it would count: users may know their contract better.
var profiles = map[Name]Profile{
	SelfHosted: byUsage,
	OpenAI: with(func(p *Profile) {
		p.Chars, p.Tokens = true, Rule{Prompt | Longest | Larger, 0}
	}, Requests, Tokens, RequestsDay, TokensDay),
	Azure: with(func(p *Profile) {
		p.Chars, p.Tokens = true, Rule{Prompt | Longest, 0}
	}, Requests, Tokens),
	Anthropic: with(func(p *Profile) {
		p.Input.Settle = Uncached | Writes
	}, Requests, Input, Output),
	Gemini: with(func(p *Profile) {
		p.PerInput, p.Tokens = true, p.Input
	}, Requests, Input, RequestsDay),
	Bedrock: with(func(p *Profile) {
		p.Input.Settle, p.Tokens.Settle = Uncached|Writes, Uncached|Writes|Written
	}, Requests, Tokens, TokensDay),
	BedrockMantle: with(func(p *Profile) {
		p.Input = Rule{Prompt | Longest, Uncached | Writes | Written}
		p.Tokens = p.Input
	}, Input, Output),
	Groq: with(func(p *Profile) {
		p.Input.Settle, p.Tokens.Settle = Uncached|Writes, Uncached|Writes|Written
	}, Requests, Input, Output, Tokens, RequestsDay, TokensDay),
	Mistral:    with(nil, Requests, Tokens),
	OpenRouter: with(nil, Requests, RequestsDay),
	Cohere:     with(func(p *Profile) { p.PerInput = true }, Requests),
	DeepSeek:   with(nil, InFlight),
}

// Of returns the profile of a provider; that of SelfHosted for an unknown name.
func Of(name Name) Profile {
	if p, ok := profiles[name]; ok {
		return p
	}
	return byUsage
}

// Names returns the names of all providers, without Generic.
func Names() []Name {
	return []Name{OpenAI, Azure, Anthropic, Gemini, Bedrock, BedrockMantle, Groq, Mistral, OpenRouter, Cohere, DeepSeek, SelfHosted}
}

// Lacks reports whether the provider has no limit of a kind. Anybody may limit the calls in flight.
func (p Profile) Lacks(k Kind) bool {
	return p.Has != nil && k != InFlight && !slices.Contains(p.Has, k)
}

// A Charge is a way of counting tokens that a user chose instead of the provider's.
type Charge string

// The charges.
const (
	ByProvider Charge = ""
	ByLarger   Charge = "larger" // the larger of the prompt's estimate and the longest answer, whatever the usage
	BySum      Charge = "sum"    // the sum of both, whatever the usage
	ByUsage    Charge = "usage"  // the sum of both while the call is under way, then the usage
)

// WithCharge returns the profile with another way of counting prompts and answers together.
func (p Profile) WithCharge(c Charge) Profile {
	switch c {
	case ByProvider:
	case ByLarger:
		p.Tokens = Rule{Prompt | Longest | Larger, 0}
	case BySum:
		p.Tokens = Rule{Prompt | Longest, 0}
	case ByUsage:
		if !p.Tokens.Settles() {
			p.Tokens = byUsage.Tokens
		}
	}
	return p
}

// A CachedInput says whether input from a cache counts against limits.
type CachedInput string

// The ways of counting it; empty is the provider's.
const (
	CachedFree    CachedInput = "free"
	CachedCounted CachedInput = "counted"
)

// WithCachedInput returns the profile with another way of counting input from a cache.
func (p Profile) WithCachedInput(c CachedInput) Profile {
	for _, r := range []*Rule{&p.Input, &p.Tokens} {
		switch {
		case r.Settle&Uncached == 0:
		case c == CachedFree:
			r.Settle &^= Reads
		case c == CachedCounted:
			r.Settle |= Reads
		}
	}
	return p
}
