package chat

import (
	"bytes"
	"encoding/json"
)

// isEvents tells whether a body is made of server-sent events, which some endpoints send unasked.
func isEvents(body []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(body, []byte(field)) {
			return true
		}
	}
	return false
}

// events reads all events of a body. One that is no object is left out.
func (r *reading) events(body []byte) {
	r.streamed = true
	for data := range bytes.Lines(bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))) {
		data, is := bytes.CutPrefix(data, []byte("data:"))
		if !is {
			continue
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			r.ended = true
			continue
		}
		if o := objectOf(data); o != nil {
			r.take(o)
		}
	}
}

// A toolCall is one call of a tool, which events bring in pieces.
type toolCall struct {
	fields    map[string]json.RawMessage
	function  map[string]json.RawMessage
	arguments string
}

// calls reads the calls of tools of a message. The old function_call is a call, too.
func (r *reading) calls(m object) {
	for i, raw := range listOf(m["tool_calls"]) {
		piece := objectOf(raw)
		if piece == nil {
			continue
		}
		at := i
		if r.streamed && piece["index"] != nil {
			at = whole(piece["index"])
		} else if !r.streamed {
			at = len(r.tools)
		}
		r.call(at, piece)
	}
	if f := m["function_call"]; objectOf(f) != nil {
		r.call(0, object{"type": json.RawMessage(`"function"`), "function": f})
	}
}

// call adds a piece to the call at a place, which is the next one at most.
func (r *reading) call(at int, piece object) {
	if at >= len(r.tools) {
		at = len(r.tools)
		r.tools = append(r.tools, &toolCall{fields: object{}, function: object{}})
	}
	c := r.tools[at]
	for key, value := range piece {
		if key != "index" && key != "function" && !isNothing(value) {
			c.fields[key] = value
		}
	}
	for key, value := range objectOf(piece["function"]) {
		var text string
		switch {
		case key == "arguments" && json.Unmarshal(value, &text) == nil:
			c.arguments += text
			encoded, err := json.Marshal(c.arguments)
			if err == nil {
				c.function[key] = encoded
			}
		case !isNothing(value):
			c.function[key] = value
		}
	}
}

// toolCalls returns the calls of tools as a list; nil for none.
func (r *reading) toolCalls() json.RawMessage {
	if len(r.tools) == 0 {
		return nil
	}
	list := make([]object, len(r.tools))
	for i, c := range r.tools {
		list[i] = c.fields
		if len(c.function) > 0 {
			encoded, err := json.Marshal(c.function)
			if err != nil {
				return nil
			}
			list[i]["function"] = encoded
		}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return encoded
}
