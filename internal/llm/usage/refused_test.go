package usage_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

const (
	anthropicCounted = `{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`
	anthropicEnded   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}`
	geminiEnded      = `{"candidates":[{"content":{},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":9}}`
)

// A refusal within an answer of 200 costs the drawn tokens, in every dialect, whatever usage came before it or with it: Used knows none. Its
// usage is what the call costs at least.
func TestRefusedWithinTheAnswer(t *testing.T) {
	for _, tc := range []struct{ name, body string }{
		{"OpenAI chat", stream(piece, counted, `{"error":{"message":"x","code":429}}`, "[DONE]")},
		{"OpenAI chat, finished before", stream(piece, finished, counted, `{"error":{"code":"rate_limit_exceeded"}}`, "[DONE]")},
		{"OpenAI chat, with its usage", stream(piece, finished, `{"error":{"code":"429"},"usage":{"total_tokens":29}}`)},
		{"an error that is text", stream(piece, finished, counted, `{"error":"rate_limit_exceeded"}`)},
		{"OpenAI responses", stream(`{"type":"response.in_progress","response":{"usage":{"total_tokens":29}}}`,
			`{"type":"error","code":"rate_limit_exceeded","message":"x"}`)},
		{"Anthropic", stream(anthropicCounted, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)},
		{"Anthropic, named event", "data: " + anthropicCounted + "\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"},
		{"Anthropic, at its end", stream(anthropicCounted, anthropicEnded, `{"type":"error","error":{"type":"rate_limit_error"}}`, `{"type":"message_stop"}`)},
		{"OpenRouter", stream(`{"error":{"code":429},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"usage":{"total_tokens":29}}`,
			"[DONE]")},
		{"OpenRouter, the reason alone", stream(piece, `{"choices":[{"delta":{},"finish_reason":"error"}],"usage":{"total_tokens":29}}`, "[DONE]")},
		{"Gemini, as events", stream(geminiEnded, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`)},
		{"Gemini, as an array", "[" + geminiEnded + ",\n" + `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`},
		{"Cohere", stream(`{"type":"message-start"}`, `{"type":"message-end","delta":{"finish_reason":"ERROR","usage":{"tokens":{"input_tokens":71}}}}`)},
		{"lines", piece + "\n" + finished + "\n" + counted + "\n" + `{"error":{"code":429}}` + "\n"},
		{"JSON", `{"error":{"code":429,"message":"x"},"usage":{"total_tokens":29}}`},
		{"JSON, the reason alone", `{"choices":[{"message":{"content":"a"},"finish_reason":"error"}],"usage":{"total_tokens":29}}`},
		{"JSON of Gemini", `{"error":{"code":429},"usageMetadata":{"totalTokenCount":29}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, complete := range []bool{true, false} {
				m := usage.NewMeter(&http.Response{}, nil)
				_, err := io.WriteString(m, tc.body)
				require.NoError(t, err)
				used, final := m.UsedUntil(complete)
				require.False(t, final)
				require.Positive(t, used, "it's the least")
			}
		})
	}
}
