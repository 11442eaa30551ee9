package httpthrottle_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// Answers as the services send them, shortened.
const (
	openAIChat = `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":` +
		`"{\"usage\":{\"total_tokens\":1000000}}"}}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,` +
		`"prompt_tokens_details":{"cached_tokens":0}}}`
	openAIStream = `data: {"id":"1","choices":[{"delta":{"content":"\"usage\": {"}}],"usage":null}

data: {"id":"1","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}}

data: [DONE]

`
	openAIResponses = `event: response.completed
data: {"type":"response.completed","response":{"id":"r","usage":{"input_tokens":37,"output_tokens":11,"total_tokens":48}}}

`
	anthropicMessage = `{"id":"msg_1","type":"message","content":[{"type":"tool_use","input":{"usage":{"input_tokens":1000000}}}],
  "usage": {"input_tokens": 2095, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 900, "output_tokens": 503}
}`
	anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":25,"output_tokens":1}}}

event: ping
data: {"type": "ping"}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`
	geminiArray = `[{
  "candidates": [{"content": {"parts": [{"functionCall": {"args": {"usageMetadata": {"totalTokenCount": 1000000}}}}]}}],
  "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8}
}
,
{
  "candidates": [],
  "usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 20, "thoughtsTokenCount": 100, "totalTokenCount": 128}
}
]`
	geminiNoTotal = `{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":20,"thoughtsTokenCount":100}}`
)

var answersOfLLMs = []struct {
	name, body string
	used       int // 0: not known
}{
	{"OpenAI chat", openAIChat, 29},
	{"OpenAI stream", openAIStream, 29},
	{"OpenAI responses", openAIResponses, 48},
	{"Anthropic", anthropicMessage, 2095 + 5 + 503},
	{"Anthropic stream", anthropicStream, 40},
	{"Gemini array", geminiArray, 128},
	{"Gemini without a total", geminiNoTotal, 128},
	{"blanks", "{ \"usage\" :\t{ \"total_tokens\" : 3 } }", 3},
	{"a quote in a text", `{"content":"so \"","usage":{"total_tokens":3}}`, 3},
	{"a backslash in a text", `{"content":"so \\","usage":{"total_tokens":3}}`, 3},
	{"cut off", openAIChat[:len(openAIChat)-3], 0},
	{"no usage", `{"choices":[]}`, 0},
	{"null", `{"usage":null}`, 0},
	{"an empty one", `{"usage":{}}`, 0},
	{"a text", `{"usage":"{\"total_tokens\":3}"}`, 0},
	{"a value of that name", `{"kind":"usage","x":{"total_tokens":3}}`, 0},
	{"an item of that name", `["usage",{"total_tokens":3}]`, 0},
	{"of another type", `{"usage":{"total_tokens":"3"}}`, 0},
	{"negative", `{"usage":{"total_tokens":-3}}`, 0},
	{"not believable", `{"usage":{"total_tokens":1000000001}}`, 0},
	{"too long", `{"usage":{"total_tokens":3,"x":"` + strings.Repeat("x", 16<<10) + `"}}`, 0},
	{"no JSON", "<html>usage: {", 0},
	{"nothing", "", 0},
}

func TestUsageMeter(t *testing.T) {
	for _, tc := range answersOfLLMs {
		t.Run(tc.name, func(t *testing.T) {
			for _, size := range []int{len(tc.body), 1, 2, 7} {
				m := httpthrottle.UsageMeter(nil)(&http.Response{})
				_, err := io.CopyBuffer(struct{ io.Writer }{m}, struct{ io.Reader }{strings.NewReader(tc.body)}, make([]byte, max(size, 1)))
				require.NoError(t, err)
				used, known := m.Used()
				require.Equal(t, fmt.Sprint(tc.used, tc.used > 0), fmt.Sprint(used, known), "in pieces of %d", size)
			}
		})
	}
}

func TestUsageMeterWithACostOfOnesOwn(t *testing.T) {
	var seen httpthrottle.Usage
	m := httpthrottle.UsageMeter(func(u httpthrottle.Usage) int {
		seen = u
		return u.Output
	})(&http.Response{})
	_, _ = io.WriteString(m, anthropicMessage)
	used, known := m.Used()
	require.True(t, known)
	require.Equal(t, 503, used)
	require.Equal(t, httpthrottle.Usage{Input: 2095, Output: 503, CacheWrites: 5, CacheReads: 900}, seen)
}
