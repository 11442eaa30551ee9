package httpproxy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// estimate is what a request draws at first, of whose body so much is read.
func estimate(t *testing.T, path, contentType, body string, read int) *message {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://h"+path, nil)
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	req.ContentLength = int64(len(body))
	return &message{req: req, body: []byte(body[:read]), whole: read == len(body), estimates: true}
}

func drawn(t *testing.T, m *message) int {
	t.Helper()
	n, err := llmDraw(m)
	require.NoError(t, err)
	return n
}

func TestHowLongAnAnswerMayBe(t *testing.T) {
	for body, want := range map[string]int{
		`{}`: 1024, `{"max_tokens":8000.0}`: 8000, `{"max_tokens":"8000"}`: 8000, `{"maxTokens":8e3}`: 8000, `{"max_completion_tokens":10,"max_tokens":9}`: 10,
		`{"max_new_tokens":10}`: 10, `{"parameters":{"max_new_tokens":10}}`: 10, `{"parameters":{"maxOutputTokens":10,"candidateCount":2}}`: 20,
		`{"options":{"num_predict":10}}`: 10, `{"options":{"num_predict":-1}}`: 1024, `{"inferenceConfig":{"maxTokens":10}}`: 10,
		`{"inference_config":{"max_tokens":10}}`: 10, `{"generation_config":{"max_output_tokens":10,"candidate_count":3}}`: 30,
		`{"generationConfig":{"maxOutputTokens":10,"candidateCount":3}}`: 30, `{"max_tokens":10,"n":3}`: 30, `{"max_tokens":10,"n":3,"best_of":5}`: 50,
		`{"max_tokens":10,"n":1000}`: 10_000, `{"textGenerationConfig":{"maxTokenCount":10}}`: 10, `{"max_tokens_to_sample":10}`: 10, `{"max_gen_len":10}`: 10,
		`{"max_tokens":null}`: 1024, `{"max_tokens":0}`: 1024, `{"max_tokens":99999999999}`: costrule.Ungrantable,
		`{"max_tokens":1e9,"n":1e9}`:     costrule.Ungrantable,
		`{"metadata":{"max_tokens":10}}`: 1024, `{"tools":[{"max_tokens":10}]}`: 1024, `{"max_tokens":[10]}`: 1024,
	} {
		got := drawn(t, estimate(t, "/v1/chat", "application/json", body, len(body)))
		require.Equal(t, min(want+len(body)/bytesPerToken, costrule.Ungrantable), got, body)
	}
}

func TestNoAnswerIsDrawnWhereNoneComes(t *testing.T) {
	body := `{"input":"0123456789012345"}`
	for path, want := range map[string]int{
		"/v1/embeddings": 7, "/v1/embeddings/": 7, "/api/embed": 7, "/v1beta/models/gemini-embedding-001:embedContent": 7,
		"/v1beta/models/x:batchEmbedContents": 7, "/model/amazon.titan-embed-text-v2:0/invoke": 7, "/v1/rerank": 7, "/v1/moderations": 7,
		"/v1beta/models/gemini-pro:countTokens": 7, "/v1/messages/count_tokens": 7,
		"/v1/chat/completions": 1031, "/embed/chat": 1031, "/embed/../v1/chat": 1031, "/v1/chat/../embed": 1031, "/deployments/embed/chat/completions": 1031,
		"/v1beta/models/gemini-embedding-001:generateContent": 1031, "/v1//embed": 1031,
	} {
		require.Equal(t, want, drawn(t, estimate(t, path, "application/json", body, len(body))), path)
	}
	m := estimate(t, "/v1/models", "", "", 0)
	m.req.Method = http.MethodGet
	require.Equal(t, 1, drawn(t, m))
}

var (
	png  = "\x89PNG\r\n\x1a\n"
	jpeg = "\xff\xd8\xff\xe0"
)

// encoded is a file of a size in base64.
func encoded(head string, size int) string {
	return base64.StdEncoding.EncodeToString([]byte(head + strings.Repeat("\x00\xc7", (size-len(head))/2)))
}

func TestMediaAreNoText(t *testing.T) {
	words := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("hello world ", 10_000)))
	escaped := strings.ReplaceAll(encoded(png, 300_000), "/", `\/`)
	picture, song, paper := encoded(png, 300_000), encoded("ID3", 800_000), encoded("%PDF-1.7", 300_000)
	for name, c := range map[string]struct {
		body        string
		least, most int
	}{
		"image_url":   {`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture + `"}}]}]}`, 1100, 1400},
		"input_image": {`{"input":[{"content":[{"type":"input_image","image_url":"data:image\/png;base64,` + escaped + `"}]}]}`, 1100, 1400},
		"anthropic": {
			`{"m":[{"content":[{"source":{"type":"base64","media_type":"image/jpeg","data":"` + encoded(jpeg, 300_000) + `"}}]}]}`, 1100, 1400,
		},
		"gemini":               {`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + picture + `"}}]}]}`, 1100, 1400},
		"ollama":               {`{"images":["` + picture + `","` + picture + `"]}`, 2300, 2600},
		"bedrock":              {`{"messages":[{"content":[{"image":{"format":"x","source":{"bytes":"` + encoded("??", 300_000) + `"}}}]}]}`, 1100, 7000},
		"unpadded, other kind": {`{"image":"` + strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(picture), "=") + `"}`, 1100, 1400},
		"remote":               {`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://h/a.png"}}]}]}`, 1100, 1400},
		"audio":                {`{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + song + `","format":"mp3"}}]}]}`, 700, 900},
		"wav without a head":   {`{"input_audio":{"data":"` + encoded("????", 800_000) + `"}}`, 700, 900},
		"pdf":                  {`{"content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,` + paper + `"}}]}`, 5000, 7000},
		"text in base64":       {`{"source":{"type":"base64","media_type":"text/plain","data":"` + words + `"}}`, 29_000, 31_000},
		// What a model reads is text, whatever it looks like.
		"prompt":     {`{"messages":[{"content":"` + picture + `"}]}`, 99_000, 101_000},
		"data URL":   {`{"messages":[{"content":"data:image/png;base64,` + picture + `"}]}`, 99_000, 101_000},
		"plain data": {`{"data":"` + strings.Repeat("hello world ", 10_000) + `"}`, 29_000, 31_000},
		"no base64":  {`{"url":"data:text/plain,` + strings.Repeat("helloworld", 10_000) + `"}`, 24_000, 26_000},
		"a URL":      {`{"url":"data:image/png;base64,` + picture + ` and a question"}`, 99_000, 101_000},
	} {
		t.Run(name, func(t *testing.T) {
			m := estimate(t, "/v1/embeddings", "application/json", c.body, len(c.body))
			got := drawn(t, m)
			require.GreaterOrEqual(t, got, c.least)
			require.LessOrEqual(t, got, c.most)
			if len(c.body) < 100_000 {
				return
			}
			// Of a longer body the rest is taken to be like its last part, and counted when it has passed.
			long := estimate(t, "/v1/embeddings", "application/json", c.body, 50_000)
			if name != "ollama" && name != "a URL" { // whose last parts are others
				require.InEpsilon(t, got, drawn(t, long), 0.1)
			}
			long.facts().feed([]byte(c.body[50_000:]))
			require.Equal(t, got, long.facts().llm.estimate(0))
		})
	}
}

func TestFormsAndFiles(t *testing.T) {
	song := "ID3" + strings.Repeat("\x00\xc7", 402_000)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	require.NoError(t, w.WriteField("model", "whisper-1"))
	require.NoError(t, w.WriteField("max_tokens", "50"))
	part, err := w.CreateFormFile("file", "a.mp3")
	require.NoError(t, err)
	_, err = part.Write([]byte(song))
	require.NoError(t, err)
	require.NoError(t, w.WriteField("prompt", "hello"))
	require.NoError(t, w.Close())
	kind := w.FormDataContentType()
	got := drawn(t, estimate(t, "/v1/audio/transcriptions", kind, form.String(), form.Len()))
	require.InDelta(t, 804+50+200, got, 100, "instead of 201,114")
	long := estimate(t, "/v1/audio/transcriptions", kind, form.String(), 50_000)
	require.InDelta(t, got, drawn(t, long), 100)
	long.facts().feed(form.Bytes()[50_000:])
	require.InDelta(t, got, long.facts().llm.estimate(0), 100)

	require.InDelta(t, 804+1024, drawn(t, estimate(t, "/models/whisper", "audio/mpeg", song, len(song))), 10)
	require.InDelta(t, 804+1024, drawn(t, estimate(t, "/models/whisper", "audio/mpeg", song, 10_000)), 10)
	// Some services read JSON whatever its type.
	prompt := `{"prompt":"` + strings.Repeat("hello ", 100_000) + `"}`
	for _, kind := range []string{"audio/mpeg", "multipart/form-data; boundary=x", "image/png", "application/octet-stream", ""} {
		require.Equal(t, len(prompt)/4+1024, drawn(t, estimate(t, "/api/generate", kind, prompt, len(prompt))), kind)
	}
	words := strings.Repeat("hello ", 1000)
	require.Equal(t, 1500+1024, drawn(t, estimate(t, "/", "text/plain", words, len(words))))
	require.Equal(t, 1500+1024, drawn(t, estimate(t, "/", "audio/mpeg", words, len(words))), "it is text")
}

// A body is read once, whatever rules there are.
func TestABodyIsReadOnce(t *testing.T) {
	m := estimate(t, "/", "application/json", `{"model":"a","user":{"id":7},"max_tokens":5}`, 44)
	m.paths = []costrule.Path{{"model"}, {"user", "id"}}
	first := m.facts()
	v, ok, _ := m.field(costrule.Path{"user", "id"})
	require.True(t, ok)
	require.Equal(t, "7", v.Text())
	require.Equal(t, 44/4+5, drawn(t, m))
	require.Same(t, first, m.facts())
}

func BenchmarkEstimate(b *testing.B) {
	for name, body := range map[string]string{
		"text":   fmt.Sprintf(`{"messages":[{"content":%q}]}`, strings.Repeat("hello world ", 80_000)),
		"image":  `{"images":["` + encoded(png, 700_000) + `"]}`,
		"tokens": `{"input":[` + strings.Repeat("12345,", 160_000) + `1]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest(http.MethodPost, "http://h/", http.NoBody)
				m := &message{req: req, body: []byte(body), whole: true, estimates: true}
				_, _ = llmDraw(m)
			}
		})
	}
}
