package chat

import "encoding/json"

// A Usage is the cost of a call according to the provider, in tokens.
type Usage struct{ Prompt, Completion, Total int }

// usageOf parses a usage; nil if it is empty.
func usageOf(raw json.RawMessage) *Usage {
	o := objectOf(raw)
	u := Usage{
		Prompt:     whole(first(o, "prompt_tokens", "input_tokens", "promptTokenCount")),
		Completion: whole(first(o, "completion_tokens", "output_tokens", "candidatesTokenCount")),
		Total:      whole(first(o, "total_tokens", "totalTokenCount")),
	}
	if u == (Usage{}) {
		return nil
	}
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	return &u
}
