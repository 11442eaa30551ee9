package fakellm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// readUsage reads the usage of an answer as clients do, of four kinds.
func readUsage(res *http.Response, body []byte) (u Usage) {
	m := usage.NewMeter(res, func(got usage.Usage) int {
		u = Usage{Input: got.Input, CacheWrite: got.CacheWrites, CacheRead: got.CacheReads, Output: got.Output}
		return got.Tokens()
	})
	_, _ = m.Write(body)
	m.Used()
	return u
}

// jsonOfEvents returns the payloads of a binary event stream, a line each, and checks its lengths and checksums.
func jsonOfEvents(t *testing.T, stream []byte) (lines []byte) {
	t.Helper()
	for len(stream) > 0 {
		n := int(binary.BigEndian.Uint32(stream))
		event, headers := stream[:n], int(binary.BigEndian.Uint32(stream[4:]))
		require.Equal(t, crc32.ChecksumIEEE(event[:8]), binary.BigEndian.Uint32(event[8:]))
		require.Equal(t, crc32.ChecksumIEEE(event[:n-4]), binary.BigEndian.Uint32(event[n-4:]))
		lines = append(append(lines, event[12+headers:n-4]...), '\n')
		stream = stream[n:]
	}
	return lines
}

// Each endpoint tells the same usage in its own dialect, whole or streamed, and answers with words of the prompt.
func TestDialects(t *testing.T) {
	used := Usage{Input: 300, CacheWrite: 20, CacheRead: 1000, Output: 70, Reasoning: 30, ToolUse: 40, CacheWrite1h: 5}
	all := Usage{Input: 300, CacheWrite: 20, CacheRead: 1000, Output: 70}
	merged := Usage{Input: 320, CacheRead: 1000, Output: 70} // Gemini tells of no writes
	for _, c := range []struct {
		path, body string
		want       Usage
		ends       string // part of the body
	}{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"some words"}]}`, all, `"finish_reason":"stop"`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"some words"}]}],"max_tokens":70}`, all, `"length"`},
		{"/v1/chat/completions", `{"messages":[{"content":"some words"}],"stream":true,"stream_options":{"include_usage":true}}`, all, "data: [DONE]"},
		{"/v1/chat/completions", `{"messages":[{"content":"some words"}],"stream":true}`, Usage{}, "data: [DONE]"},
		{"/v1/responses", `{"input":"some words"}`, all, `"status":"completed"`},
		{"/v1/responses", `{"input":[{"role":"user","content":"some words"}],"stream":true,"max_output_tokens":70}`, all, "event: response.incomplete"},
		{"/v1/messages", `{"max_tokens":100,"messages":[{"role":"user","content":"some words"}]}`, all, `"ephemeral_1h_input_tokens":5`},
		{"/v1/messages", `{"max_tokens":70,"messages":[{"content":"some words"}],"stream":true}`, all, `"stop_reason":"max_tokens"`},
		{"/v1beta/models/g:generateContent", `{"contents":[{"parts":[{"text":"some words"}]}]}`, merged, `"thoughtsTokenCount":30`},
		{"/v1beta/models/g:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"some words"}]}]}`, merged, `"finishReason":"STOP"`},
		{"/model/c/converse", `{"messages":[{"role":"user","content":[{"text":"some words"}]}],"inferenceConfig":{"maxTokens":70}}`, all, `"max_tokens"`},
		{"/model/c/converse-stream", `{"messages":[{"role":"user","content":[{"text":"some words"}]}]}`, all, `"stopReason":"end_turn"`},
		{"/model/c/invoke", `{"prompt":"some words","max_gen_len":70}`, all, `"stop_reason":"length"`},
		{"/model/c/invoke", `{"anthropic_version":"b","max_tokens":99,"messages":[{"content":"some words"}]}`, all, `"stop_reason":"end_turn"`},
	} {
		t.Run(c.path, func(t *testing.T) {
			s := mustNew(t, Config{Provider: SelfHosted})
			res := post(s, c.path, c.body, used).Result()
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusOK, res.StatusCode)
			body := post(s, c.path, c.body, used).Body.Bytes()
			if strings.HasSuffix(c.path, "converse-stream") {
				body = jsonOfEvents(t, body)
				res.Header.Set("Content-Type", "application/x-ndjson")
			}
			require.Equal(t, c.want, readUsage(res, body), "%s", body)
			require.Contains(t, string(body), c.ends)
			require.Contains(t, string(body), "words")
		})
	}
}

// An embedding has one vector for each input, in order, and a request for each where the provider counts so.
func TestEmbeddings(t *testing.T) {
	for _, c := range []struct {
		path, body string
		config     Config
		vectors    int
		requests   int
	}{
		{"/v1/embeddings", `{"input":["aaaa","bbbb","cccc"],"model":"e"}`, Config{}, 3, 1},
		{"/v1/embeddings", `{"input":"aaaa"}`, Config{}, 1, 1},
		{"/v1/embeddings", `{"input":["aaaa","bbbb"]}`, Config{Provider: SelfHosted, CountInputs: true}, 2, 2},
		{
			"/v1beta/models/e:batchEmbedContents",
			`{"requests":[{"model":"models/e","content":{"parts":[{"text":"aaaa"}]}},{"content":{"parts":[{"text":"bbbb"}]}}]}`,
			Config{Provider: Gemini},
			2, 2,
		},
		{"/v1beta/models/e:embedContent", `{"content":{"parts":[{"text":"aaaa"}]}}`, Config{Provider: Gemini}, 1, 1},
	} {
		t.Run(c.path, func(t *testing.T) {
			s := mustNew(t, c.config)
			w := post(s, c.path, c.body, Usage{})
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			require.Equal(t, c.vectors, strings.Count(w.Body.String(), "[0"))
			st := s.Stats()
			require.Equal(t, c.requests, st.Charged.Requests)
			require.Equal(t, Usage{Input: c.vectors}, st.Usage)
			first := strings.Index(w.Body.String(), `0.8`)
			require.Positive(t, first)
		})
	}
	require.NotEqual(t, vector("a"), vector("b"))
}

// A call for embeddings that is too large is refused, with the provider's code.
func TestEmbeddingsAboveTheLimitsOfACall(t *testing.T) {
	inputs := func(n, bytes int) string {
		body, err := json.Marshal(object{"input": strings.Split(strings.Repeat(strings.Repeat("a", bytes)+" ", n), " ")[:n]})
		require.NoError(t, err)
		return string(body)
	}
	for _, c := range []struct {
		n, bytes int
		status   int
		code     string
	}{
		{2048, 4, http.StatusOK, ""},
		{2049, 4, http.StatusBadRequest, "too many"},
		{1200, 1000, http.StatusOK, ""},
		{1201, 1000, http.StatusBadRequest, "max_tokens_per_request"},
		{1, 32_768, http.StatusOK, ""},
		{1, 32_769, http.StatusBadRequest, "context_length_exceeded"},
	} {
		w := post(mustNew(t, Config{}), "/v1/embeddings", inputs(c.n, c.bytes), Usage{})
		require.Equal(t, c.status, w.Code)
		require.Contains(t, w.Body.String(), c.code)
	}
}

// Errors have the form of the endpoint, and of Gemini and Bedrock everywhere.
func TestErrorsOfEachDialect(t *testing.T) {
	for _, c := range []struct {
		provider   Provider
		path, body string
		want       string
		errorType  string
	}{
		{
			OpenAI, "/v1/responses", `{}`,
			`{"error":{"code":null,"message":"The request is no JSON, or has no input.","param":null,"type":"invalid_request_error"}}`, "",
		},
		{
			Anthropic, "/v1/messages", `{"messages":[{"content":"a"}]}`,
			`{"type":"error","request_id":"req_fake","error":{"type":"invalid_request_error","message":"max_tokens: Field required"}}`, "",
		},
		{
			Gemini, "/v1/chat/completions", `{}`,
			`{"error":{"code":400,"message":"The request is no JSON, or has no messages.","status":"INVALID_ARGUMENT"}}`, "",
		},
		{
			SelfHosted, "/v1beta/models/g:generateContent", `{"contents":[]}`,
			`{"error":{"code":400,"message":"The request is no JSON, or has no contents.","status":"INVALID_ARGUMENT"}}`, "",
		},
		{SelfHosted, "/model/c/converse", `{`, `{"message":"The request is no JSON, or has no messages."}`, "ValidationException"},
	} {
		w := post(mustNew(t, Config{Provider: c.provider}), c.path, c.body, Usage{})
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.JSONEq(t, c.want, w.Body.String())
		require.Equal(t, c.errorType, w.Header().Get("X-Amzn-Errortype"))
	}
}

// The page of the statistics is the JSON of Stats.
func TestStatsPage(t *testing.T) {
	s := mustNew(t, Config{Provider: Anthropic, Prices: Prices{Input: "4"}})
	require.Equal(t, http.StatusOK, post(s, "/v1/chat/completions", chatOf(400, 10), Usage{Input: 7, Output: 1}).Code)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/stats", http.NoBody)
	require.NoError(t, err)
	w := &recorder{header: http.Header{}}
	s.ServeHTTP(w, r)
	var st Stats
	require.NoError(t, json.Unmarshal(w.body.Bytes(), &st))
	require.Equal(t, s.Stats(), st)
	require.Equal(t, int64(32), st.Millionths)
	require.Equal(t, Amounts{1, 7, 1, 8}, st.Charged)
}

// A recorder keeps a body.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorder) WriteHeader(int)             {}
