package fakellm

import (
	"fmt"
	"net/http"
)

// chatUsage is the usage of the chat endpoint.
func chatUsage(u Usage) object {
	return object{
		"prompt_tokens": u.Prompt(), "completion_tokens": u.Output, "total_tokens": u.Total(),
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}

func (a *answer) chat(kind string, choices []object) object {
	return object{"id": "chatcmpl-" + a.id, "object": kind, "created": a.now.Unix(), "model": a.call.model, "choices": choices}
}

func writeChat(w http.ResponseWriter, a *answer) {
	body := a.chat("chat.completion", []object{{
		"index": 0, "message": object{"role": "assistant", "content": a.text}, "finish_reason": a.finish("stop", "length"),
	}})
	body["usage"] = chatUsage(a.used)
	writeJSON(w, http.StatusOK, body)
}

// streamChat writes the answer as events, a word each.
func streamChat(w http.ResponseWriter, a *answer) {
	event := func(delta object, finish any) {
		writeEvent(w, "", a.chat("chat.completion.chunk", []object{{"index": 0, "delta": delta, "finish_reason": finish}}))
	}
	for _, word := range a.words() {
		event(object{"role": "assistant", "content": word}, nil)
	}
	event(object{}, a.finish("stop", "length"))
	if a.call.usage {
		last := a.chat("chat.completion.chunk", []object{})
		last["usage"] = chatUsage(a.used)
		writeEvent(w, "", last)
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// response is the answer of the responses endpoint.
func (a *answer) response() object {
	body := object{
		"id": "resp_" + a.id, "object": "response", "created_at": a.now.Unix(), "model": a.call.model, "status": a.finish("completed", "incomplete"),
		"output": []object{{
			"id": "msg_" + a.id, "type": "message", "role": "assistant", "status": a.finish("completed", "incomplete"),
			"content": []object{{"type": "output_text", "text": a.text, "annotations": []object{}}},
		}},
		"usage": object{
			"input_tokens": a.used.Prompt(), "output_tokens": a.used.Output, "total_tokens": a.used.Total(),
			"input_tokens_details":  object{"cached_tokens": a.used.CacheRead, "cache_write_tokens": a.used.CacheWrite},
			"output_tokens_details": object{"reasoning_tokens": a.used.Reasoning},
		},
	}
	if !a.whole {
		body["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	return body
}

func writeResponses(w http.ResponseWriter, a *answer) { writeJSON(w, http.StatusOK, a.response()) }

func streamResponses(w http.ResponseWriter, a *answer) {
	n := 0
	event := func(name string, body object) {
		body["type"], body["sequence_number"] = name, n
		n++
		writeEvent(w, name, body)
	}
	event("response.created", object{"response": object{"id": "resp_" + a.id, "object": "response", "status": "in_progress", "output": []object{}}})
	for _, word := range a.words() {
		event("response.output_text.delta", object{"item_id": "msg_" + a.id, "output_index": 0, "content_index": 0, "delta": word})
	}
	event("response.output_text.done", object{"item_id": "msg_" + a.id, "output_index": 0, "content_index": 0, "text": a.text})
	event("response."+a.finish("completed", "incomplete"), object{"response": a.response()})
}

func writeEmbeddings(w http.ResponseWriter, a *answer) {
	data := []object{}
	for i, input := range a.call.inputs {
		data = append(data, object{"object": "embedding", "index": i, "embedding": vector(input)})
	}
	writeJSON(w, http.StatusOK, object{
		"object": "list", "model": a.call.model, "data": data, "usage": object{"prompt_tokens": a.used.Prompt(), "total_tokens": a.used.Prompt()},
	})
}
