package main

import (
	"encoding/json"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	openai "github.com/sashabaranov/go-openai"
)

// A result is what a message becomes, as JSON. It has either an error or the rest.
type result struct {
	Text         string `json:"text,omitempty"`
	Model        string `json:"model,omitempty"`
	FinishReason string `json:"finish_reason,omitempty"`
	Usage        *used  `json:"usage,omitempty"`
	// Attempts is how many calls it took.
	Attempts int    `json:"attempts,omitempty"`
	Error    *fault `json:"error,omitempty"`
}

// used is what the provider says that the call cost, in tokens.
type used struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// A fault is why there is no answer.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of this program's own faults.
const (
	codeTooLarge  = "prompt_too_large"
	codeBadPrompt = "bad_prompt"
)

// errorTag is the tag of results that are errors, for conditional forwarding.
const errorTag = "error"

func newResult(resp *openai.ChatCompletionResponse, attempts int) result {
	r := result{
		Text: resp.Choices[0].Message.Content, Model: resp.Model,
		FinishReason: string(resp.Choices[0].FinishReason), Attempts: attempts,
	}
	if u := resp.Usage; u.TotalTokens > 0 {
		r.Usage = &used{PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, TotalTokens: u.TotalTokens}
	}
	return r
}

// message encodes a result, under the keys of the message that it is for.
func (r result) message(keys []string) mapsdk.Messages {
	encoded, err := json.Marshal(r)
	if err != nil { // every field is a text or a number
		encoded = []byte(`{"error":{"code":"internal","message":"the result cannot be encoded"}}`)
	}
	m := mapsdk.NewMessage(encoded).WithKeys(keys)
	if r.Error != nil {
		m = m.WithTags([]string{errorTag})
	}
	return mapsdk.MessagesBuilder().Append(m)
}
