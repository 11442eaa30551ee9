package chat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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

// Read reads the body of an answer whose status says that all is well: an object, or server-sent events, which are put
// together. contentType is that of the answer, for the words of an error. What stands behind the object, fields that
// are not known and fields of another type are no errors. An error is a *Fault.
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
	raw, err := firstValue(body)
	o := objectOf(unlisted(raw))
	if o == nil {
		return Answer{}, &Fault{Kind: NotJSON, Words: whatItIs(body, contentType, err)}
	}
	r.take(o)
	r.ended = true
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

// firstValue returns the JSON value at the beginning of a body.
func firstValue(body []byte) (json.RawMessage, error) {
	var raw json.RawMessage
	err := json.NewDecoder(bytes.NewReader(body)).Decode(&raw)
	return raw, err
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

// A reading is what is known of an answer, after each of its objects.
type reading struct {
	known    Answer
	text     strings.Builder
	refusal  strings.Builder
	tools    []*toolCall
	choice   bool // there was one
	other    bool // parts of a content that are no text
	filters  []string
	problem  *Fault
	object   object // the last without a choice
	streamed bool
	ended    bool // the answer was whole
}

// take reads one object: an answer, or an event of one.
func (r *reading) take(o object) {
	if model := textOf(o["model"]); model != "" {
		r.known.Model = model
	}
	if u := usageOf(o["usage"]); u != nil {
		r.known.Usage = u
	}
	if p := inError(o["error"], 0); p != nil && r.problem == nil {
		r.problem = p
	}
	c := r.choose(listOf(o["choices"]))
	if m := objectOf(o["message"]); c == nil && m["content"] != nil && m["role"] != nil { // Ollama's own
		c = o
	}
	if c == nil {
		r.object = o
		return
	}
	r.choice = true
	if reason := textOf(c["finish_reason"]); reason != "" {
		r.known.FinishReason = reason
	}
	if u := usageOf(c["usage"]); u != nil && r.known.Usage == nil {
		r.known.Usage = u
	}
	if p := inError(c["error"], 0); p != nil && r.problem == nil {
		r.problem = p
	}
	r.filtered(c["content_filter_results"])
	r.message(c)
}

// choose returns the choice that counts: the first, or that with index 0 among several.
func (r *reading) choose(choices []json.RawMessage) object {
	var chosen object
	for _, raw := range choices {
		c := objectOf(raw)
		if c == nil {
			continue
		}
		isFirst := whole(c["index"]) == 0
		if chosen == nil && (isFirst || !r.streamed) || chosen != nil && isFirst && whole(chosen["index"]) > 0 {
			chosen = c
		}
	}
	return chosen
}

// message reads what a choice says.
func (r *reading) message(c object) {
	raw := first(c, "message", "delta")
	m := objectOf(raw)
	if m == nil { // an old completion, or a message that is a text
		r.text.WriteString(textOf(raw))
		r.text.WriteString(textOf(c["text"]))
		return
	}
	said := contentOf(m["content"])
	if m["content"] == nil {
		said = contentOf(c["text"])
	}
	r.text.WriteString(said.text)
	r.refusal.WriteString(said.refusal)
	r.refusal.WriteString(contentOf(m["refusal"]).text)
	r.other = r.other || said.other
	r.calls(m)
}

// filtered notes which of Azure's filters took something away.
func (r *reading) filtered(raw json.RawMessage) {
	for name, result := range objectOf(raw) {
		if string(objectOf(result)["filtered"]) == "true" && isWord(name) {
			r.filters = append(r.filters, name)
		}
	}
	slices.Sort(r.filters)
	r.filters = slices.Compact(r.filters)
}

// answer returns what was read, or what it was instead.
func (r *reading) answer() (Answer, error) {
	a := r.known
	fault := func(kind Kind, words string) (Answer, error) {
		return Answer{}, &Fault{Kind: kind, Words: words, Answer: r.known}
	}
	if !r.choice && r.problem == nil && r.object != nil {
		r.problem = problemOf(r.object)
	}
	if r.problem != nil {
		r.problem.Answer = r.known
		return Answer{}, r.problem
	}
	a.Text, a.ToolCalls = r.text.String(), r.toolCalls()
	ending := endingOf(a.FinishReason)
	switch {
	case !r.choice && !r.ended:
		return fault(Broken, "it ended before there was a choice")
	case !r.choice:
		return fault(NoChoices, "")
	case r.refusal.Len() > 0:
		return fault(Refused, r.refusal.String())
	case ending == filteredEnding:
		return fault(Filtered, strings.Join(r.filters, ", "))
	case ending == refusedEnding:
		return fault(Refused, a.Text)
	case ending == brokenEnding:
		return fault(Broken, "finish_reason "+a.FinishReason)
	case !r.ended && a.FinishReason == "":
		return fault(Broken, "the events ended in the middle")
	case strings.TrimSpace(a.Text) != "" || a.ToolCalls != nil:
		return a, nil
	case ending == cutEnding:
		return fault(Empty, "all tokens that the answer may have were used up before it began; see maxTokens")
	case r.other:
		return fault(Empty, "its content has no part that is a text")
	}
	return fault(Empty, "")
}
