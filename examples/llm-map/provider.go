package main

import (
	"net/http"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
)

// anthropicVersion is the version of the messages API that requests ask for, unless the setting headers does.
const anthropicVersion = "2023-06-01"

// A provider is where an endpoint is and how it is logged in to. How it counts is in its profile.
type provider struct {
	baseURL string // default; empty: must be set
	// lacks are the APIs that it does not have at its default URL.
	lacks []chat.API
	// maxInputs and maxInputTokens are what a call for embeddings and a text may have; 0: as at most providers.
	maxInputs, maxInputTokens int
	// login adds the key to a request; nil: as a bearer.
	login func(h http.Header, key string)
}

// What calls for embeddings may have at most providers; see the settings of these names.
const (
	defaultMaxInputs      = 2048
	defaultMaxInputTokens = 8192
	defaultMaxCallTokens  = 300_000
)

var providers = map[profile.Name]provider{
	profile.OpenAI: {baseURL: "https://api.openai.com/v1", lacks: []chat.API{chat.Messages}},
	profile.Azure: {login: func(h http.Header, key string) {
		h.Del("Authorization")
		h.Set("Api-Key", key)
	}},
	profile.Anthropic: {baseURL: "https://api.anthropic.com/v1", lacks: []chat.API{chat.Responses, chat.Embeddings}},
	profile.Gemini: {
		baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", lacks: []chat.API{chat.Messages}, maxInputs: 100, maxInputTokens: 2048,
	},
	profile.Groq:       {baseURL: "https://api.groq.com/openai/v1", lacks: []chat.API{chat.Messages, chat.Embeddings}},
	profile.Mistral:    {baseURL: "https://api.mistral.ai/v1", lacks: []chat.API{chat.Messages}},
	profile.OpenRouter: {baseURL: "https://openrouter.ai/api/v1"},
	profile.Cohere:     {baseURL: "https://api.cohere.ai/compatibility/v1", lacks: []chat.API{chat.Messages}, maxInputs: 96},
	profile.DeepSeek:   {baseURL: "https://api.deepseek.com/v1", lacks: []chat.API{chat.Responses, chat.Embeddings}},
}

// login returns what adds the key to a request.
func (s *settings) login() func(h http.Header, key string) {
	if s.API == chat.Messages {
		return func(h http.Header, key string) { h.Set("X-Api-Key", key) }
	}
	if login := providers[s.Provider].login; login != nil {
		return login
	}
	return func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
}
