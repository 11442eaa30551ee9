package chat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// An Answer is a model's answer.
type Answer struct {
	Text string
	// ToolCalls is the calls of tools, as they came; nil for none.
	ToolCalls json.RawMessage
	// Model and FinishReason are the provider's words; empty when it has none. Of the responses and messages APIs the reason is the chat
	// API's word for the same.
	Model, FinishReason string
	// Vectors are those of the texts of a call for embeddings, in order; each is a list of numbers or a text.
	Vectors []json.RawMessage
	// Usage is nil if the provider does not report it.
	Usage *Usage
}

// MaxBody bounds a body, in bytes, also after decompression.
const MaxBody = 4 << 20

// Read parses the body of a response with a success status, of any API: an object, several in lines or in a list, or server-sent events.
// It combines several. contentType is the response's, for errors. Text after a complete answer, unknown fields and fields of another type are not
// errors. An error is a *Fault.
func Read(body []byte, contentType string) (Answer, error) {
	body = plain(body)
	if len(body) == 0 {
		return Answer{}, &Fault{Kind: NoBody}
	}
	r := reading{known: Answer{Usage: usageOf(body, contentType)}}
	if isEvents(body) {
		r.events(body)
		return r.answer()
	}
	found, rest, err := values(body)
	if !r.objects(found, rest) {
		return Answer{}, &Fault{Kind: NotJSON, Words: whatItIs(body, contentType, err), Answer: r.known}
	}
	return r.answer()
}

// plain returns a body without byte-order mark, surrounding space, and unannounced compression.
func plain(body []byte) []byte {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			if whole, err := io.ReadAll(io.LimitReader(z, MaxBody)); err == nil {
				body = whole
			}
		}
	}
	body = bytes.TrimLeft(body, " \t\r\n\x00")
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	return bytes.Trim(body, " \t\r\n\x00")
}

// whatItIs describes a body that is not a JSON object, without its content.
func whatItIs(body []byte, contentType string, err error) string {
	what := "something else"
	switch {
	case err == nil:
		what = "JSON, but no object"
	case body[0] == '{' || body[0] == '[':
		what = "JSON that is broken or ends in the middle"
	case body[0] == '<':
		what = "a page (HTML or XML)"
	case bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}), bytes.HasPrefix(body, []byte{0x1f, 0x8b}):
		what = "in a compression that was not asked for"
	}
	kind, _, _ := strings.Cut(contentType, ";")
	if kind = strings.TrimSpace(kind); kind != "" && isWord(strings.ReplaceAll(strings.ReplaceAll(kind, "/", ""), "+", "")) {
		what += ", of type " + kind
	}
	return fmt.Sprintf("%s, %d bytes", what, len(body))
}
