package llm

import (
	"encoding/json"
	"net/http"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config configures [Open]. The zero value of a field is its default; a limit of 0 is none. A limit that the provider is not known to have
// is kept, and logged.
type Config struct {
	// Provider is whose way of counting and whose refusals the service has: openai, azure, anthropic, gemini, bedrock, bedrock-mantle, groq,
	// mistral, openrouter, cohere, deepseek or self-hosted (the default), which counts everything by usage.
	Provider string

	// RequestsPerMinute limits calls: 0 to 1e9. Its pool is <pool>/requests.
	RequestsPerMinute int
	// InputTokensPerMinute and OutputTokensPerMinute limit the tokens of prompts and of answers apart: 0 to 1e9. Their pools are
	// <pool>/input and <pool>/output.
	InputTokensPerMinute, OutputTokensPerMinute int
	// TokensPerMinute limits both together: 0 to 1e9. Its pool is <pool>/tokens.
	TokensPerMinute int
	// InFlight limits calls under way at once: 0 to 1e9. Its pool is <pool>/in-flight. A call is under way until its answer was read to the
	// end, or closed.
	InFlight int
	// RequestsPerDay and TokensPerDay limit calls, and tokens counted as those of TokensPerMinute, in a day. Their pools are
	// <pool>/requests-day and <pool>/tokens-day.
	RequestsPerDay, TokensPerDay Day

	// Announced makes the limits follow what the service announces in its answers, as all processes of the pool agree; those that are set are the
	// most then, and a limit of a minute that is not set begins at 60 requests or 60,000 tokens. It is for openai, azure, anthropic, groq and
	// mistral.
	Announced bool

	// Charge replaces the provider's way of counting prompts and answers together: larger (the larger of the prompt's estimate and the
	// longest answer, whatever the usage), sum (of both, whatever the usage) or usage. Defaults to the provider's.
	Charge string
	// CachedInput says whether input from a cache counts: free or counted. Defaults to the provider's.
	CachedInput string
	// OutputWeight is how many tokens a token of an answer counts for in TokensPerMinute and TokensPerDay: 1 to 1000. Defaults to 1. Amazon
	// Bedrock has a weight for each model.
	OutputWeight int
	// CountInputs counts each text of a call for embeddings as a request. Gemini and Cohere count so anyway.
	CountInputs bool
	// OutputTokens is the draw for the first answer, and the largest draw for one that its request does not bound. Defaults to 1024.
	OutputTokens int
	// ImageTokens is what an image counts for in a prompt. Defaults to 1600.
	ImageTokens int
	// AudioBytesPerToken and FileBytesPerToken are how many bytes of audio or video, and of other files, count as a token. They default to
	// 1000 and 50.
	AudioBytesPerToken, FileBytesPerToken int

	// Prices are the prices of models, by the name that requests have. A model without one counts as the dearest, and is logged.
	Prices map[string]Price
	// Budget is what all calls of the pool may cost; it needs Prices. Its pool is <pool>/money, in millionths of the currency.
	Budget Budget

	// Quotas set how much each tag may use of the first of the limits tokens, input, output and requests that is set. QuotasOf set that of
	// limits by the names of their settings: tokensPerMinute, inputTokensPerMinute, outputTokensPerMinute, requestsPerMinute and inFlight,
	// and budget, in millionths of the currency. Tag names the tenant of a request. Defaults to none.
	Quotas   throttle.Quotas
	QuotasOf map[string]throttle.Quotas
	Tag      func(*http.Request) string

	// Store, Pool, ID and HealthAddr are as in numathrottle.Config.
	Store, Pool, ID, HealthAddr string
	// Base has the other settings of the pools: credentials of the store, the lease, the policy, telemetry, the logger. Its limit and quotas
	// are not used, and the four fields above replace its own if they are set.
	Base numathrottle.Config
}

// A Day is a limit of a day.
type Day struct {
	// Amount is how much a day has: 1 to 1e9; 0 is no limit.
	Amount int
	// Reset says when it is there again: rolling (the default) refills it all the time, midnight at once.
	Reset string
	// Zone is whose midnight it is, as an IANA name. Defaults to UTC.
	Zone string
	// Burst is how much a rolling limit saves up. Defaults to Amount.
	Burst int
}

// A Price is the price of a million tokens of each kind, and of a call, in any currency, with at most 6 decimals. An empty price is that of
// Input; an empty CacheWrite1h is that of CacheWrite, and an empty PerCall is nothing. Output must be set.
type Price struct {
	Input, Output, CachedInput, CacheWrite, CacheWrite1h, PerCall json.Number
}

// A Budget is an amount of money for each calendar window: an hour, a day (the default) or a month, which begin in Zone (UTC). The zero Budget
// is none.
type Budget struct {
	Amount json.Number
	Per    limit.Period
	Zone   string
}
