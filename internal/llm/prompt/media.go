package prompt

import (
	"bytes"
	"cmp"
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
	skipped
)

// shortestMedium is the minimum length of a text that is taken for base64, in bytes.
const shortestMedium = 256

// A Media has the assumed costs of images, audio, video and files. The zero value of a field is its default.
type Media struct {
	// ImageTokens is the cost of an image of any size, in tokens: services scale large ones down. Defaults to 1600.
	ImageTokens int
	// AudioBytesPerToken is how many bytes of audio or video count as a token. Defaults to 1000: 16 to 32 tokens are a second.
	AudioBytesPerToken int
	// FileBytesPerToken is the same for a PDF and similar files, whose pages also contain pictures. Defaults to 50.
	FileBytesPerToken int
}

// The defaults of a Media.
const (
	DefaultImageTokens        = 1600
	DefaultAudioBytesPerToken = 1000
	DefaultFileBytesPerToken  = 50
)

// WithDefaults returns m with its defaults filled in.
func (m Media) WithDefaults() Media {
	m.ImageTokens = cmp.Or(m.ImageTokens, DefaultImageTokens)
	m.AudioBytesPerToken = cmp.Or(m.AudioBytesPerToken, DefaultAudioBytesPerToken)
	m.FileBytesPerToken = cmp.Or(m.FileBytesPerToken, DefaultFileBytesPerToken)
	return m
}

// tokens returns the assumed cost of so many bytes of a medium.
func (m Media) tokens(of medium, size int64) int64 {
	switch of {
	case image:
		return int64(m.ImageTokens)
	case sound:
		return size/int64(m.AudioBytesPerToken) + 1
	case file:
		return size/int64(m.FileBytesPerToken) + 1
	case skipped:
		return 0
	default: // text in base64, by the first ratio
		return size / 4
	}
}

// decoded returns the decoded length of n bytes of base64.
func decoded(n int) int64 { return int64(max(n, 0)) / 4 * 3 }

// mediaNames are the fields in which services accept base64, in the form of costrule.Plain. In all others it counts as text, because a model
// reads it there.
var mediaNames = costrule.Names("data bytes url uri image images image_url image_base64 input_image audio video file file_data document " +
	"base64 b64_json bytes_base64_encoded")

// inside returns the medium of a string in a JSON body, and how many bytes at its beginning are not base64.
func (r *Reader) inside(v costrule.Value) (m medium, prefix int) {
	name := costrule.Plain(r.scanner.Key(0))
	if !mediaNames[name] {
		return text, 0
	}
	head := bytes.TrimPrefix(v.Raw, []byte(`"`))
	kind := name + " " + costrule.Plain(r.scanner.Key(1))
	odd := 0
	if url, is := bytes.CutPrefix(head, []byte("data:")); is {
		before, behind, found := bytes.Cut(url, []byte(","))
		if !found || !bytes.HasSuffix(before, []byte(";base64")) {
			return text, 0
		}
		kind = string(before)
		prefix = len(head) - len(behind)
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
	clean := strings.NewReplacer(`\/`, "/", `\n`, "", `\r`, "", `"`, "", "=", "", "-", "+", "_", "/").Replace(string(p))
	out, _ := base64.RawStdEncoding.DecodeString(clean) // up to what is no base64
	return out
}

// mediumOf returns the medium of a file by its beginning or, if that is inconclusive, by its name.
func mediumOf(head []byte, called string) medium {
	if m, ok := mediumNamed(http.DetectContentType(head)); ok {
		return m
	}
	if bytes.HasPrefix(head, []byte("fLaC")) || string(head) >= "\xff\xe0" { // FLAC; MPEG, with eleven bits that are 1
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

// shapeOf returns the shape of a body by its beginning. It trusts the Content-Type only if the body can have that shape: some services read JSON whatever the
// type.
func shapeOf(head []byte, contentType string) (s bodyShape, boundary string) {
	for len(head) > 0 && strings.IndexByte(" \t\r\n\x00\xef\xbb\xbf\xfe\xff", head[0]) >= 0 {
		head = head[1:]
	}
	if len(head) == 0 || head[0] == '{' || head[0] == '[' {
		return jsonShape, ""
	}
	kind, params, _ := mime.ParseMediaType(contentType)
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
func (r *Reader) readForm(body []byte, boundary string) {
	r.skip = int64(len(body)) // it is fed, too
	form := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := form.NextRawPart()
		if err != nil {
			r.open = skipped // what follows the form
			return
		}
		content, err := io.ReadAll(part)
		n, m := int64(len(content)), text
		called := part.Header.Get("Content-Type")
		if kind, _ := mediumNamed(called); part.FileName() != "" || kind != text {
			m = mediumOf(content, called+" "+part.FormName())
		}
		switch {
		case err != nil: // it is incomplete
			if r.open, r.bytes = m, n; m == text {
				r.size.Bytes, r.size.Chars = r.size.Bytes+n, r.size.Chars+characters(content)
			}
			return
		case m != text:
			r.size.Tokens += r.media.tokens(m, n)
		default:
			r.size.Bytes += n
			r.size.Chars += characters(content)
			r.limit(part.FormName(), string(content), n >= longestLimit)
		}
	}
}
