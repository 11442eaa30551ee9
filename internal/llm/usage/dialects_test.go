package usage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// Whole answers in each dialect, of one call: 50 tokens, 1,000 put into a cache and 200,000 from one, where the dialect has those, and 300 written.
var dialects = []struct {
	name, contentType, body string
	want                    [4]int // uncached input, writes, reads, output
	early                   bool   // its end shows before the body's
}{
	{
		"OpenAI chat", "application/json",
		`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":201050,"completion_tokens":300,` +
			`"total_tokens":201350,"prompt_tokens_details":{"cached_tokens":200000,"cache_write_tokens":1000,"audio_tokens":0},` +
			`"completion_tokens_details":{"reasoning_tokens":200}}}`,
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"OpenAI chat, streamed", "text/event-stream",
		stream(piece, finished, `{"choices":[],"usage":{"prompt_tokens":201050,"completion_tokens":300,"total_tokens":201350,`+
			`"prompt_tokens_details":{"cached_tokens":200000,"cache_write_tokens":1000}}}`, "[DONE]"),
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"OpenAI responses", "application/json", `{"object":"response","status":"completed","output":[],"usage":{"input_tokens":201050,"input_tokens_details":` +
			`{"cached_tokens":200000,"cache_write_tokens":1000},"output_tokens":300,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":201350}}`,
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"OpenAI responses, streamed", "text/event-stream", "event: response.created\n" + stream(`{"type":"response.created","response":{"usage":null}}`) +
			"event: response.completed\n" + stream(`{"type":"response.completed","response":{"usage":{"input_tokens":201050,"input_tokens_details":`+
			`{"cached_tokens":200000,"cache_write_tokens":1000},"output_tokens":300,"total_tokens":201350}}}`),
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"OpenAI embeddings", "application/json",
		`{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":50,"total_tokens":50}}`,
		[4]int{50},
		true,
	},
	{
		"OpenRouter", "application/json", `{"choices":[{"finish_reason":"stop","native_finish_reason":"stop","message":{}}],"usage":{"prompt_tokens":201050,` +
			`"completion_tokens":300,"total_tokens":201350,"cost":0.95,"is_byok":false,"prompt_tokens_details":{"cached_tokens":200000,` +
			`"cache_write_tokens":1000},` +
			`"cost_details":{"upstream_inference_cost":19}}}`,
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"Anthropic", "application/json", `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":50,"cache_creation_input_tokens":1000,` +
			`"cache_read_input_tokens":200000,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600},"output_tokens":300}}`,
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"Anthropic, streamed", "text/event-stream", stream(`{"type":"message_start","message":{"usage":{"input_tokens":50,"cache_creation_input_tokens":1000,`+
			`"cache_read_input_tokens":200000,"output_tokens":1}}}`, `{"type":"content_block_delta","delta":{"text":"a"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":300}}`, `{"type":"message_stop"}`),
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"Gemini", "application/json", `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":200010,"cachedContentTokenCount":200000,` +
			`"candidatesTokenCount":200,"thoughtsTokenCount":100,"toolUsePromptTokenCount":40,"totalTokenCount":200350,` +
			`"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}}`,
		[4]int{50, 0, 200000, 300},
		true,
	},
	{
		"Gemini, streamed", "text/event-stream", strings.TrimSuffix(stream(`{"candidates":[{"content":{}}],"usageMetadata":{"promptTokenCount":200050,`+
			`"totalTokenCount":200050,"cachedContentTokenCount":200000}}`, `{"candidates":[{"finishReason":"STOP"}],`+
			`"usageMetadata":{"promptTokenCount":200050,`+
			`"cachedContentTokenCount":200000,"candidatesTokenCount":200,"thoughtsTokenCount":100,"totalTokenCount":200350}}`), "\n\n"),
		[4]int{50, 0, 200000, 300},
		false,
	},
	{
		"Gemini behind its assistant", "application/json", `{"response":{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":50,` +
			`"thoughtsTokenCount":300,"totalTokenCount":350}}}`,
		[4]int{50, 0, 0, 300},
		true,
	},
	{
		"Bedrock converse", "application/json", `{"output":{},"stopReason":"end_turn","usage":{"inputTokens":50,"outputTokens":300,"totalTokens":201350,` +
			`"cacheReadInputTokens":200000,"cacheWriteInputTokens":1000}}`,
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{"Bedrock converse, streamed", binaryEvents, converseStream, [4]int{50, 1000, 200000, 300}, true},
	{"Bedrock invoke, Anthropic's, streamed", binaryEvents, invokeStream, [4]int{50, 1000, 200000, 300}, true},
	{"Bedrock invoke, Amazon's, streamed", binaryEvents, novaStream, [4]int{50, 1000, 200000, 300}, true},
	{"Bedrock invoke, Meta's, streamed", binaryEvents, llamaStream, [4]int{50, 1000, 200000, 300}, true},
	{
		"DeepSeek", "application/json",
		`{"choices":[],"usage":{"prompt_tokens":200050,"completion_tokens":300,"total_tokens":200350,"prompt_cache_hit_tokens":200000,` +
			`"prompt_cache_miss_tokens":50,"prompt_tokens_details":{"cached_tokens":200000}}}`,
		[4]int{50, 0, 200000, 300},
		true,
	},
	{
		"Groq, streamed", "text/event-stream",
		stream(piece, strings.Replace(finished, "{", `{"x_groq":{"id":"r","usage":{"prompt_tokens":200050,"completion_tokens":300,`+
			`"total_tokens":200350,"queue_time":0.1,"prompt_tokens_details":{"cached_tokens":200000}}},`, 1), "[DONE]"),
		[4]int{50, 0, 200000, 300},
		true,
	},
	{
		"Mistral", "application/json",
		`{"choices":[],"usage":{"prompt_tokens":50,"total_tokens":350,"completion_tokens":300,"prompt_audio_seconds":null}}`,
		[4]int{50, 0, 0, 300},
		true,
	},
	{
		"Cohere", "application/json", `{"finish_reason":"COMPLETE","message":{},"usage":{"billed_units":{"input_tokens":5,"output_tokens":290},` +
			`"tokens":{"input_tokens":50,"output_tokens":300}}}`,
		[4]int{50, 0, 0, 300},
		true,
	},
	{
		"Cohere, streamed", "text/event-stream",
		stream(`{"type":"message-start"}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":`+
			`{"input_tokens":5},"tokens":{"input_tokens":50,"output_tokens":300}}}}`),
		[4]int{50, 0, 0, 300},
		true,
	},
	{
		"Cohere v1", "application/json",
		`{"text":"a","finish_reason":"COMPLETE","meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":5,"output_tokens":290},` +
			`"tokens":{"input_tokens":50,"output_tokens":300}}}`,
		[4]int{50, 0, 0, 300},
		true,
	},
	{
		"Cohere v1, streamed", "application/stream+json", `{"is_finished":false,"event_type":"text-generation","text":"a"}` + "\n" +
			`{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"text":"a","meta":{"tokens":{"input_tokens":50,` +
			`"output_tokens":300}}}}`,
		[4]int{50, 0, 0, 300},
		true,
	},
	{
		"a gateway with both dialects", "application/json", `{"choices":[],"usage":{"prompt_tokens":201050,"input_tokens":50,"completion_tokens":300,` +
			`"output_tokens":300,"total_tokens":201350,"prompt_tokens_details":{"cached_tokens":200000,"cache_creation_tokens":1000},` +
			`"cache_creation_input_tokens":1000,"cache_read_input_tokens":200000}}`,
		[4]int{50, 1000, 200000, 300},
		true,
	},
	{
		"a gateway that passes chunks of Bedrock on", "text/event-stream", stream(`{"outputText":"a"}`,
			`{"outputText":"","completionReason":"FINISH",`+metrics+`}`),
		[4]int{50, 1000, 200000, 300},
		true,
	},
}

// Each dialect tells the same four numbers, whole or streamed and in pieces of any size, and nothing that ends early is whole.
func TestDialects(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			for _, size := range []int{1, 7, 1 << 20} {
				u, found, final := read(d.contentType, d.body, size).End(true)
				require.True(t, found && final && u.HasInput && u.HasOutput, "%+v, whole: %t", u, final)
				require.Equal(t, d.want, [4]int{u.Input, u.CacheWrites, u.CacheReads, u.Output})
			}
			_, _, final := read(d.contentType, d.body, 7).End(false)
			require.Equal(t, d.early, final)
			end := strings.TrimRight(d.body, "\n}")
			for cut := range end {
				m := read(d.contentType, end[:cut], 1<<20)
				_, _, final := m.End(false)
				require.False(t, final, "final at %d", cut)
				if u, _, final := m.End(true); final { // by a gateway that ends well what it has not read whole
					require.Equal(t, d.want, [4]int{u.Input, u.CacheWrites, u.CacheReads, u.Output}, "at %d", cut)
				}
			}
		})
	}
}

// Answers of Bedrock's InvokeModel whose usage is only in their headers.
func TestUsageInHeaders(t *testing.T) {
	h := http.Header{}
	for name, value := range map[string]string{"Input": "50", "Output": "300", "Cache-Read-Input": "200000", "Cache-Write-Input": "1000"} {
		h.Set("X-Amzn-Bedrock-"+name+"-Token-Count", value)
	}
	m := usage.NewMeter(&http.Response{Header: h}, nil)
	_, _, final := m.End(true)
	require.False(t, final, "no body")
	_, _, final = read("", "{}", 9).End(true)
	require.False(t, final, "no usage")
	_, _ = m.Write([]byte(`{"generation":"a","stop_reason":"stop"}`))
	u, found, final := m.End(false)
	require.True(t, found && final)
	require.Equal(t, usage.Usage{Input: 50, Output: 300, CacheWrites: 1000, CacheReads: 200000, HasInput: true, HasOutput: true}, u)
	h.Set("X-Amzn-Bedrock-Output-Token-Count", "-300")
	u, found, _ = usage.NewMeter(&http.Response{Header: h}, nil).End(true)
	require.True(t, found && u.HasInput && !u.HasOutput)
}

// known tells what is known of a call.
func known(u usage.Usage, found bool) string {
	if !found {
		return "none"
	}
	flag := func(is bool, letter string) string {
		if is {
			return letter
		}
		return "-"
	}
	return fmt.Sprint(flag(u.HasInput, "p"), " ", flag(u.HasOutput, "a"), " ", flag(u.HasTotal, "t"), " ", u.Input, " ", u.Output)
}

// What is known of a call: the prompt (p), the answer (a), the total (t).
func TestWhatIsKnown(t *testing.T) {
	for object, want := range map[string]string{
		`{"prompt_tokens":100,"completion_tokens":300}`:                                                                  "p a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":0}`:                                                                    "p a - 100 0",
		`{"prompt_tokens":100,"completion_tokens":300,"total_tokens":400}`:                                               "p a t 100 300",
		`{"completion_tokens":300}`:                                                                                      "- a - 0 300",
		`{"prompt_tokens":0,"completion_tokens":300}`:                                                                    "- a - 0 300",
		`{"prompt_tokens":100}`:                                                                                          "p - - 100 0",
		`{"prompt_tokens":8,"total_tokens":8}`:                                                                           "p a t 8 0",
		`{"promptTokenCount":8,"thoughtsTokenCount":9,"totalTokenCount":17}`:                                             "p a t 8 9",
		`{"promptTokenCount":8,"thoughtsTokenCount":9}`:                                                                  "p - - 8 9",
		`{"completion_tokens":300,"total_tokens":400}`:                                                                   "p a t 100 300",
		`{"completion_tokens":0,"total_tokens":8}`:                                                                       "p a t 8 0",
		`{"completion_tokens":0,"total_tokens":2000001}`:                                                                 "none",
		`{"total_tokens":2000001}`:                                                                                       "- - t 2000001 0",
		`{"total_tokens":400}`:                                                                                           "- - t 400 0",
		`{"prompt_tokens":100,"total_tokens":50}`:                                                                        "p - - 100 0",
		`{"billed_units":{"input_tokens":5}}`:                                                                            "p - - 5 0",
		`{"billed_units":{"input_tokens":5,"output_tokens":4}}`:                                                          "p a - 5 4",
		`{"cache_read_input_tokens":1500000,"output_tokens":5,"total_tokens":2100005}`:                                   "- a - 0 5",
		`{"billed_units":{"search_units":1}}`:                                                                            "none",
		`{"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10,"completion_tokens":5}`:                             "p a - 10 5",
		`{"prompt_cache_miss_tokens":10,"completion_tokens":5}`:                                                          "- a - 10 5",
		`{"cache_read_input_tokens":90,"output_tokens":5}`:                                                               "- a - 0 5",
		`{"prompt_tokens_details":{"cached_tokens":90},"completion_tokens":5,"total_tokens":105}`:                        "p a t 10 5",
		`{"inputTokens":50,"cacheReadInputTokens":200,"totalTokens":350}`:                                                "p - - 50 100",
		`{"prompt_tokens":-1,"completion_tokens":300}`:                                                                   "- a - 0 300",
		`{"prompt_tokens":2000000,"completion_tokens":1000000}`:                                                          "p a - 2000000 1000000",
		`{"prompt_tokens":2000000,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":5}}`:                    "p a - 1999995 3",
		`{"cache_creation_input_tokens":1000,"output_tokens":5,"total_tokens":2000005}`:                                  "- a - 1999000 5",
		`{"cache_creation_input_tokens":1000,"output_tokens":5,"total_tokens":2000006}`:                                  "- a - 0 5",
		`{"completion_tokens":300,"total_tokens":300}`:                                                                   "- a t 0 300",
		`{"prompt_tokens":2000001,"completion_tokens":300}`:                                                              "- a - 0 300",
		`{"prompt_tokens":100,"completion_tokens":1000001}`:                                                              "p - - 100 0",
		`{"prompt_tokens":1e300,"completion_tokens":300,"total_tokens":400}`:                                             "- a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":"NaN"}`:                                                                "p - - 100 0",
		`{"prompt_tokens":"-Infinity","completion_tokens":300}`:                                                          "- a - 0 300",
		`{"prompt_tokens":100,"completion_tokens":1e999,"total_tokens":400}`:                                             "p - - 100 300",
		`{"prompt_tokens":1e12,"completion_tokens":-1}`:                                                                  "none",
		`{"prompt_tokens":100,"completion_tokens":300,"total_tokens":-1}`:                                                "p a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":300,"total_tokens":3000001}`:                                           "p a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":300,"total_tokens":1000101}`:                                           "p a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":300,"total_tokens":1000100}`:                                           "p a t 100 1000000",
		`{"prompt_tokens":100,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":-1}}`:                     "- a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":300,"prompt_tokens_details":{"cached_tokens":1999999}}`:                "- a - 100 300",
		`{"prompt_tokens":100,"completion_tokens":300,"completion_tokens_details":{"reasoning_tokens":-1}}`:              "p - - 100 300",
		`{"promptTokenCount":100,"candidatesTokenCount":900000,"thoughtsTokenCount":900000}`:                             "p - - 100 1000000",
		`{"promptTokenCount":1900000,"toolUsePromptTokenCount":900000,"candidatesTokenCount":3}`:                         "- a - 2000000 3",
		`{"prompt_tokens":null,"completion_tokens":"","total_tokens":{}}`:                                                "none",
		`{"a":{"b":{"c":{"d":{"prompt_tokens":3}}}},"prompt_tokens":[4],"details":[{"completion_tokens":3}]}`:            "none",
		`{"Prompt_Tokens":100,"completionTokens":300,"totalTokens":400}`:                                                 "p a t 100 300",
		`{"prompt_tokens":50,"input_tokens":50,"cache_read_input_tokens":20,"output_tokens":3}`:                          "p a - 50 3",
		`{"prompt_tokens":70,"input_tokens":50,"cache_read_input_tokens":20,"output_tokens":3}`:                          "p a - 50 3",
		`{"input_tokens":70,"input_tokens_details":{"cached_tokens":20},"cache_read_input_tokens":20,"output_tokens":3}`: "p a - 50 3",
	} {
		var r usage.Reader
		require.True(t, r.Add([]byte(object)))
		u, found := r.Usage()
		require.Equal(t, want, known(u, found), object)
	}
}

// Writes for an hour, as the dialects tell them.
func TestWritesForAnHour(t *testing.T) {
	for _, tc := range []struct {
		writes, hour int
		object       string
	}{
		{1000, 600, `{"input_tokens":5,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600}}`},
		{600, 600, `{"input_tokens":50,"cache_creation":{"ephemeral_1h_input_tokens":600}}`},
		{1000, 600, `{"cacheWriteInputTokens":1000,"cacheDetails":[{"ttl":"1h","inputTokens":600},{"ttl":"5m","inputTokens":400},{"ttl":"2d"}]}`},
		{1000, 0, `{"inputTokens":50,"cacheWriteInputTokens":1000,"cacheDetails":{"1h":600}}`},
		{1000, 600, `{"prompt_tokens":2000,"prompt_tokens_details":{"cache_creation_tokens":1000,"cache_creation_token_details":` +
			`{"ephemeral_1h_input_tokens":600}}}`},
		{1000, 600, `{"prompt_tokens":2000,"prompt_tokens_details":{"cache_write_tokens":1000,"cache_write_details":{"write_1h_tokens":600}}}`},
		{0, 0, `{"prompt_tokens":13,"cache_creation":{"ephemeral_1h_input_tokens":1999999}}`},
	} {
		var r usage.Reader
		require.True(t, r.Add([]byte(tc.object)))
		u, _ := r.Usage()
		require.Equal(t, [2]int{tc.writes, tc.hour}, [2]int{u.CacheWrites, u.CacheWrites1h}, tc.object)
	}
}
