package chat

import (
	"encoding/json"
	"strings"
)

// A content is the content of a message.
type content struct {
	text    string
	refusal string
	other   bool // parts that are neither text nor thoughts
}

// contentOf parses the content of a message: a text, or a list of parts, which are texts or objects with a type.
func contentOf(raw json.RawMessage) content {
	var c content
	parts := listOf(raw)
	if parts == nil {
		c.text = textOf(raw)
		return c
	}
	var text, refusal strings.Builder
	for _, part := range parts {
		o := objectOf(part)
		if o == nil {
			text.WriteString(textOf(part))
			continue
		}
		kind := strings.ToLower(textOf(o["type"]))
		switch {
		case kind == "refusal" || !isNothing(o["refusal"]):
			refusal.WriteString(partText(first(o, "refusal", "text")))
		case kind == "thinking" || kind == "reasoning" || kind == "redacted_thinking" || kind == "reference":
			// what led to the answer is none of it
		case o["text"] != nil:
			text.WriteString(partText(o["text"]))
		case o["content"] != nil && (kind == "" || kind == "text" || kind == "output_text"):
			text.WriteString(partText(o["content"]))
		default:
			c.other = true
		}
	}
	c.text, c.refusal = text.String(), refusal.String()
	return c
}

// content adds the content of a message.
func (s *speech) content(raw json.RawMessage) {
	said := contentOf(raw)
	s.text.WriteString(said.text)
	s.refusal.WriteString(said.refusal)
	s.other = s.other || said.other
}

// partText returns the text of a part: a string, or an object with the string in it.
func partText(raw json.RawMessage) string {
	if o := objectOf(raw); o != nil {
		return textOf(first(o, "value", "text"))
	}
	return textOf(raw)
}
