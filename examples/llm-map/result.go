package main

import (
	"encoding/json"
	"unicode/utf8"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
)

// A result is the JSON output for a message. It has an error, or a text, or calls of tools.
type result struct {
	// Embedding is the vector of the message, with the API embeddings.
	Embedding    json.RawMessage `json:"embedding,omitempty"`
	Text         string          `json:"text,omitempty"`
	ToolCalls    json.RawMessage `json:"tool_calls,omitempty"`
	Model        string          `json:"model,omitempty"`
	FinishReason string          `json:"finish_reason,omitempty"`
	Usage        *used           `json:"usage,omitempty"`
	// Deployment is the deployment that answered, if there are several.
	Deployment string `json:"deployment,omitempty"`
	// Attempts is the number of calls.
	Attempts int    `json:"attempts,omitempty"`
	Error    *fault `json:"error,omitempty"`
	// Input is the original message, according to the setting input; InputBase64 if it is not text.
	Input       json.RawMessage `json:"input,omitempty"`
	InputBase64 []byte          `json:"input_base64,omitempty"`

	vectors []json.RawMessage // of a call for embeddings
	refused bool              // the same call would be refused again, but a part of it may not
}

// used is the cost of the call according to the provider, in tokens.
type used struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// A fault is the reason for a missing answer.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of this program's own faults.
const (
	codeTooLarge  = "prompt_too_large"
	codeBadPrompt = "bad_prompt"
	codeBadOutput = "bad_output"
)

// errorTag is the tag of results that are errors, for conditional forwarding.
const errorTag = "error"

// newResult returns the result for the known parts of an answer.
func newResult(a *chat.Answer, attempts int) result {
	r := result{Text: a.Text, ToolCalls: a.ToolCalls, Model: a.Model, FinishReason: a.FinishReason, Attempts: attempts, vectors: a.Vectors}
	if u := a.Usage; u != nil {
		r.Usage = &used{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Total}
	}
	return r
}

// withInput returns the result with the original message.
func (r result) withInput(how inputForm, payload []byte) result {
	switch {
	case how != inputText && how != inputJSON:
	case how == inputJSON && json.Valid(payload):
		r.Input = payload
	case utf8.Valid(payload):
		if encoded, err := json.Marshal(string(payload)); err == nil {
			r.Input = encoded
		}
	default:
		r.InputBase64 = payload
	}
	return r
}

// message encodes a result, under the keys of the original message.
func (r result) message(keys []string) mapsdk.Message {
	encoded, err := json.Marshal(r)
	if err != nil { // every field is a text, a number or JSON
		encoded = []byte(`{"error":{"code":"internal","message":"the result cannot be encoded"}}`)
	}
	m := mapsdk.NewMessage(encoded).WithKeys(keys)
	if r.Error != nil {
		m = m.WithTags([]string{errorTag})
	}
	return m
}

// metadataGroup and metadataInput are the keys of the message with the setting input: metadata.
const (
	metadataGroup = "llm-map"
	metadataInput = "input"
)

// metadata returns the user metadata of a message, plus the message itself.
func metadata(d mapsdk.Datum) *mapsdk.UserMetadata {
	kept, own := mapsdk.NewUserMetadata(), d.UserMetadata()
	for _, group := range own.Groups() {
		for _, key := range own.Keys(group) {
			kept.AddKV(group, key, own.Value(group, key))
		}
	}
	kept.AddKV(metadataGroup, metadataInput, d.Value())
	return kept
}
