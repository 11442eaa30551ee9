// Package usage reads from the answers of LLMs how many tokens their calls used.
package usage

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
	// CacheWrites1h is the part of CacheWrites that stays in the cache for an hour.
	CacheWrites1h int
	// Total is the sum, or what the API reports if that is more. It leaves out the cache reads of Anthropic and Amazon Bedrock. With those and
	// without a report it is 0.
	Total int

	// HasInput means that the prompt is known: Input, CacheWrites and CacheReads. Else these are the least that it was.
	HasInput bool
	// HasOutput means that Output is known. Else it is the least that was written.
	HasOutput bool
	// HasTotal means that Total was reported, and agrees with the others. A total alone stands in Input, and then neither side is known.
	HasTotal bool
}

// Tokens returns how many tokens the call counts for: the total where it is known, else input, cache writes and output. The cache reads of
// Anthropic and Amazon Bedrock do not count; most of their limits leave them out, too.
func (u Usage) Tokens() int {
	if u.Total > 0 {
		return u.Total
	}
	return u.Input + u.CacheWrites + u.Output
}

// A Meter reads the usage in the answer of one call of an LLM, streamed or not, while its caller reads it. It knows the objects "usage" of
// OpenAI (chat, responses, embeddings), of APIs that follow it, of Anthropic, Cohere and Amazon Bedrock. It also knows "usageMetadata" of
// Gemini, "meta" of Cohere, the headers of Bedrock's InvokeModel, its metrics of an invocation and its binary streams; see [Reader]. A stream
// of OpenAI has one only when the request asks for it, by stream_options.include_usage. A body in a compression that net/http has not undone
// has none. It is not safe for concurrent use.
//
// It implements httpthrottle.EndMeter. Only a known usage of a whole answer settles for less than the drawn tokens. An answer that breaks off
// costs the drawn tokens, or its last usage if that is more. JSON is whole at its end, unless it is an error, or a chunk of a
// stream (choices[].delta).
//
// A stream is whole if it is over, and each choice that began has said why it ended (finish_reason, stop_reason). A usage must have come
// with or after the last of these. The stream is over at its end (io.EOF), or, also for a caller that reads no further, with its API's last
// event ([DONE], message_stop, message-end, metadata or the metrics of Bedrock). That event alone does not do: gateways send [DONE] after any
// part of an answer, with the usage up to there. Of the responses API response.completed, response.incomplete and response.failed are whole by
// themselves. A stream is not whole if one of its events is an error, or a choice ended by one (finish_reason: error, abort and the like). The
// same holds if an event was broken or too long and no usage came afterwards, and if a checksum of a binary stream is wrong.
type Meter struct {
	tokens func(Usage) int
	scan   scanner
	framed bool         // its type is that of a binary stream
	binary *eventStream // nil for an answer of JSON, whatever its type
	usage  Reader
	bytes  int64
}

// NewMeter returns the meter of an answer, whose body has not been read. tokens returns the cost of a usage; nil is [Usage.Tokens].
func NewMeter(res *http.Response, tokens func(Usage) int) *Meter {
	if tokens == nil {
		tokens = Usage.Tokens
	}
	m := &Meter{tokens: tokens}
	m.scan.take = m.usage.Add
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines", "application/stream+json":
		m.scan.lines = true
	case "application/vnd.amazon.eventstream":
		m.framed = true
	}
	m.usage.AddHeader(res.Header)
	return m
}

// Write implements io.Writer.
func (m *Meter) Write(p []byte) (int, error) {
	if m.framed && m.bytes == 0 && len(p) > 0 && beginsMessage(p[0]) {
		m.binary = newEventStream(&m.scan)
	}
	m.bytes += int64(len(p))
	if m.binary != nil {
		m.binary.feed(p)
	} else {
		m.scan.feed(p)
	}
	return len(p), nil
}

// Bytes returns how long the body was so far.
func (m *Meter) Bytes() int64 { return m.bytes }

// End returns the usage so far, and whether one was found. final means that it is the usage of the whole answer, of which a side may still be
// missing. complete means that the body was read to its end.
func (m *Meter) End(complete bool) (u Usage, found, final bool) {
	u, found = m.usage.Usage()
	open := m.scan.json.depth > 0 || m.binary != nil && m.binary.open()
	return u, found, found && m.scan.status.whole(complete, open)
}

// Used implements httpthrottle.Meter, for a body that was read to its end.
func (m *Meter) Used() (int, bool) {
	if used, final := m.UsedUntil(true); final {
		return used, true
	}
	return 0, false
}

// UsedUntil implements httpthrottle.EndMeter.
func (m *Meter) UsedUntil(complete bool) (tokens int, final bool) {
	u, found, final := m.End(complete)
	if !found {
		return 0, false
	}
	return m.tokens(u), final && (u.HasInput && u.HasOutput || u.HasTotal)
}
