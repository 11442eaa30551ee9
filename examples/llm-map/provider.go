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

// A provider describes the differences between providers.
type provider struct {
	baseURL string // default; empty: must be set
	// classify interprets its refusals.
	classify httpthrottle.Classifier
	// charge is its way of counting tokens.
	charge charge
	// login adds the key to a request.
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

// A charge is the way of counting the tokens of a call.
type charge string

const (
	// chargeLarger: the larger of the prompt's estimate and the longest answer, whatever the usage.
	chargeLarger charge = "larger"
	// chargeSum: the sum of both, whatever the usage.
	chargeSum charge = "sum"
	// chargeUsage: the sum of both while the call is under way, then the usage.
	chargeUsage charge = "usage"
)

// tokens returns the draw of a call.
func (c charge) tokens(prompt, output int) int {
	if c == chargeLarger {
		return max(prompt, output, 1)
	}
	return max(prompt+output, 1)
}

// settles reports whether a call is settled with its usage.
func (c charge) settles() bool { return c == chargeUsage }
