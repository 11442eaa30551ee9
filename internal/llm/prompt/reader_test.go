package prompt_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
)

// A reading is a request whose body is read up to a place.
type reading struct {
	*prompt.Reader
	rest int64
}

func (r reading) size() prompt.Size { return r.Size(r.rest) }

// read reads the first bytes of the body of a request.
func read(t testing.TB, path, contentType, body string, bytes int) reading {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://h"+path, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	scanner := &costrule.Scanner{Keep: 2048}
	r := prompt.NewReader(req, []byte(body[:bytes]), scanner, prompt.Media{})
	scanner.Value = r.Value
	r.Feed([]byte(body[:bytes]))
	return reading{r, int64(len(body) - bytes)}
}

func sizeOf(t testing.TB, path, body string) prompt.Size {
	t.Helper()
	return read(t, path, "application/json", body, len(body)).size()
}

func TestHowLongAnAnswerMayBe(t *testing.T) {
	for body, want := range map[string]int64{
		`{}`: 0, `{"max_tokens":8000.0}`: 8000, `{"max_tokens":"8000"}`: 8000, `{"maxTokens":8e3}`: 8000, `{"max_completion_tokens":10,"max_tokens":9}`: 10,
		`{"max_new_tokens":10}`: 10, `{"parameters":{"max_new_tokens":10}}`: 10, `{"parameters":{"maxOutputTokens":10,"candidateCount":2}}`: 20,
		`{"options":{"num_predict":10}}`: 10, `{"options":{"num_predict":-1}}`: 0, `{"inferenceConfig":{"maxTokens":10}}`: 10,
		`{"inference_config":{"max_tokens":10}}`: 10, `{"generation_config":{"max_output_tokens":10,"candidate_count":3}}`: 30,
		`{"generationConfig":{"maxOutputTokens":10,"candidateCount":3}}`: 30, `{"max_tokens":10,"n":3}`: 30, `{"max_tokens":10,"n":3,"best_of":5}`: 50,
		`{"max_tokens":10,"n":1000}`: 10_000, `{"textGenerationConfig":{"maxTokenCount":10}}`: 10, `{"max_tokens_to_sample":10}`: 10, `{"max_gen_len":10}`: 10,
		`{"max_tokens":null}`: 0, `{"max_tokens":0}`: 0, `{"max_tokens":99999999999}`: prompt.Most, `{"max_tokens":1e9,"n":1e9}`: prompt.Most,
		`{"metadata":{"max_tokens":10}}`: 0, `{"tools":[{"max_tokens":10}]}`: 0, `{"max_tokens":[10]}`: 0,
	} {
		s := sizeOf(t, "/v1/chat", body)
		require.Equal(t, want, s.Answer, body)
		require.False(t, s.Silent)
	}
	for _, body := range []string{`{"max_tokens":"5_000"}`, `{"max_tokens":"` + strings.Repeat("5", 5000) + `"}`} {
		require.Equal(t, "max_tokens", read(t, "/v1/chat", "application/json", body, len(body)).Unreadable())
	}
	require.Empty(t, read(t, "/", "application/json", `{"max_tokens":"auto"}`, 21).Unreadable())
}

func TestCallsWithoutAText(t *testing.T) {
	body := `{"input":"0123456789012345"}`
	for path, want := range map[string]bool{
		"/v1/embeddings": true, "/v1/embeddings/": true, "/api/embed": true, "/v1beta/models/gemini-embedding-001:embedContent": true,
		"/v1beta/models/x:batchEmbedContents": true, "/model/amazon.titan-embed-text-v2:0/invoke": true, "/v1/rerank": true, "/v1/moderations": true,
		"/v1beta/models/gemini-pro:countTokens": true, "/v1/messages/count_tokens": true,
		"/v1/chat/completions": false, "/embed/chat": false, "/embed/../v1/chat": false, "/v1/chat/../embed": false,
		"/deployments/embed/chat/completions": false, "/v1beta/models/gemini-embedding-001:generateContent": false, "/v1//embed": false,
	} {
		s := sizeOf(t, path, body)
		require.Equal(t, want, s.Silent, path)
		require.Equal(t, int64(16), s.Bytes, path)
	}
	req, err := http.NewRequest(http.MethodGet, "http://h/v1/models", http.NoBody)
	require.NoError(t, err)
	r := prompt.NewReader(req, nil, &costrule.Scanner{}, prompt.Media{})
	require.Equal(t, prompt.Size{Silent: true, Inputs: 1}, r.Size(0))
}

// Only what the model reads counts, in bytes and characters of the text itself, whatever the API.
func TestWhatAModelReads(t *testing.T) {
	const text = "Wie ist das Wetter in Zürich? \u6771\u4eac\u306f\uff1f"
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		return string(b)
	}
	q := quoted(text)
	for name, tc := range map[string]struct {
		body  string
		texts int
		more  int64 // bytes of tools and the like at most
	}{
		"OpenAI chat": {`{"model":"gpt-4o","user":"someone","messages":[{"role":"system",` +
			`"content":` + q + `},{"role":"user","content":[{"type":"text","text":` +
			q + `}]}],"stream":true,"stop":["\n\n"],"metadata":{"a":"bbbb"}}`, 2, 0},
		"OpenAI responses": {`{"model":"gpt-4o","instructions":` + q + `,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":` +
			q + `}]}],"previous_response_id":"resp_123","store":false}`, 2, 0},
		"the same as a text": {`{"model":"gpt-4o","input":` + q + `}`, 1, 0},
		"Anthropic": {`{"model":"claude","max_tokens":9,"system":[{"type":"text","text":` + q + `,"cache_control":{"type":"ephemeral","ttl":"1h"}}],` +
			`"messages":[{"role":"user","content":` + q + `},{"role":"assistant","content":[{"type":"thinking","thinking":` + q +
			`,"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}]}]}`, 3, 0},
		"Gemini": {`{"systemInstruction":{"parts":[{"text":` + q + `}]},"contents":[{"role":"user","parts":[{"text":` + q + `}]}],` +
			`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_ONLY_HIGH"}]}`, 2, 0},
		"Bedrock": {`{"system":[{"text":` + q + `}],"messages":[{"role":"user",` +
			`"content":[{"text":` + q + `},{"cachePoint":{"type":"default"}}]}]}`, 2, 0},
		"Bedrock invoke": {`{"anthropic_version":"bedrock-2023-05-31","max_tokens":7,"messages":[{"role":"user","content":` + q + `}]}`, 1, 0},
		"Titan, Llama":   {`{"inputText":` + q + `,"prompt":` + q + `}`, 2, 0},
		"Cohere":         {`{"model":"embed-v4.0","input_type":"search_document","embedding_types":["float"],"texts":[` + q + `,` + q + `]}`, 2, 0},
		"tools": {`{"messages":[{"role":"user","content":` + q + `}],"tools":[{"type":"function","function":{"name":"weather","description":` + q +
			`,"parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`, 2, 150},
		"a tool's arguments": {`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"weather",` +
			`"input":{"city":` + q + `}}]}]}`, 1, 30},
	} {
		t.Run(name, func(t *testing.T) {
			s := sizeOf(t, "/v1/x", tc.body)
			require.GreaterOrEqual(t, s.Bytes, int64(tc.texts*len(text)))
			require.LessOrEqual(t, s.Bytes, int64(tc.texts*len(text))+tc.more)
			require.Equal(t, s.Bytes-s.Chars, int64(tc.texts*(len(text)-len([]rune(text)))))
			require.Zero(t, s.Tokens)
		})
	}
	require.Equal(t, "gpt-4o", sizeOf(t, "/", `{"model":"gpt-4o"}`).Model)
	require.Empty(t, sizeOf(t, "/", `{"model":"`+strings.Repeat("a", 300)+`"}`).Model)
}

func TestInputsOfACallForEmbeddings(t *testing.T) {
	for body, want := range map[string]prompt.Size{
		`{"input":"hello"}`:                       {Inputs: 1, Bytes: 5},
		`{"input":["hello","you"]}`:               {Inputs: 2, Bytes: 8},
		`{"input":[15339,11]}`:                    {Inputs: 1, Tokens: 2},
		`{"input":[[15339,11],[1917]]}`:           {Inputs: 2, Tokens: 3},
		`{"texts":["a","b","c"],"model":"x"}`:     {Inputs: 3, Bytes: 3},
		`{"inputs":[{"content":[{"text":"a"}]}]}`: {Inputs: 1, Bytes: 1},
		`{"requests":[{"content":{"parts":[{"text":"ab"}]}},{"content":{"parts":[{"text":"c"}]}}]}`: {Inputs: 2, Bytes: 3},
	} {
		s := sizeOf(t, "/v1/embed", body)
		s.Chars, s.Model, want.Silent = 0, "", true
		require.Equal(t, want, s, body)
	}
	require.Equal(t, int64(1), sizeOf(t, "/v1/chat/completions", `{"input":["a","b"]}`).Inputs, "no call for embeddings")
	require.Equal(t, int64(1), sizeOf(t, "/v2/rerank", `{"documents":["a","b"]}`).Inputs)
}

// A body that comes in pieces has the same size; of one that is not read to its end, the rest is taken for text.
func TestPieces(t *testing.T) {
	body := fmt.Sprintf(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("höllo world ", 50))
	whole := sizeOf(t, "/", body)
	for _, cut := range []int{0, 1, 20, 70, 100, 300, len(body)} {
		r := read(t, "/", "application/json", body[:cut], cut)
		require.InDelta(t, whole.Bytes, r.Size(int64(len(body)-cut)).Bytes, 80)
		r.Feed([]byte(body[cut:]))
		require.Equal(t, whole, r.Size(0))
	}
}

func BenchmarkReader(b *testing.B) {
	for name, body := range map[string]string{
		"text":   fmt.Sprintf(`{"messages":[{"content":%q}]}`, strings.Repeat("hello world ", 80_000)),
		"image":  `{"images":["` + encoded(png, 700_000) + `"]}`,
		"tokens": `{"input":[` + strings.Repeat("12345,", 160_000) + `1]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_ = sizeOf(b, "/v1/embeddings", body)
			}
		})
	}
}

// A limit on the answer counts however it is written, and a call is one for embeddings only where its path can mean nothing else.
func TestWaysToHideAnAnswer(t *testing.T) {
	zeros := strings.Repeat("0", 100)
	body := `{"max_tokens":"` + zeros + `90000"}`
	require.Equal(t, int64(90_000), sizeOf(t, "/", body).Answer)
	for _, name := range []string{"max_tokenſ", "max_to\u212aens", "MAX_TOKENS", `max\u005ftokens`} {
		body := `{"` + name + `":90000}`
		require.Equal(t, int64(90_000), sizeOf(t, "/", body).Answer, name)
	}
	form := "--x\r\nContent-Disposition: form-data; name=max_tokens\r\n\r\n" + zeros + "90000\r\n--x--\r\n"
	require.Equal(t, int64(90_000), read(t, "/", "multipart/form-data; boundary=x", form, len(form)).size().Answer)
	for path, want := range map[string]bool{
		"/v1/embeddings": true, "/v1/embeddings/": true, "/model/titan-embed-text-v2:0/invoke": true,
		"/v1/chat/completions;embeddings": false, "/v1/chat/completions\x00embed": false,
		"/v1/chat/completions%3Bembed": false, "/v1/chat/completions/../embeddings": false,
		"//v1/embeddings": false, "/v1/chat/completions embed": false, `/v1\embeddings`: false,
	} {
		req := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}, Header: http.Header{}}
		require.Equal(t, want, prompt.NewReader(req, nil, &costrule.Scanner{}, prompt.Media{}).Size(0).Silent, path)
	}
}
