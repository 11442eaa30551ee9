package fakellm

import (
	"net/http"
)

// messagesUsage is the usage of Anthropic's own endpoint.
func messagesUsage(u Usage, output int) object {
	return object{
		"input_tokens": u.Input, "cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead, "output_tokens": output,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.CacheWrite - u.CacheWrite1h, "ephemeral_1h_input_tokens": u.CacheWrite1h},
		"service_tier":   "standard",
	}
}

func (a *answer) message(content []object, stop any, output int) object {
	return object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.call.model, "content": content, "stop_reason": stop,
		"stop_sequence": nil, "usage": messagesUsage(a.used, output),
	}
}

func writeMessages(w http.ResponseWriter, a *answer) {
	writeJSON(w, http.StatusOK, a.message([]object{{"type": "text", "text": a.text}}, a.finish("end_turn", "max_tokens"), a.used.Output))
}

func streamMessages(w http.ResponseWriter, a *answer) {
	event := func(name string, body object) {
		body["type"] = name
		writeEvent(w, name, body)
	}
	event("message_start", object{"message": a.message([]object{}, nil, min(1, a.used.Output))})
	event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	event("ping", object{})
	for _, word := range a.words() {
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": word}})
	}
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{
		"delta": object{"stop_reason": a.finish("end_turn", "max_tokens"), "stop_sequence": nil}, "usage": object{"output_tokens": a.used.Output},
	})
	event("message_stop", object{})
}
