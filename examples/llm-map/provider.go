package main

import (
	"net/http"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

type providerName string

const (
	openAI     providerName = "openai"
	azure      providerName = "azure"
	anthropic  providerName = "anthropic"
	selfHosted providerName = "self-hosted"
)

// A provider is what differs from one provider to the other.
type provider struct {
	baseURL string // default; empty: has to be set
	// classify reads its refusals.
	classify httpthrottle.Classifier
	// charge is how it counts tokens.
	charge charge
	// login puts the key into a request.
	login func(h http.Header, key string)
}

func bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

var providers = map[providerName]provider{
	openAI: {
		baseURL: "https://api.openai.com/v1", classify: httpthrottle.OpenAI, charge: chargeLarger, login: bearer,
	},
	azure: {
		classify: httpthrottle.Azure, charge: chargeSum,
		login: func(h http.Header, key string) {
			h.Del("Authorization")
			h.Set("Api-Key", key)
		},
	},
	anthropic: {
		baseURL: "https://api.anthropic.com/v1", classify: httpthrottle.Anthropic, charge: chargeUsage, login: bearer,
	},
	selfHosted: {classify: httpthrottle.OpenAI, charge: chargeUsage, login: bearer},
}

// A charge says how many tokens a call counts for.
type charge string

const (
	// chargeLarger: the larger of the prompt's estimate and the longest answer, whatever is used.
	chargeLarger charge = "larger"
	// chargeSum: the sum of both, whatever is used.
	chargeSum charge = "sum"
	// chargeUsage: the sum of both while the call is under way, then what was used.
	chargeUsage charge = "usage"
)

// tokens is what a call draws.
func (c charge) tokens(prompt, output int) int {
	if c == chargeLarger {
		return max(prompt, output, 1)
	}
	return max(prompt+output, 1)
}

// settles tells whether a call is settled with its usage.
func (c charge) settles() bool { return c == chargeUsage }
