package prompt_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
)

// each is a Media in which sizes are exact.
var each = prompt.Media{ImageTokens: 1000, AudioBytesPerToken: 1, FileBytesPerToken: 1}

// readEach reads the first bytes of a body, whose media cost what each says.
func readEach(t *testing.T, contentType, body string, bytes int) reading {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/v1/x", strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	scanner := &costrule.Scanner{Keep: 2048}
	r := prompt.NewReader(req, []byte(body[:bytes]), scanner, each)
	scanner.Value = r.Value
	r.Feed([]byte(body[:bytes]))
	return reading{r, int64(len(body) - bytes)}
}

// The medium of a body that is not JSON is that of its content; its type says only what the content leaves open.
func TestBodiesThatAreNotJSON(t *testing.T) {
	const size = 900
	binary := func(head string) string { return head + strings.Repeat("\x00\x01", (size-len(head))/2) }
	text := prompt.Size{Bytes: size, Chars: size, Inputs: 1}
	tokens := func(n int64) prompt.Size { return prompt.Size{Tokens: n, Inputs: 1} }
	for name, tc := range map[string]struct {
		contentType, body string
		want              prompt.Size
	}{
		"an image":                        {"image/x-raw", binary("?!"), tokens(1000)},
		"a sound":                         {"audio/x-raw", binary("?!"), tokens(size + 1)},
		"a video":                         {"video/x-raw", binary("?!"), tokens(size + 1)},
		"a paper":                         {"application/pdf", binary("?!"), tokens(size + 1)},
		"a file":                          {"application/octet-stream", binary("?!"), tokens(size + 1)},
		"an image in a file":              {"application/octet-stream", binary(png), tokens(1000)},
		"bytes that are said to be text":  {"text/plain", binary("?!"), text},
		"bytes of another type":           {"application/x-protobuf", binary("?!"), text},
		"bytes of no type":                {"", binary("?!"), text},
		"a text that is said to be else":  {"image/png", strings.Repeat("hello ", size/6), text},
		"a form without a boundary":       {"multipart/form-data", binary("?!"), text},
		"a text with a boundary":          {"text/plain; boundary=x", strings.Repeat("hello ", size/6), text},
		"characters of two bytes":         {"text/plain", strings.Repeat("é", size/2), prompt.Size{Bytes: size, Chars: size / 2, Inputs: 1}},
		"JSON behind white space":         {"audio/mpeg", " \t\r\n" + `{"prompt":"hello"}`, prompt.Size{Bytes: 5, Chars: 5, Inputs: 1}},
		"JSON behind a mark":              {"audio/mpeg", "\ufeff" + `{"prompt":"hello"}`, prompt.Size{Bytes: 5, Chars: 5, Inputs: 1}},
		"JSON whose first byte is a list": {"audio/mpeg", `["hello"]`, prompt.Size{Bytes: 5, Chars: 5, Inputs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, head := range []int{len(tc.body), min(600, len(tc.body))} {
				got := readEach(t, tc.contentType, tc.body, head)
				require.Equal(t, strings.Contains(name, "JSON"), got.IsJSON())
				if tc.want.Bytes == tc.want.Chars { // else the rest is taken for bytes
					require.Equal(t, tc.want, got.size())
				}
				got.Feed([]byte(tc.body[head:]))
				require.Equal(t, tc.want, got.Size(0))
			}
		})
	}
}

// form is a form of parts, which are headers besides Content-Disposition and a content each.
func form(parts ...[3]string) (text string) {
	for _, p := range parts {
		text += "--x\r\nContent-Disposition: form-data; " + p[0] + "\r\n"
		if p[1] != "" {
			text += "Content-Type: " + p[1] + "\r\n"
		}
		text += "\r\n" + p[2] + "\r\n"
	}
	return text + "--x--\r\n"
}

func TestPartsOfForms(t *testing.T) {
	const kind = "multipart/form-data; boundary=x"
	binary := "?" + strings.Repeat("\x00\x01", 100)
	for name, tc := range map[string]struct {
		part [3]string
		want prompt.Size
	}{
		"a field":           {[3]string{`name="prompt"`, "", "hällo"}, prompt.Size{Bytes: 6, Chars: 5}},
		"an image":          {[3]string{`name="image"; filename="a"`, "", binary}, prompt.Size{Tokens: 1000}},
		"a sound":           {[3]string{`name="x"; filename="a"`, "audio/mp3", binary}, prompt.Size{Tokens: 202}},
		"a file":            {[3]string{`name="x"; filename="a"`, "", binary}, prompt.Size{Tokens: 202}},
		"text of a file":    {[3]string{`name="x"; filename="a"`, "", "hello"}, prompt.Size{Bytes: 5, Chars: 5}},
		"a typed field":     {[3]string{`name="image"`, "image/png", png}, prompt.Size{Tokens: 1000}},
		"bytes of a field":  {[3]string{`name="image"`, "", binary}, prompt.Size{Bytes: 201, Chars: 201}},
		"a field of a text": {[3]string{`name="image"`, "text/plain", binary}, prompt.Size{Bytes: 201, Chars: 201}},
		"a limit":           {[3]string{`name="max_tokens"`, "", "70"}, prompt.Size{Bytes: 2, Chars: 2, Answer: 70}},
		"no limit of a file": {
			[3]string{`name="max_tokens"; filename="a"`, "image/png", png + "70"},
			prompt.Size{Tokens: 1000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := form(tc.part)
			tc.want.Inputs = 1
			require.Equal(t, tc.want, readEach(t, kind, body, len(body)).size())
			body += "what follows a form"
			require.Equal(t, tc.want, readEach(t, kind, body, len(body)).size())
		})
	}
	for length, want := range map[int]string{511: "", 512: "max_tokens"} {
		text := form([3]string{`name="max_tokens"`, "", strings.Repeat("0", length-1) + "5"})
		require.Equal(t, want, readEach(t, kind, text, len(text)).Unreadable())
	}
	digits := form([3]string{`name="max_tokens"`, "", strings.Repeat("0", 600) + "5_000"})
	require.Equal(t, "max_tokens", readEach(t, kind, digits, len(digits)).Unreadable())

	// Of a part that is under way the rest is like its beginning.
	for _, tc := range [][3]string{{`name="prompt"`, "", "\u00e9"}, {`name="x"; filename="a"`, "audio/mp3", "\x00"}} {
		content := strings.Repeat(tc[2], 5000)
		body := form([3]string{`name="model"`, "", "gpt"}, [3]string{tc[0], tc[1], content})
		got := readEach(t, kind, body, 2000)
		head := strings.Index(body, content)
		rest := int64(len(body) - head)
		if tc[1] == "" {
			seen := int64(2000 - head)
			// A character may have been cut, and so may a line that could be a boundary.
			require.InDelta(t, 3+rest, got.size().Bytes, 6)
			require.InDelta(t, 3+seen/2+got.rest, got.size().Chars, 6)
			got.Feed([]byte(body[2000:]))
			require.InDelta(t, 3+rest, got.Size(0).Bytes, 6)
			require.InDelta(t, 3+rest/2, got.Size(0).Chars, 10)
			continue
		}
		require.InDelta(t, rest+1, got.size().Tokens, 6)
		require.Equal(t, int64(3), got.size().Bytes)
		got.Feed([]byte(body[2000:]))
		require.InDelta(t, rest+1, got.Size(0).Tokens, 6)
	}
}

// The medium in a string of base64 is that of its content, else that of its name.
func TestMediaByTheirBeginnings(t *testing.T) {
	coded := func(head string) string {
		return base64.StdEncoding.EncodeToString([]byte(head + strings.Repeat("\x00\x01", 150)))
	}
	for name, tc := range map[string]struct {
		body string
		want prompt.Size
	}{
		"FLAC":                   {`{"data":"` + coded("fLaC??") + `"}`, prompt.Size{Tokens: 307}},
		"MPEG":                   {`{"image":"` + coded("\xff\xe3\x18\xc4??") + `"}`, prompt.Size{Tokens: 307}},
		"no MPEG, by the first":  {`{"image":"` + coded("\xfe\xfb??") + `"}`, prompt.Size{Tokens: 1000}},
		"no MPEG, by the second": {`{"image":"` + coded("\xff\xd0??") + `"}`, prompt.Size{Tokens: 1000}},
		"a name":                 {`{"image":"` + coded("??") + `"}`, prompt.Size{Tokens: 1000}},
		"the name around":        {`{"image":{"data":"` + coded("??") + `"}}`, prompt.Size{Tokens: 1000}},
		"a type":                 {`{"url":"data:image/x;base64,` + coded("??") + `"}`, prompt.Size{Tokens: 1000}},
		"a type of text, wrong":  {`{"url":"data:text/plain;base64,` + coded("????") + `"}`, prompt.Size{Tokens: 307}},
		"no comma":               {`{"url":"data:image/x;base64` + coded("????") + `"}`, prompt.Size{Bytes: 427, Chars: 427}},
		"no base64":              {`{"url":"data:image/x,` + coded("??") + `"}`, prompt.Size{Bytes: 417, Chars: 417}},
		"the shortest":           {`{"image":"` + strings.Repeat("AAAA", 64) + `"}`, prompt.Size{Tokens: 1000}},
		"one too short":          {`{"image":"` + strings.Repeat("AAAA", 63) + `"}`, prompt.Size{Bytes: 252, Chars: 252}},

		"remote":                     {`{"image_url":"https://h/a"}`, prompt.Size{Tokens: 1000}},
		"remote, in image_url":       {`{"image_url":{"url":"https://h/a"}}`, prompt.Size{Tokens: 1000}},
		"remote, in image":           {`{"image":{"url":"https://h/a"}}`, prompt.Size{Tokens: 1000}},
		"remote, in source":          {`{"source":{"url":"https://h/a"}}`, prompt.Size{Tokens: 1000}},
		"remote, in something":       {`{"page":{"url":"https://h/a"}}`, prompt.Size{Bytes: 11, Chars: 11}},
		"another name in image":      {`{"image":{"page":"https://h/a"}}`, prompt.Size{Bytes: 11, Chars: 11}},
		"a text with an address":     {`{"content":"https://h/a"}`, prompt.Size{Bytes: 11, Chars: 11}},
		"an image that is no remote": {`{"image_url":"file:///a/b"}`, prompt.Size{Bytes: 11, Chars: 11}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Inputs = 1
			require.Equal(t, tc.want, readEach(t, "", tc.body, len(tc.body)).size())
		})
	}
}

// What is under way in a body of JSON counts with the rest.
func TestWhatIsUnderWay(t *testing.T) {
	base := strings.Repeat("AAAA", 300)
	const data, mime = `{"file":"`, `data:audio/x;base64,`
	for name, tc := range map[string]struct {
		body string
		rest int64
		want prompt.Size
	}{
		"nothing":                      {`{"content":"h\u00e9"`, 10, prompt.Size{Bytes: 13, Chars: 12}},
		"a text":                       {`{"content":"h\u00e9`, 10, prompt.Size{Bytes: 13, Chars: 12}},
		"the shortest medium":          {`{"image":"` + base[:256], 0, prompt.Size{Tokens: 1000}},
		"a text one byte shorter":      {`{"image":"` + base[:255], 100, prompt.Size{Bytes: 355, Chars: 355}},
		"a short text with its medium": {`{"url":"data:image/x;base64,` + base[:100], 100, prompt.Size{Bytes: 220, Chars: 220}},
		"something behind a medium":    {`{"image":"` + base + `","x":`, 100, prompt.Size{Bytes: 100, Chars: 100, Tokens: 1000}},
		"a file":                       {data + base, 400, prompt.Size{Tokens: 1201}},
		"a file with its type":         {data + mime + base, 400, prompt.Size{Tokens: 1201}},
		"a whole file with its type":   {data + mime + base + `"}`, 0, prompt.Size{Tokens: 901}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Inputs = 1
			require.Equal(t, tc.want, readEach(t, "", tc.body, len(tc.body)).Size(tc.rest))
		})
	}
}

// A request without a body asks for no text; one whose body has a length that isn't known may.
func TestRequestsWithoutABody(t *testing.T) {
	for name, tc := range map[string]struct {
		req  http.Request
		head string
		want bool
	}{
		"no body":                {http.Request{Method: http.MethodGet}, "", true},
		"a body":                 {http.Request{Method: http.MethodPut, ContentLength: 5}, "", false},
		"one of unknown length":  {http.Request{Method: http.MethodPut, ContentLength: -1}, "", false},
		"one with a beginning":   {http.Request{Method: http.MethodPut}, "{}", false},
		"an upgrade":             {http.Request{Method: http.MethodGet, Header: http.Header{"Upgrade": {"websocket"}}}, "", false},
		"a post without a body":  {http.Request{Method: http.MethodPost}, "", false},
		"a deletion of anything": {http.Request{Method: http.MethodDelete}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.req.URL = httptest.NewRequest(http.MethodGet, "/v1/models", http.NoBody).URL
			if tc.req.Header == nil {
				tc.req.Header = http.Header{}
			}
			require.Equal(t, tc.want, prompt.NewReader(&tc.req, []byte(tc.head), &costrule.Scanner{}, prompt.Media{}).Size(0).Silent)
		})
	}
}

func TestWhereLimitsAndModelsStand(t *testing.T) {
	for body, want := range map[string]int64{
		`{"max_tokens":70}`: 70, `{"options":{"max_tokens":70}}`: 70, `{"parameters":{"options":{"max_tokens":70}}}`: 70,
		`{"a":{"options":{"max_tokens":70}}}`: 0, `{"options":{"a":{"max_tokens":70}}}`: 0, `{"options":{"config":{"parameters":{"max_tokens":70}}}}`: 0,
		`{"options":{"max_tokens":[70]}}`: 0, `["max_tokens",70]`: 0, `70`: 0, `{"max_tokens":true}`: 0, `{"max_tokens":{"max_tokens":70}}`: 0,
	} {
		require.Equal(t, want, sizeOf(t, "/v1/x", body).Answer, body)
	}
	name := strings.Repeat("m", 256)
	for body, want := range map[string]string{
		`{"model":"` + name + `"}`: name, `{"model":"` + name + `m"}`: "", `{"model":5}`: "", `{"a":{"model":"m"}}`: "", `{"name":"m"}`: "", `["model"]`: "",
	} {
		require.Equal(t, want, sizeOf(t, "/v1/x", body).Model, body)
	}
}
