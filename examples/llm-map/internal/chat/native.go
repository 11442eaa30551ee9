package chat

import (
	"cmp"
	"encoding/json"
	"strings"
)

// This file reads the answers of OpenAI's responses API and of Anthropic's messages API, whole and in events. What they say becomes what the
// chat API would say: calls of tools, and the words for why an answer has ended.

// isNativeEvent reports whether a word is the type of an event of one of the two APIs that is a part of an answer.
func isNativeEvent(kind string) bool {
	for _, prefix := range []string{"response.", "message_", "content_block_"} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// native processes an object of one of the two APIs: an answer, or an event of one. It returns false for any other object.
func (r *reading) native(o object) bool {
	kind := textOf(o["type"])
	switch {
	case strings.HasPrefix(kind, "response."):
		r.responseEvent(kind, o)
	case isNativeEvent(kind):
		r.messageEvent(kind, o)
	case textOf(o["object"]) == "response" || len(listOf(o["output"])) > 0 && o["status"] != nil:
		r.response(o, textOf(o["status"]))
	case o["content"] != nil && (kind == "message" || textOf(o["role"]) == "assistant"):
		r.message(o)
	default:
		return false
	}
	return true
}

// whole processes the text of a whole answer, which add appends. A stream repeats there the text of its pieces.
func (r *reading) whole(add func(*speech)) {
	r.choice = true
	if !r.streamed {
		add(&r.pieces)
		return
	}
	var one speech
	add(&one)
	r.messages.put(&one, false)
}

// responseEvent processes an event of the responses API. Its last event has the whole answer; some gateways leave out its text.
func (r *reading) responseEvent(kind string, o object) {
	inner := objectOf(o["response"])
	r.model(inner)
	switch kind {
	case "response.output_text.delta":
		r.choice = true
		r.pieces.text.WriteString(textOf(o["delta"]))
	case "response.refusal.delta":
		r.choice = true
		r.pieces.refusal.WriteString(textOf(o["delta"]))
	case "response.output_item.done":
		if item := objectOf(o["item"]); isCall(item) {
			r.choice = true
			r.pieces.item(item)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		r.response(inner, strings.TrimPrefix(kind, "response."))
		r.ended = true
	}
}

// response processes an answer of the responses API with a status.
func (r *reading) response(o object, status string) {
	r.model(o)
	r.fail(errorIn(o, true))
	r.whole(func(s *speech) {
		for _, raw := range listOf(o["output"]) {
			s.item(objectOf(raw))
		}
	})
	switch {
	case status == "incomplete":
		reason := textOf(objectOf(o["incomplete_details"])["reason"])
		if endingOf(reason) == cutEnding {
			reason = ""
		}
		status = cmp.Or(reason, "length")
	case status != "completed":
	case len(r.pieces.tools)+len(r.messages.tools) > 0:
		status = "tool_calls"
	default:
		status = "stop"
	}
	r.end(status)
}

// isCall reports whether an item of a response is a call of a tool.
func isCall(item object) bool {
	kind := textOf(item["type"])
	return kind == "function_call" || kind == "custom_tool_call"
}

// item adds an item of the output of a response.
func (s *speech) item(item object) {
	id := first(item, "call_id", "id")
	switch kind := textOf(item["type"]); {
	case kind == "custom_tool_call":
		encoded, err := json.Marshal(object{"name": item["name"], "input": item["input"]})
		if err == nil {
			s.tools = append(s.tools, &toolCall{fields: object{"id": id, "type": quoted("custom"), "custom": encoded}})
		}
	case isCall(item):
		s.function(id, item["name"]).arguments.WriteString(argumentsOf(item["arguments"]))
	case kind == "message" || kind == "":
		s.content(item["content"])
	case kind != "reasoning":
		s.other = true
	}
}

// function adds the call of a function, and returns it for its arguments.
func (s *speech) function(id, name json.RawMessage) *toolCall {
	c := &toolCall{fields: object{"type": quoted("function")}, function: object{}, pieces: true}
	if !isNothing(id) {
		c.fields["id"] = id
	}
	if !isNothing(name) {
		c.function["name"] = name
	}
	s.tools = append(s.tools, c)
	return c
}

// argumentsOf returns the arguments of a function as a text: JSON, also for none.
func argumentsOf(raw json.RawMessage) string {
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // else it is JSON already
	return cmp.Or(text, "{}")
}

// finishes are the chat API's words for the reasons of the messages API. Others stay.
var finishes = map[string]string{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}

// finishOf returns the chat API's word for a reason of the messages API.
func finishOf(o object) string {
	reason := endOf(o)
	return cmp.Or(finishes[reason], reason)
}

// message processes an answer of the messages API.
func (r *reading) message(o object) {
	r.model(o)
	r.fail(errorIn(o, true))
	r.whole(func(s *speech) {
		s.content(o["content"])
		for _, raw := range listOf(o["content"]) {
			if block := objectOf(raw); textOf(block["type"]) == "tool_use" {
				s.function(block["id"], block["name"]).arguments.WriteString(argumentsOf(block["input"]))
			}
		}
	})
	r.end(finishOf(o))
}

// messageEvent processes an event of the messages API.
func (r *reading) messageEvent(kind string, o object) {
	r.choice = true
	call := r.blocks[whole(o["index"])]
	switch kind {
	case "message_start":
		r.model(objectOf(o["message"]))
	case "content_block_start":
		r.block(whole(o["index"]), objectOf(o["content_block"]))
	case "content_block_delta":
		delta := objectOf(o["delta"])
		if call != nil {
			call.arguments.WriteString(textOf(delta["partial_json"]))
		}
		if kind := textOf(delta["type"]); kind == "text_delta" || kind == "" {
			r.pieces.text.WriteString(textOf(delta["text"]))
		}
	case "content_block_stop":
		if call != nil && call.arguments.Len() == 0 {
			call.arguments.WriteString("{}")
		}
	case "message_delta":
		r.end(finishOf(objectOf(o["delta"])))
	case "message_stop":
		r.ended = true
	}
}

// block begins the block of a message in events.
func (r *reading) block(index int, block object) {
	delete(r.blocks, index)
	if textOf(block["type"]) != "tool_use" {
		encoded, err := json.Marshal([]object{block})
		if err == nil {
			r.pieces.content(encoded)
		}
		return
	}
	if r.blocks == nil {
		r.blocks = map[int]*toolCall{}
	}
	call := r.pieces.function(block["id"], block["name"])
	if input := block["input"]; !isNothing(input) {
		call.arguments.Write(input)
	}
	r.blocks[index] = call
}
