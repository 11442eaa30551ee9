package chat

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

// isEvents reports whether a body consists of server-sent events, which some endpoints send unrequested.
func isEvents(body []byte) bool {
	if len(body) == 0 {
		return false
	}
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(body, []byte(field)) {
			return true
		}
	}
	return body[0] != '{' && body[0] != '[' && body[0] != '<' && (bytes.Contains(body, []byte("\ndata:")) || bytes.Contains(body, []byte("\rdata:")))
}

// An event is an event of a stream.
type event struct {
	name string
	data [][]byte // its lines
}

// events parses all events of a body. Besides the standard form, it accepts an event in each line without blank lines between, and JSON
// without a field's name.
func (r *reading) events(body []byte) {
	r.streamed = true
	var e event
	for line := range lines(body) {
		field, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			r.event(e)
			e = event{}
		case line[0] == '{' || line[0] == '[':
			r.event(e)
			r.event(event{data: [][]byte{line}})
			e = event{}
		case string(field) == "event":
			e.name = string(bytes.TrimSpace(value))
		case string(field) == "data":
			if len(e.data) == 1 && isWhole(e.data[0]) {
				r.event(e)
				e.data = nil
			}
			e.data = append(e.data, bytes.TrimPrefix(value, []byte(" ")))
		}
	}
	r.event(e)
}

// lines returns the lines of a body, without their ends: CRLF, LF or CR.
func lines(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			line, rest := body, []byte(nil)
			if at := bytes.IndexAny(body, "\r\n"); at >= 0 {
				line, rest = body[:at], body[at+1:]
				if body[at] == '\r' {
					rest = bytes.TrimPrefix(rest, []byte("\n"))
				}
			}
			if !yield(line) {
				return
			}
			body = rest
		}
	}
}

// isDone reports whether data marks the end of the stream.
func isDone(data []byte) bool { return bytes.EqualFold(bytes.TrimSpace(data), []byte("[DONE]")) }

// isWhole reports whether data is an event by itself.
func isWhole(data []byte) bool { return isDone(data) || json.Valid(data) }

// event parses one event. It ignores data that is neither JSON nor an error.
func (r *reading) event(e event) {
	data := bytes.TrimSpace(bytes.Join(e.data, []byte("\n")))
	found, rest, _ := values(data)
	if len(found) == 0 && len(e.data) > 1 { // each line is one
		for _, line := range e.data {
			r.event(event{name: e.name, data: [][]byte{line}})
		}
		return
	}
	switch {
	case len(data) == 0 && e.name == "error":
		r.fail(fault(nil))
	case len(data) == 0:
	case isDone(data):
		r.ended = true
	case len(found) > 0:
		r.parts(e.name, found)
		if len(rest) < len(data) { // another one without a blank line
			r.event(event{name: e.name, data: [][]byte{rest}})
		}
	case e.name == "error" || bytes.HasPrefix(bytes.ToUpper(data[:min(len(data), 7)]), []byte("[ERROR]")):
		r.fail(textFault(string(data)))
	case data[0] == '{':
		r.lost = r.lost || e.name == "" || e.name == "message" || isNativeEvent(e.name) || bytes.Contains(data, []byte(`"choices"`))
	case statusOfWords(string(data)) != 0:
		r.aside = textFault(string(data))
	}
}

// parts reads the values of an event.
func (r *reading) parts(name string, found []json.RawMessage) {
	for _, raw := range found {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, raw := range list {
			o := objectOf(raw)
			switch {
			case o != nil && (name != "error" || !isNothing(o["choices"])):
				r.take(o)
			case o != nil:
				r.fail(problemOf(o))
				r.fail(fault(o))
			case name == "error":
				r.fail(textFault(textOf(raw)))
			}
		}
	}
}

// A toolCall is one call of a tool, which events bring in pieces.
type toolCall struct {
	fields    map[string]json.RawMessage
	function  map[string]json.RawMessage
	arguments strings.Builder // with pieces: those of the function
	pieces    bool
}

// calls parses the calls of tools of a message. The old function_call is a call, too.
func (s *speech) calls(m object, inPieces bool) {
	for i, raw := range listOf(m["tool_calls"]) {
		piece := objectOf(raw)
		if piece == nil {
			continue
		}
		at := i
		if inPieces && piece["index"] != nil {
			at = whole(piece["index"])
		} else if !inPieces {
			at = len(s.tools)
		}
		s.call(at, piece)
	}
	if f := m["function_call"]; objectOf(f) != nil {
		s.call(0, object{"type": json.RawMessage(`"function"`), "function": f})
	}
}

// call adds a piece to the call at an index, at most the next one.
func (s *speech) call(at int, piece object) {
	if at >= len(s.tools) {
		at = len(s.tools)
		s.tools = append(s.tools, &toolCall{fields: object{}, function: object{}})
	}
	c := s.tools[at]
	for key, value := range piece {
		if key != "index" && key != "function" && !isNothing(value) {
			c.fields[key] = value
		}
	}
	for key, value := range objectOf(piece["function"]) {
		var text string
		switch {
		case key == "arguments" && json.Unmarshal(value, &text) == nil:
			c.arguments.WriteString(text)
			c.pieces = true
		case !isNothing(value):
			c.function[key] = value
		}
	}
}

// toolCalls returns the calls of tools as a list; nil for none.
func toolCalls(tools []*toolCall) json.RawMessage {
	if len(tools) == 0 {
		return nil
	}
	list := make([]object, len(tools))
	for i, c := range tools {
		list[i] = c.fields
		if c.pieces {
			c.function["arguments"] = quoted(c.arguments.String())
		}
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
