package announce

import (
	"net/http"
	"time"
)

// A Dialect is the meaning of a provider's headers. The empty one announces nothing, whatever headers a gateway adds.
type Dialect string

// The dialects of providers that announce limits.
const (
	OpenAI    Dialect = "openai"
	Azure     Dialect = "azure"
	Anthropic Dialect = "anthropic"
	Groq      Dialect = "groq"
	Mistral   Dialect = "mistral"
	Cerebras  Dialect = "cerebras"
	Qianfan   Dialect = "qianfan"
)

// Periods of headers that don't name one.
const (
	slice    time.Duration = 0
	inferred time.Duration = -1
)

// A field is a limit that a dialect announces, with the names of its headers.
type field struct {
	kind                    Kind
	per                     time.Duration
	limit, remaining, reset string
	unless                  string // the field is ignored beside this header; empty: never
}

// named returns a field whose headers have a name around limit, remaining and reset.
func named(kind Kind, per time.Duration, before, behind string) field {
	name := func(subject string) string { return http.CanonicalHeaderKey(before + subject + behind) }
	return field{kind: kind, per: per, limit: name("limit"), remaining: name("remaining"), reset: name("reset")}
}

// common returns a field whose headers have OpenAI's names.
func common(kind Kind, per time.Duration, name string) field {
	return named(kind, per, "x-ratelimit-", "-"+name)
}

// sum returns Anthropic's tokens-*: the sum of input and output, or the tighter of the two. It says nothing beside the limit of the input.
func sum() field {
	f := named(Tokens, time.Minute, "anthropic-ratelimit-tokens-", "")
	f.unless = named(Input, time.Minute, "anthropic-ratelimit-input-tokens-", "").limit
	return f
}

const day = 24 * time.Hour

// dialects has the fields of each dialect. Mistral's for a month are left out: no limit of ours has that period.
var dialects = map[Dialect][]field{
	OpenAI: {
		common(Requests, inferred, "requests"), common(Tokens, time.Minute, "tokens"), common(Tokens, time.Minute, "project-tokens"),
	},
	Azure: {common(Requests, slice, "requests"), common(Tokens, time.Minute, "tokens")},
	Anthropic: {
		named(Requests, time.Minute, "anthropic-ratelimit-requests-", ""), named(Input, time.Minute, "anthropic-ratelimit-input-tokens-", ""),
		named(Output, time.Minute, "anthropic-ratelimit-output-tokens-", ""), sum(),
	},
	Groq: {common(Requests, day, "requests"), common(Tokens, time.Minute, "tokens")},
	Mistral: {
		common(Requests, time.Minute, "req-minute"), common(Tokens, time.Minute, "tokens-minute"), common(Tokens, 5*time.Minute, "tokens-5-minute"),
		// The older names. The one without a period is for a minute as well.
		named(Tokens, time.Minute, "x-ratelimitbysize-", "-minute"), named(Tokens, time.Minute, "ratelimitbysize-", ""),
	},
	Cerebras: {
		common(Requests, time.Minute, "requests-minute"), common(Requests, time.Hour, "requests-hour"), common(Requests, day, "requests-day"),
		common(Tokens, time.Minute, "tokens-minute"), common(Tokens, time.Hour, "tokens-hour"), common(Tokens, day, "tokens-day"),
	},
	Qianfan: {
		common(Requests, time.Minute, "requests"), common(Input, time.Minute, "input-tokens"), common(Output, time.Minute, "output-tokens"),
	},
}
