package chat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// An Answer is what a model says.
type Answer struct {
	Text string
	// ToolCalls is the calls of tools, as they came; nil for none.
	ToolCalls json.RawMessage
	// Model and FinishReason are the provider's words; empty when it has none.
	Model, FinishReason string
	// Usage is nil when the provider does not tell it.
	Usage *Usage
}

// MaxBody is the longest body that is read, in bytes, also after a compression is undone.
const MaxBody = 4 << 20

// Read reads the body of an answer whose status says that all is well: an object, several in lines or in a list, or
// server-sent events, which are put together. contentType is that of the answer, for the words of an error. What stands
// behind a whole answer, fields that are not known and fields of another type are no errors. An error is a *Fault.
func Read(body []byte, contentType string) (Answer, error) {
	body = plain(body)
	if len(body) == 0 {
		return Answer{}, &Fault{Kind: NoBody}
	}
	var r reading
	if isEvents(body) {
		r.events(body)
		return r.answer()
	}
	found, rest, err := values(body)
	if !r.objects(found, rest) {
		return Answer{}, &Fault{Kind: NotJSON, Words: whatItIs(body, contentType, err)}
	}
	return r.answer()
}

// plain returns a body without a byte-order mark, space around it, and a compression that nobody announced.
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

// whatItIs says what a body is that is no JSON object, and nothing of what it holds.
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
