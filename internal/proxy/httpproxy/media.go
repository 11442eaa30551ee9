package httpproxy

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// A medium is the kind of content of bytes that are not text.
type medium int

const (
	text medium = iota
	image
	sound // and video
	file
	coded // text in base64
)

const (
	// imageTokens is the assumed cost of an image of any size: services scale large ones down.
	imageTokens = 1200
	// bytesPerSound is how many bytes of audio or video count as a token: 16 to 32 tokens are a second.
	bytesPerSound = 1000
	// bytesPerFile is the same for a PDF and similar files, whose pages also contain pictures.
	bytesPerFile = 50
	// shortestMedium is the minimum length of a text that is taken for base64, in bytes.
	shortestMedium = 256
)

// tokens returns the assumed cost of so many bytes.
func (m medium) tokens(size int64) int64 {
	switch m {
	case image:
		return imageTokens
	case sound:
		return size/bytesPerSound + 1
	case file:
		return size/bytesPerFile + 1
	default:
		return size / bytesPerToken
	}
}

// decoded returns the decoded length of n bytes of base64.
func decoded(n int) int64 { return int64(max(n, 0)) / 4 * 3 }

// mediaNames are the fields in which services accept base64, in the form of costrule.Plain. In all others it counts as text, because a model
// reads it there.
var mediaNames = names("data bytes url uri image images image_url image_base64 input_image audio video file file_data document " +
	"base64 b64_json bytes_base64_encoded")

// inside returns the medium of a string in a JSON body, and how many bytes at its beginning are not base64.
func (l *llm) inside(v costrule.Value) (m medium, prefix int) {
	name := costrule.Plain(l.scanner.Key(0))
	if !mediaNames[name] {
		return text, 0
	}
	head := bytes.TrimPrefix(v.Raw, []byte(`"`))
	kind := name + " " + costrule.Plain(l.scanner.Key(1))
	odd := 0
	if bytes.HasPrefix(head, []byte("data:")) {
		i := bytes.IndexByte(head, ',')
		if i < 0 || !bytes.HasSuffix(head[:i], []byte(";base64")) {
			return text, 0
		}
		kind = string(head[len("data:"):i])
		prefix = i + 1
		odd = costrule.Odd(bytes.ReplaceAll(head[:prefix], []byte(`\/`), []byte("/")))
	}
	if v.Odd > odd {
		return text, 0
	}
	if m = mediumOf(decode(head[prefix:]), kind); m == text {
		m = coded
	}
	return m, prefix
}

// decode decodes the beginning of base64.
func decode(p []byte) []byte {
	const most = 512
	clean := strings.NewReplacer(`\/`, "/", `\n`, "", `\r`, "", `"`, "", "=", "", "-", "+", "_", "/").Replace(string(p[:min(len(p), most)]))
	out, _ := base64.RawStdEncoding.DecodeString(clean[:len(clean)/4*4])
	return out
}

// mediumOf returns the medium of a file by its beginning or, if that is inconclusive, by its name.
func mediumOf(head []byte, called string) medium {
	if m, ok := mediumNamed(http.DetectContentType(head)); ok {
		return m
	}
	if bytes.HasPrefix(head, []byte("fLaC")) || len(head) > 1 && head[0] == 0xff && head[1]&0xe0 == 0xe0 { // FLAC, MPEG
		return sound
	}
	if m, ok := mediumNamed(strings.ToLower(called)); ok && m != text {
		return m
	}
	return file
}

func mediumNamed(called string) (m medium, ok bool) {
	switch {
	case strings.HasPrefix(called, "text/"):
		return text, true
	case strings.Contains(called, "image"):
		return image, true
	case strings.Contains(called, "audio"), strings.Contains(called, "video"), strings.Contains(called, "ogg"):
		return sound, true
	case strings.Contains(called, "pdf"), strings.Contains(called, "zip"):
		return file, true
	}
	return text, false
}

// isRemoteImage reports whether a string is the URL of an image that the service fetches.
func isRemoteImage(s *costrule.Scanner, v costrule.Value) bool {
	if !bytes.HasPrefix(v.Raw, []byte(`"http`)) {
		return false
	}
	name, around := costrule.Plain(s.Key(0)), costrule.Plain(s.Key(1))
	return name == "imageurl" || name == "url" && (around == "imageurl" || around == "image" || around == "source")
}

// The shapes of bodies.
type bodyShape int

const (
	textShape bodyShape = iota
	jsonShape
	formShape // multipart
	fileShape
)

// shape returns the shape of a body. It trusts the Content-Type only if the body can have that shape: some services read JSON whatever the
// type.
func shape(m *message) (s bodyShape, boundary string) {
	head := m.body // also in UTF-16 and 32, which some services read
	for len(head) > 0 && strings.IndexByte(" \t\r\n\x00\xef\xbb\xbf\xfe\xff", head[0]) >= 0 {
		head = head[1:]
	}
	if len(head) == 0 || head[0] == '{' || head[0] == '[' {
		return jsonShape, ""
	}
	kind, params, _ := mime.ParseMediaType(m.req.Header.Get("Content-Type"))
	family, _, _ := strings.Cut(kind, "/")
	switch {
	case family == "multipart" && params["boundary"] != "":
		return formShape, params["boundary"]
	case family == "image", family == "audio", family == "video", kind == "application/octet-stream", kind == "application/pdf":
		return fileShape, ""
	}
	return textShape, ""
}

// readForm processes the available part of a form. The rest belongs to its last part.
func (l *llm) readForm(body []byte, boundary string) {
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextRawPart()
		if err != nil {
			return
		}
		var head bytes.Buffer
		n, err := io.Copy(&head, io.LimitReader(part, longestLimit))
		if err == nil {
			var rest int64
			rest, err = io.Copy(io.Discard, part)
			n += rest
		}
		m := text
		called := part.Header.Get("Content-Type")
		if kind, _ := mediumNamed(called); part.FileName() != "" || kind != text {
			m = mediumOf(head.Bytes(), called+" "+part.FormName())
		}
		switch {
		case err != nil: // it is incomplete
			l.open, l.bytes = m, n-int64(len(body)) // the body is still fed
			return
		case m != text:
			l.media += n
			l.tokens += m.tokens(n)
		default:
			l.limit(part.FormName(), head.String(), n >= longestLimit)
		}
	}
}
