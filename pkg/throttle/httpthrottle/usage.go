package httpthrottle

import (
	"encoding/json"
	"net/http"
)

// A Usage is what the answer of an LLM says that it cost, in tokens. A field that an
// API does not have is 0.
type Usage struct {
	// Input is what was read: OpenAI's prompt or input, with what came from a cache;
	// Anthropic's input without that; Gemini's prompt.
	Input int
	// Output is what was written, with what was thought.
	Output int
	// CacheWrites and CacheReads are Anthropic's: input that was put into the cache, and
	// that came from it.
	CacheWrites, CacheReads int
	// Total is the sum, where the API tells it.
	Total int
}

// Tokens returns what the call counts for: the total where it is told, else input,
// cache writes and output. Anthropic's cache reads do not count, nor do they for most of
// its limits.
func (u Usage) Tokens() int {
	if u.Total > 0 {
		return u.Total
	}
	return u.Input + u.CacheWrites + u.Output
}

// UsageMeter returns a function for WithMeter that settles the calls of an LLM by the
// usage in its answer, streamed or not. It knows the objects "usage" of OpenAI (chat,
// responses, embeddings), of those that follow it and of Anthropic, and "usageMetadata" of
// Gemini. Where several come, as in a stream, the largest figure of each field counts, for
// they are sums. A stream of OpenAI has one only when the request asks for it, by
// stream_options.include_usage.
//
// tokens says what a usage costs; nil is Usage.Tokens. An answer without a usage costs
// what was drawn; so does one in a compression that net/http has not undone.
//
// A service may charge otherwise than by usage. OpenAI charges the larger of the estimate
// and what may be answered at most, when the call comes in, and corrects nothing: who
// settles for less there will be refused.
func UsageMeter(tokens func(Usage) int) func(*http.Response) Meter {
	if tokens == nil {
		tokens = Usage.Tokens
	}
	return func(*http.Response) Meter { return &usageMeter{tokens: tokens} }
}

type usageMeter struct {
	tokens func(Usage) int
	scan   usageScanner
	usage  Usage
	found  bool
}

// Write implements Meter.
func (m *usageMeter) Write(p []byte) (int, error) {
	m.scan.feed(p, m.take)
	return len(p), nil
}

// Used implements Meter.
func (m *usageMeter) Used() (int, bool) {
	if !m.found {
		return 0, false
	}
	return m.tokens(m.usage), true
}

// take reads one usage object.
func (m *usageMeter) take(object []byte) {
	var raw struct {
		PromptTokens             int `json:"prompt_tokens"`
		CompletionTokens         int `json:"completion_tokens"`
		TotalTokens              int `json:"total_tokens"`
		InputTokens              int `json:"input_tokens"`
		OutputTokens             int `json:"output_tokens"`
		CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
		CacheReadInputTokens     int `json:"cache_read_input_tokens"`
		PromptTokenCount         int `json:"promptTokenCount"`
		CandidatesTokenCount     int `json:"candidatesTokenCount"`
		ThoughtsTokenCount       int `json:"thoughtsTokenCount"`
		TotalTokenCount          int `json:"totalTokenCount"`
	}
	if json.Unmarshal(object, &raw) != nil {
		return
	}
	u := &m.usage
	u.Input = most(u.Input, raw.PromptTokens, raw.InputTokens, raw.PromptTokenCount)
	u.Output = most(u.Output, raw.CompletionTokens, raw.OutputTokens, raw.CandidatesTokenCount+raw.ThoughtsTokenCount)
	u.CacheWrites = most(u.CacheWrites, raw.CacheCreationInputTokens)
	u.CacheReads = most(u.CacheReads, raw.CacheReadInputTokens)
	u.Total = most(u.Total, raw.TotalTokens, raw.TotalTokenCount)
	m.found = m.found || *u != Usage{}
}

// most returns the largest of the figures that can be a number of tokens: a service that
// tells more than 1e9 is not believed.
func most(n int, others ...int) int {
	const believable = 1_000_000_000
	for _, other := range others {
		if other <= believable {
			n = max(n, other)
		}
	}
	return n
}
