package prompt_test

import (
	"bytes"
	"encoding/base64"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
		tokens      int64 // of media
		bytes, more int64 // of text, from and to
	}{
		"image_url":   {`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture + `"}}]}]}`, 1600, 0, 0},
		"input_image": {`{"input":[{"content":[{"type":"input_image","image_url":"data:image\/png;base64,` + escaped + `"}]}]}`, 1600, 0, 0},
		"anthropic": {
			`{"messages":[{"content":[{"source":{"type":"base64","media_type":"image/jpeg","data":"` + encoded(jpeg, 300_000) + `"}}]}]}`, 1600, 0, 0,
		},
		"gemini":               {`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + picture + `"}}]}]}`, 1600, 0, 0},
		"ollama":               {`{"images":["` + picture + `","` + picture + `"]}`, 3200, 0, 0},
		"bedrock":              {`{"messages":[{"content":[{"image":{"format":"x","source":{"bytes":"` + encoded("??", 300_000) + `"}}}]}]}`, 6001, 0, 0},
		"unpadded, other kind": {`{"image":"` + strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(picture), "=") + `"}`, 1600, 0, 0},
		"remote":               {`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://h/a.png"}}]}]}`, 1600, 0, 0},
		"audio":                {`{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + song + `","format":"mp3"}}]}]}`, 801, 0, 0},
		"wav without a head":   {`{"input_audio":{"data":"` + encoded("????", 800_000) + `"}}`, 801, 0, 0},
		"pdf":                  {`{"content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,` + paper + `"}}]}`, 6001, 0, 0},
		"text in base64":       {`{"source":{"type":"base64","media_type":"text/plain","data":"` + words + `"}}`, 30_000, 0, 0},
		// What a model reads is text, whatever it looks like.
		"prompt":     {`{"messages":[{"content":"` + picture + `"}]}`, 0, 400_000, 400_000},
		"data URL":   {`{"messages":[{"content":"data:image/png;base64,` + picture + `"}]}`, 0, 400_000, 400_022},
		"plain data": {`{"data":"` + strings.Repeat("hello world ", 10_000) + `"}`, 0, 120_000, 120_000},
		"no base64":  {`{"url":"data:text/plain,` + strings.Repeat("helloworld", 10_000) + `"}`, 0, 100_000, 100_016},
		"a URL":      {`{"url":"data:image/png;base64,` + picture + ` and a question"}`, 0, 400_000, 400_040},
	} {
		t.Run(name, func(t *testing.T) {
			got := sizeOf(t, "/v1/embeddings", c.body)
			require.InDelta(t, c.tokens, got.Tokens, 2)
			require.GreaterOrEqual(t, got.Bytes, c.bytes)
			require.LessOrEqual(t, got.Bytes, c.more)
			if len(c.body) < 100_000 {
				return
			}
			// Of a longer body the rest is taken to be like its last part, and counted when it has passed.
			long := read(t, "/v1/embeddings", "application/json", c.body, 50_000)
			if name != "ollama" && name != "a URL" { // whose last parts are others
				require.InDelta(t, got.Tokens, long.size().Tokens, 10)
				require.InDelta(t, got.Bytes, long.size().Bytes, 50)
			}
			long.Feed([]byte(c.body[50_000:]))
			require.Equal(t, got, long.Size(0))
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
	const path = "/v1/audio/transcriptions"
	got := read(t, path, kind, form.String(), form.Len()).size()
	require.InDelta(t, 805, got.Tokens, 1, "instead of 201,114")
	require.InDelta(t, 16, got.Bytes, 0)
	require.Equal(t, int64(50), got.Answer)
	long := read(t, path, kind, form.String(), 50_000)
	require.InDelta(t, got.Tokens, long.size().Tokens, 2)
	long.Feed(form.Bytes()[50_000:])
	require.InDelta(t, got.Tokens, long.Size(0).Tokens, 2)
	require.InDelta(t, got.Bytes, long.Size(0).Bytes, 10)

	require.InDelta(t, 805, read(t, "/models/whisper", "audio/mpeg", song, len(song)).size().Tokens, 1)
	require.InDelta(t, 805, read(t, "/models/whisper", "audio/mpeg", song, 10_000).size().Tokens, 1)
	// Some services read JSON whatever its type.
	prompt := `{"prompt":"` + strings.Repeat("hello ", 100_000) + `"}`
	for _, kind := range []string{"audio/mpeg", "multipart/form-data; boundary=x", "image/png", "application/octet-stream", ""} {
		require.Equal(t, int64(600_000), read(t, "/api/generate", kind, prompt, len(prompt)).size().Bytes, kind)
	}
	words := strings.Repeat("hällo ", 1000)
	s := read(t, "/", "text/plain", words, len(words)).size()
	require.Equal(t, int64(7000), s.Bytes)
	require.Equal(t, int64(6000), s.Chars)
	require.Equal(t, int64(7000), read(t, "/", "audio/mpeg", words, len(words)).size().Bytes, "it is text")
}
