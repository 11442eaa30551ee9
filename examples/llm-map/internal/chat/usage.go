package chat

import (
	"net/http"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// A Usage is the cost of a call according to the provider, in tokens. Prompt counts the whole input, with reads and writes of a
// cache. Completion counts the output, with reasoning. Total is the sum of both.
type Usage struct {
	// Usage tells the parts apart. Its own total leaves out some reads of caches.
	usage.Usage

	Prompt, Completion, Total int
	// Final means that it is the usage of the whole answer. Otherwise the call used at least that much, as in a stream that broke off.
	Final bool
}

// usageOf returns the usage in a body, judged as for the limits; nil for none.
func usageOf(body []byte, contentType string) *Usage {
	m := usage.NewMeter(&http.Response{Header: http.Header{"Content-Type": {contentType}}}, nil)
	_, _ = m.Write(body) // it never fails
	u, found, final := m.End(true)
	if !found {
		return nil
	}
	prompt := u.Input + u.CacheWrites + u.CacheReads
	return &Usage{Usage: u, Prompt: prompt, Completion: u.Output, Total: prompt + u.Output, Final: final}
}

// UsedAtLeast returns the usage in a part of a body, which is not final; nil for none.
func UsedAtLeast(part []byte, contentType string) *Usage {
	u := usageOf(plain(part), contentType)
	if u != nil {
		u.Final = false
	}
	return u
}
