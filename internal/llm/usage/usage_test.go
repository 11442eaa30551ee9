package usage_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// Answers as the services send them, shortened.
const (
	openAIChat = `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":` +
		`"{\"usage\":{\"total_tokens\":1000000}}"}}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,` +
		`"prompt_tokens_details":{"cached_tokens":0}}}`
	openAIStream = `data: {"id":"1","choices":[{"delta":{"content":"\"usage\": {"}}],"usage":null}

data: {"id":"1","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}

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
	geminiEvents = `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":9}}

data: {"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":120,"totalTokenCount":128}}

`
	moonshotStream = `data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}

data: {"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}}]}

data: [DONE]

`
	inLines = "data: {\"choices\":\ndata: [{\"finish_reason\":\ndata: \"stop\"}],\ndata:   \"usage\": {\ndata:     \"total_tokens\": 3\n" +
		"data:   }\ndata: }\n\ndata: [DONE]\n\n"
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
	{"a key without quotes", `{usage:{"total_tokens":3}}`, 0},
	{"an object behind a key without quotes", `{id:{"usage":{"total_tokens":3}}}`, 0},
	{"a list behind a key without quotes", `{id:[{"usage":{"total_tokens":3}}]}`, 0},
	{"beside a key without quotes", `{id:1,"usage":{"total_tokens":3}}`, 0},
	{"a text", `{"usage":"{\"total_tokens\":3}"}`, 0},
	{"a value of that name", `{"kind":"usage","x":{"total_tokens":3}}`, 0},
	{"an item of that name", `["usage",{"total_tokens":3}]`, 0},
	{"as text", `{"usage":{"total_tokens":"12"}}`, 12},
	{"with a fraction", `{"usage":{"total_tokens":12.5}}`, 13},
	{"with an exponent", `{"usage":{"total_tokens":1.2e3}}`, 1200},
	{"null beside others", `{"usage":{"prompt_tokens":null,"input_tokens":2,"output_tokens":"3"}}`, 5},
	{"no number", `{"usage":{"total_tokens":[3],"prompt_tokens":"many","completion_tokens":true,"input_tokens":4,"output_tokens":1}}`, 5},
	{"details that look alike", `{"usage":{"prompt_tokens":1,"completion_tokens":4,` +
		`"prompt_tokens_details":{"total_tokens":900,"usage":{"total_tokens":900}}}}`, 5},
	{"one in another", `{"usage":{"usage":{"total_tokens":900},"total_tokens":3}}`, 3},
	{"a list", stream(piece, finished, counted, `{"usage":[3]}`, "[DONE]"), 29},
	{"without the prompt", `{"usage":{"completion_tokens":4}}`, 0},
	{"without the output", `{"usage":{"prompt_tokens":4}}`, 0},
	{"Moonshot", moonshotStream, 29},
	{"Groq", `data: {"x_groq":{"usage":{"total_tokens":29}},"choices":[{"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", 29},
	{"Cohere", `{"message":{},"usage":{"billed_units":{"input_tokens":5,"output_tokens":4},"tokens":{"input_tokens":71,"output_tokens":8}}}`, 79},
	{"Bedrock", `{"output":{},"usage":{"inputTokens":7,"outputTokens":3,"totalTokens":10}}`, 10},
	{"a byte-order mark", "\ufeff" + openAIChat, 29},
	{"a byte-order mark before events", "\ufeff" + openAIStream, 29},
	{"carriage returns", strings.ReplaceAll(openAIStream, "\n", "\r\n"), 29},
	{"carriage returns alone", strings.ReplaceAll(openAIStream, "\n", "\r"), 29},
	{"a broken event before", `data: {"choices":[{"delta":{"content":"so` + "\n\n" + openAIStream, 29},
	{"a broken event that is not told apart", `data: {"choices":[{"delta":{"a":` + "\n" + openAIStream, 29},
	{"a broken event behind", strings.Replace(openAIStream, "data: [DONE]", `data: {"choices":[{`+"\n\ndata: [DONE]", 1), 0},
	{"an event in several lines", inLines, 3},
	{"an event in lines with carriage returns", strings.ReplaceAll(inLines, "\n", "\r\n"), 3},
	{"an event in lines with carriage returns alone", strings.ReplaceAll(inLines, "\n", "\r"), 3},
	{"no blanks behind colons", strings.ReplaceAll(openAIStream, "data: ", "data:"), 29},
	{"fields that are no data", "event: {\"usage\":{\"total_tokens\":900}}\ndatas: {\"usage\":{\"total_tokens\":900}}\n" + openAIStream, 29},
	{"a broken event right before the last", `data: {"choices":[{"delta":{"a":` + "\n" + stream(finishedAndCounted, "[DONE]"), 29},
	{"a comment in an event", strings.ReplaceAll(inLines, "\ndata: ", "\n: hold on\ndata: "), 3},
	{"an event that is a text", stream(`"hello`, finishedAndCounted, "[DONE]"), 29},
	{"an event with a colon", stream(`a: b`, finishedAndCounted, "[DONE]"), 29},
	{"comments", ": hold on\n\n" + openAIStream, 29},
	{"an error in the middle", `data: {"choices":[],"usage":{"total_tokens":29}}` + "\n\n" + `data: {"error":{"message":"lost"}}` +
		"\n\ndata: [DONE]\n\n", 0},
	{"Gemini's events", geminiEvents, 128},
	{"a stream without its end", stream(piece, counted), 0},
	{"the end of a stream that nobody finished", stream(piece, counted, "[DONE]"), 0},
	{"the end of a stream that says nothing of why", stream(piece, `{"choices":[{"delta":{},"finish_reason":"null"}]}`, counted, "[DONE]"), 0},
	{"a stream that was finished", stream(piece, finished, counted), 29},
	{"finished, then the end", stream(piece, finished, counted, "[DONE]"), 29},
	{"finished, and counted before", stream(piece, counted, finished, "[DONE]"), 0},
	{"finished and counted at once", stream(piece, finishedAndCounted, "[DONE]"), 29},
	{"ended by an error", stream(piece, strings.Replace(finished, "stop", "Error", 1), counted, "[DONE]"), 0},
	{"ended by a lack of means", stream(piece, strings.Replace(finished, "stop", "insufficient_system_resource", 1), counted, "[DONE]"), 0},
	{"used up", stream(piece, strings.Replace(finished, "stop", "MAX_TOKENS", 1), counted, "[DONE]"), 29},
	{"two choices, one finished", stream(piece, second, finished, counted, "[DONE]"), 0},
	{"two choices, both finished", stream(piece, second, finished, strings.Replace(finished, "{}", `{},"index":1`, 1), counted, "[DONE]"), 29},
	{"two choices in one chunk", stream(`{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{}}]}`,
		`{"choices":[{"index":1,"finish_reason":"stop"},{"finish_reason":"stop","index":0}]}`, counted, "[DONE]"), 29},
	{"too many choices", stream(strings.Replace(second, "1", "99", 1), strings.Replace(finished, "{}", `{},"index":99`, 1), counted, "[DONE]"), 0},
	{"as many choices", stream(strings.Replace(second, "1", "62", 1), strings.Replace(finished, "{}", `{},"index":62`, 1), counted, "[DONE]"), 29},
	{"one too many", stream(strings.Replace(second, "1", "63", 1), strings.Replace(finished, "{}", `{},"index":63`, 1), counted, "[DONE]"), 0},
	{"a reason that is empty", stream(piece, strings.Replace(finished, "stop", "", 1), counted, "[DONE]"), 0},
	{"a choice that ends behind the usage", stream(piece, finished, counted, second, strings.Replace(finished, "{}", `{},"index":1`, 1), "[DONE]"), 0},
	{"a broken event behind the usage, and others", stream(piece, finishedAndCounted, `{"choices":[{`, `{"type":"ping"}`, "[DONE]"), 0},
	{"a whole event that is no JSON, before", stream(piece, `{id:1}`, finishedAndCounted, "[DONE]"), 29},
	{"a choice of no number", stream(strings.Replace(second, "1", "-1", 1), finished, counted, "[DONE]"), 0},
	{"a chunk alone", strings.Replace(piece, "{", `{"usage":{"total_tokens":29},`, 1), 0},
	{"a chunk alone, finished", finishedAndCounted, 29},
	{"chunks in lines", piece + "\n" + finished + "\n" + counted + "\n", 29},
	{"chunks in lines, cut off", piece + "\n" + counted + "\n", 0},
	{"a message of Anthropic without a reason", strings.Replace(anthropicStream, `"end_turn"`, "null", 1), 0},
	{"a message of Anthropic, counted before", strings.Replace(anthropicStream, `},"usage":{"output_tokens":15}`, "}", 1), 0},
	{"a stream of Cohere", stream(`{"type":"message-start"}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":71,`+
		`"output_tokens":8}}}}`), 79},
	{"a stream that says why it ended", `data: {"choices":[{"finish_reason":"stop"}]}` +
		"\n\n" + `data: {"choices":[],"usage":{"total_tokens":29}}` + "\n\n", 29},
	{"a usage before that", `data: {"choices":[],"usage":{"total_tokens":29}}` + "\n\n" + `data: {"choices":[{"finish_reason":"stop"}]}` + "\n\n", 0},
	{"a message of Anthropic that has only begun", before(anthropicStream, "event: ping"), 0},
	{"an array of Gemini that is not closed", strings.TrimSuffix(geminiArray, "]"), 0},
	{"a broken item of an array", "[{\"usageMetadata\":{\"totalTokenCount\":1}},\n{\"a\":\"\n{\"usageMetadata\":{\"totalTokenCount\":5}}\n]", 5},
	{"a line that is 2 MB", `data: {"choices":[{"delta":"` + strings.Repeat("x", 2<<20) + `"}]}` + "\n\n" + openAIStream, 29},
	{"deep", `{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"usage":{"total_tokens":3}}`, 3},
	{"negative", `{"usage":{"total_tokens":-3}}`, 0},
	{"not believable", `{"usage":{"total_tokens":1000000001}}`, 0},
	{"the longest", `{"usage":{"total_tokens":3,"x":"` + strings.Repeat("x", 16<<10-25) + `"}}`, 3},
	{"too long", `{"usage":{"total_tokens":3,"x":"` + strings.Repeat("x", 16<<10-24) + `"}}`, 0},
	{"Cohere's names elsewhere", `{"a":{"tokens":{"input_tokens":900,"output_tokens":9}},"usage":{"total_tokens":3}}`, 3},
	{"Cohere's bill without a usage", `{"meta":{"billed_units":{"input_tokens":5,"output_tokens":4}}}`, 9},
	{"Bedrock's metrics without a usage", `{"amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":4}}`, 7},
	{"Cohere's bill alone", `{"usage":null,"meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":5,"output_tokens":4}}}`, 9},
	{"an error further down", `{"a":{"error":{}},"usage":{"total_tokens":3}}`, 3},
	{"an error as an item", `[{"usageMetadata":{"totalTokenCount":5}},{"error":"lost"}]`, 0},
	{"in a list of another name", `{"data":[{"usage":{"total_tokens":900}}],"usage":{"total_tokens":3}}`, 3},
	{"a reason in a list of another name", `{"data":[{"finish_reason":"error","finishReason":"ERROR"}],"usage":{"total_tokens":3}}`, 3},
	{"in an object of a response", `{"response":{"a":{"usage":{"total_tokens":900}},"usage":{"total_tokens":3}}}`, 3},
	{"in a list that is a response", `{"response":[{"usage":{"total_tokens":900}}],"usage":{"total_tokens":3}}`, 3},
	{"in a choice of a response", `[{"response":{"choices":[{"usage":{"total_tokens":3}}]}}]`, 3},
	{"a longer name than that of Bedrock's metrics", `{"amazon-bedrock-invocationMetricsX":{"total_tokens":900},"usage":{"total_tokens":3}}`, 3},
	{"JSON that is no error", `{"error":null,"usage":{"total_tokens":29}}`, 29},
	{"JSON that denies an error", `{"error":false,"usage":{"total_tokens":29}}`, 29},
	{"no JSON", "<html>usage: {", 0},
	{"nothing", "", 0},
}

// Chunks of a stream.
const (
	piece    = `{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`
	second   = `{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}`
	finished = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	counted  = `{"choices":[],"usage":{"total_tokens":29}}`

	finishedAndCounted = `{"usage":{"total_tokens":29},"choices":[{"delta":{},"finish_reason":"stop"}]}`
)

// stream is a stream with an event of each text.
func stream(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// before returns what comes before a part of a text.
func before(text, part string) string {
	head, _, _ := strings.Cut(text, part)
	return head
}

func TestUsageMeter(t *testing.T) {
	for _, tc := range answersOfLLMs {
		t.Run(tc.name, func(t *testing.T) {
			for _, size := range []int{len(tc.body), 1, 2, 7} {
				if len(tc.body) > 1<<20 && size < 7 {
					continue
				}
				m := usage.NewMeter(&http.Response{}, nil)
				_, err := io.CopyBuffer(struct{ io.Writer }{m}, struct{ io.Reader }{strings.NewReader(tc.body)}, make([]byte, max(size, 1)))
				require.NoError(t, err)
				used, known := m.Used()
				require.Equal(t, fmt.Sprint(tc.used, tc.used > 0), fmt.Sprint(used, known), "in pieces of %d", size)
			}
		})
	}
}

// A stream is over before its end with its API's last event, and with nothing that is like it.
func TestTheLastEvent(t *testing.T) {
	for last, want := range map[string]bool{
		"[DONE]": true, "[DONE]\t": true, "[DONE]x": false, "[DONE": false, "DONE]": false, `"[DONE]"`: false, `{"type":"ping"}`: false,
		`{"type":"message_stop"}`: true, `{"type":"message-end"}`: true, `{"event_type":"stream-end"}`: true, `{"type":"message_stops"}`: false,
	} {
		m := usage.NewMeter(&http.Response{}, nil)
		_, _ = io.WriteString(m, stream(piece, finished, counted, last))
		_, final := m.UsedUntil(false)
		require.Equal(t, want, final, last)
	}
}

// Each dialect, in the four numbers; and figures that contradict each other or can't be.
func TestUsageReader(t *testing.T) {
	type figures struct{ Input, Output, CacheWrites, CacheReads, Total int }
	of := func(u usage.Usage) figures { return figures{u.Input, u.Output, u.CacheWrites, u.CacheReads, u.Total} }
	for _, tc := range []struct {
		name, object string
		want         figures // empty: none
		tokens       int
	}{
		{
			"OpenAI chat", `{"prompt_tokens":2000,"completion_tokens":300,"total_tokens":2300,` +
				`"prompt_tokens_details":{"cached_tokens":1920,"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":200}}`,
			figures{70, 300, 10, 1920, 2300},
			2300,
		},
		{"OpenAI responses", `{"input_tokens":2000,"output_tokens":300,"input_tokens_details":{"cached_tokens":1920}}`, figures{80, 300, 0, 1920, 2300}, 2300},
		{"OpenAI embeddings", `{"prompt_tokens":8,"total_tokens":8}`, figures{Input: 8, Total: 8}, 8},
		{
			"Anthropic", `{"input_tokens":50,"cache_creation_input_tokens":1000,"cache_read_input_tokens":200000,"output_tokens":300}`,
			figures{Input: 50, Output: 300, CacheWrites: 1000, CacheReads: 200000},
			1350,
		},
		{
			"both dialects, the caches beside the prompt", `{"prompt_tokens":50,"prompt_tokens_details":{"cached_tokens":200000},` +
				`"cache_creation_input_tokens":1000,"cache_read_input_tokens":200000,"completion_tokens":300}`,
			figures{50, 300, 1000, 200000, 201350},
			201350,
		},
		{
			"both dialects, the caches in the prompt", `{"prompt_tokens":201050,"prompt_tokens_details":{"cached_tokens":200000},` +
				`"cache_creation_input_tokens":1000,"cache_read_input_tokens":200000,"completion_tokens":300}`,
			figures{50, 300, 1000, 200000, 201350},
			201350,
		},
		{
			"Anthropic, writes by duration", `{"input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600}}`,
			figures{Input: 50, CacheWrites: 1000},
			1050,
		},
		{
			"Anthropic, fewer reads than input", `{"input_tokens":50,"cache_read_input_tokens":20,"output_tokens":300}`,
			figures{Input: 50, Output: 300, CacheReads: 20},
			350,
		},
		{
			"Anthropic behind a gateway", `{"prompt_tokens":12417,"completion_tokens":100,"total_tokens":12517,"cache_read_input_tokens":12304}`,
			figures{113, 100, 0, 12304, 12517},
			12517,
		},
		{"Gemini", `{"promptTokenCount":1000,"cachedContentTokenCount":800,"candidatesTokenCount":100,"thoughtsTokenCount":60,"toolUsePromptTokenCount":40,` +
			`"totalTokenCount":1200}`, figures{240, 160, 0, 800, 1200}, 1200},
		{
			"Bedrock converse", `{"inputTokens":3000,"outputTokens":1000,"cacheReadInputTokens":4000,"cacheWriteInputTokens":1000,"totalTokens":9000}`,
			figures{3000, 1000, 1000, 4000, 9000},
			9000,
		},
		{
			"DeepSeek", `{"prompt_tokens":1000,"prompt_cache_hit_tokens":900,"prompt_cache_miss_tokens":100,"completion_tokens":5,"total_tokens":1005}`,
			figures{100, 5, 0, 900, 1005},
			1005,
		},
		{
			"DeepSeek, without the sum", `{"prompt_cache_hit_tokens":900,"prompt_cache_miss_tokens":100,"completion_tokens":5}`,
			figures{100, 5, 0, 900, 1005},
			1005,
		},
		{"Cohere", `{"billed_units":{"input_tokens":5,"output_tokens":4},"tokens":{"input_tokens":71,"output_tokens":8}}`, figures{71, 8, 0, 0, 79}, 79},
		{"thoughts only in the total", `{"prompt_tokens":8,"completion_tokens":40,"total_tokens":129}`, figures{8, 121, 0, 0, 129}, 129},
		{
			"thoughts beside the output", `{"prompt_tokens":8,"completion_tokens":40,"completion_tokens_details":{"reasoning_tokens":81}}`,
			figures{8, 121, 0, 0, 129},
			129,
		},
		{
			"a cache beside the prompt", `{"prompt_tokens":13,"completion_tokens":100,"total_tokens":113,"prompt_tokens_details":{"cached_tokens":12304}}`,
			figures{13, 100, 0, 12304, 12417},
			12417,
		},
		{
			"a cache beside the prompt, by another name", `{"prompt_tokens":13,"completion_tokens":100,"cache_read_input_tokens":12304}`,
			figures{13, 100, 0, 12304, 12417},
			12417,
		},
		{
			"a short cache beside the prompt", `{"prompt_tokens":13,"completion_tokens":100,"total_tokens":123,"cache_read_input_tokens":10}`,
			figures{13, 100, 0, 10, 123},
			123,
		},
		{
			"a cache beside the prompt that is not in the total",
			`{"prompt_tokens":100,"completion_tokens":100,"total_tokens":200,"cache_read_input_tokens":50}`,
			figures{50, 100, 0, 50, 200},
			200,
		},
		{
			"nothing but a cache", `{"input_tokens":0,"cache_read_input_tokens":200000,"output_tokens":5}`,
			figures{Output: 5, CacheReads: 200000},
			5,
		},
		{
			"the uncached prompt by two names", `{"prompt_tokens":50,"input_tokens":50,"cache_read_input_tokens":1000,"output_tokens":5}`,
			figures{Input: 50, Output: 5, CacheReads: 1000},
			55,
		},
		{
			"the prompt by two names", `{"prompt_tokens":1050,"input_tokens":50,"cache_read_input_tokens":1000,"output_tokens":5}`,
			figures{50, 5, 0, 1000, 1055},
			1055,
		},
		{
			"a cache as long as the prompt", `{"prompt_tokens":13,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":13}}`,
			figures{0, 100, 0, 13, 113},
			113,
		},
		{"a total below the sum", `{"prompt_tokens":13,"completion_tokens":100,"total_tokens":20}`, figures{13, 100, 0, 0, 113}, 113},
		{"a total alone", `{"total_tokens":31}`, figures{Input: 31, Total: 31}, 31},
		{"no prompt", `{"completion_tokens":40,"total_tokens":129}`, figures{89, 40, 0, 0, 129}, 129},
		{"negative caches", `{"prompt_tokens":13,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":-5}}`, figures{13, 100, 0, 0, 113}, 113},
		{
			"an absurd cache", `{"prompt_tokens":13,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":900000000}}`,
			figures{13, 100, 0, 0, 113},
			113,
		},
		{"an absurd total", `{"prompt_tokens":13,"completion_tokens":100,"total_tokens":900000000}`, figures{13, 100, 0, 0, 113}, 113},
		{
			"absurd thoughts", `{"prompt_tokens":13,"completion_tokens":100,"completion_tokens_details":{"reasoning_tokens":900000000}}`,
			figures{13, 100, 0, 0, 113},
			113,
		},
		{"a negative output", `{"prompt_tokens":13,"completion_tokens":-100}`, figures{Input: 13, Total: 13}, 13},
		{"an impossible output", `{"prompt_tokens":13,"completion_tokens":1e12}`, figures{Input: 13, Total: 13}, 13},
		{"an infinite output", `{"prompt_tokens":13,"completion_tokens":1e999}`, figures{Input: 13, Total: 13}, 13},
		{"zeros", `{"prompt_tokens":0,"completion_tokens":0}`, figures{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r usage.Reader
			require.True(t, r.Add([]byte(tc.object)))
			u, ok := r.Usage()
			require.Equal(t, tc.want, of(u))
			require.Equal(t, tc.want != figures{}, ok)
			require.Equal(t, tc.tokens, u.Tokens())
			require.True(t, r.Add([]byte(tc.object)), "twice, as in a stream")
			again, _ := r.Usage()
			require.Equal(t, u, again)
		})
	}
	var r usage.Reader
	require.False(t, r.Add([]byte(`[]`)))
	r.AddHeader(http.Header{
		"X-Amzn-Bedrock-Input-Token-Count": {"3000"}, "X-Amzn-Bedrock-Output-Token-Count": {"1000"},
		"X-Amzn-Bedrock-Cache-Read-Input-Token-Count": {"4000"}, "X-Amzn-Bedrock-Cache-Write-Input-Token-Count": {"1000"},
	})
	u, ok := r.Usage()
	require.True(t, ok)
	require.Equal(t, figures{Input: 3000, Output: 1000, CacheWrites: 1000, CacheReads: 4000}, of(u))
}

func TestUsageMeterWithACostOfOnesOwn(t *testing.T) {
	var seen usage.Usage
	m := usage.NewMeter(&http.Response{}, func(u usage.Usage) int {
		seen = u
		return u.Output
	})
	_, _ = io.WriteString(m, anthropicMessage)
	used, known := m.Used()
	require.True(t, known)
	require.Equal(t, 503, used)
	require.Equal(t, usage.Usage{Input: 2095, Output: 503, CacheWrites: 5, CacheReads: 900, HasInput: true, HasOutput: true}, seen)
}
