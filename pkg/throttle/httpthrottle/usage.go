package httpthrottle

import (
	"mime"
	"net/http"
)

// A Usage is the cost of a call according to the answer of an LLM, in tokens. No token is in two of the first four. A field that an API does
// not have is 0.
type Usage struct {
	// Input counts the tokens read that neither came from a cache nor were put into one.
	Input int
	// Output is what was written, with what was thought.
	Output int
	// CacheWrites and CacheReads are input that was put into a cache, and that came from it.
	CacheWrites, CacheReads int
	// Total is the sum, or what the API reports if that is more. It leaves out the cache reads of Anthropic and Amazon Bedrock. With those and
	// without a report it is 0.
	Total int
}

// Tokens returns how many tokens the call counts for: the total where it is known, else input, cache writes and output. The cache reads of
// Anthropic and Amazon Bedrock do not count; most of their limits leave them out, too.
func (u Usage) Tokens() int {
	if u.Total > 0 {
		return u.Total
	}
	return u.Input + u.CacheWrites + u.Output
}

// UsageMeter returns a function for [WithMeter] that settles the calls of an LLM by the usage in its answer, streamed or not. It knows the
// objects "usage" of OpenAI (chat, responses, embeddings), of APIs that follow it, of Anthropic, Cohere and Amazon Bedrock. It also knows
// "usageMetadata" of Gemini and the headers of Bedrock's InvokeModel; see [UsageReader]. A stream of OpenAI has one only when the request asks
// for it, by stream_options.include_usage.
//
// tokens returns the cost of a usage; nil is [Usage.Tokens]. An answer without a usage costs the drawn tokens. The same holds for an answer
// in a compression that net/http has not undone.
//
// Only the usage of a whole answer settles for less than the drawn tokens. An answer that breaks off costs the drawn tokens, or its last
// usage if that is more. JSON is whole at its end, unless it is a chunk of a stream (choices[].delta).
//
// A stream is whole if it is over, and each choice that began has said why it ended (finish_reason, stop_reason). A usage must have come
// with or after the last of these. The stream is over at its end (io.EOF), or, also for a caller that reads no further, with its API's last
// event ([DONE], message_stop, message-end). That event alone does not do: gateways send [DONE] after any part of an answer, with the usage
// up to there. Of the responses API response.completed, response.incomplete and response.failed are whole by themselves. A stream is not
// whole if one of its events is an error, or a choice ended by one (finish_reason: error, abort and the like). The same holds if an event
// was broken and no usage came afterwards.
//
// A service may charge otherwise than by usage. OpenAI charges the larger of the estimate and the longest allowed answer, when the call
// comes in, and corrects nothing. A caller that settles for less there will be refused.
func UsageMeter(tokens func(Usage) int) func(*http.Response) Meter {
	if tokens == nil {
		tokens = Usage.Tokens
	}
	return func(res *http.Response) Meter {
		m := &usageMeter{tokens: tokens}
		m.scan.take, m.scan.lines = m.usage.Add, textEachLine(res.Header.Get("Content-Type"))
		m.usage.AddHeader(res.Header)
		return m
	}
}

// textEachLine reports whether a body of a type has a JSON text in each line.
func textEachLine(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch kind {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines", "application/stream+json":
		return true
	}
	return false
}

type usageMeter struct {
	tokens func(Usage) int
	scan   usageScanner
	usage  UsageReader
}

var _ EndMeter = (*usageMeter)(nil)

// Write implements Meter.
func (m *usageMeter) Write(p []byte) (int, error) {
	m.scan.feed(p)
	return len(p), nil
}

// Used implements Meter, for a body that was read to its end.
func (m *usageMeter) Used() (int, bool) {
	if used, final := m.UsedUntil(true); final {
		return used, true
	}
	return 0, false
}

// UsedUntil implements EndMeter.
func (m *usageMeter) UsedUntil(complete bool) (tokens int, final bool) {
	u, found := m.usage.Usage()
	if !found {
		return 0, false
	}
	return m.tokens(u), m.scan.status.whole(complete, m.scan.json.depth > 0)
}
