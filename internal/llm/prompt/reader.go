package prompt

import (
	"net/http"
	"path"
	"strings"
	"unicode"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// longestLimit is the maximum length of the text of a limit on the answer in a form, in bytes.
const longestLimit = 512

// longestModel is the longest name of a model, in bytes.
const longestModel = 256

// A Reader measures a request while its body is read. It is not safe for concurrent use.
type Reader struct {
	media   Media
	scanner *costrule.Scanner // of a body of JSON; nil for others
	size    Size              // without what is under way
	output  int64             // the longest answer, as the body says
	times   int64             // the number of answers
	bad     string            // a limit that cannot be read, while a service may read it; empty: none

	embeds bool // its path is that of a call for embeddings
	schema int  // how deep the outermost schema is that the scanner is in; 0: in none
	hidden int  // the same of a field that no model reads

	open  medium // the medium of the unfinished end of a body that is not JSON
	bytes int64  // read of it
	skip  int64  // bytes of the body that were counted before they were fed
}

// NewReader returns the Reader of a request whose body begins with head. The body is fed to it, head included. For a body of JSON it uses a
// scanner, whose values the caller passes to Value; the scanner keeps at least 1,024 bytes of each.
func NewReader(req *http.Request, head []byte, scanner *costrule.Scanner, media Media) *Reader {
	r := &Reader{media: media.WithDefaults()}
	r.size.Silent, r.embeds = silent(req.URL.Path)
	r.size.Silent = r.size.Silent || len(head) == 0 && isEmpty(req)
	switch kind, boundary := shapeOf(head, req.Header.Get("Content-Type")); kind {
	case jsonShape:
		r.scanner = scanner
	case formShape:
		r.readForm(head, boundary)
	case fileShape:
		r.open = mediumOf(head, req.Header.Get("Content-Type"))
	default:
	}
	return r
}

// isEmpty reports whether a request has no body, as one for a list of models, unless its length isn't known.
func isEmpty(r *http.Request) bool {
	return r.ContentLength == 0 && r.Method != http.MethodPost && r.Header.Get("Upgrade") == ""
}

// silent reports whether the path is that of a call without a text answer, and whether that is one for embeddings.
func silent(p string) (is, embeds bool) {
	if path.Clean("/"+p) != strings.TrimSuffix(p, "/") || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`;\,?#%`, r) }) {
		return false, false // the service may interpret it as another call
	}
	last := path.Base(p)
	if last == "invoke" { // Amazon Bedrock: /model/amazon.titan-embed-text-v2:0/invoke
		last = path.Base(path.Dir(p))
	}
	if _, verb, ok := strings.Cut(last, ":"); ok && !strings.Contains(p, "/invoke") {
		last = verb // Gemini: /v1beta/models/gemini-embedding-001:embedContent
	}
	last = costrule.Plain(last)
	for _, word := range []string{"embed", "rerank", "moderations", "counttokens", "tokenize"} {
		if strings.Contains(last, word) {
			return true, word == "embed"
		}
	}
	return false, false
}

// IsJSON reports whether the body is read as JSON, by the scanner.
func (r *Reader) IsJSON() bool { return r.scanner != nil }

// Feed processes more of the body.
func (r *Reader) Feed(p []byte) {
	if r.scanner != nil {
		_, _ = r.scanner.Write(p) // never fails
		return
	}
	counted := min(r.skip, int64(len(p)))
	r.skip -= counted
	p = p[counted:]
	r.bytes += int64(len(p))
	if r.open == text {
		r.size.Bytes += int64(len(p))
		r.size.Chars += characters(p)
	}
}

// characters counts those that begin in a part of a text.
func characters(p []byte) (n int64) {
	for _, b := range p {
		if b&0xc0 != 0x80 {
			n++
		}
	}
	return n
}

// Value processes a value that the scanner of a JSON body has reached.
func (r *Reader) Value(v costrule.Value) {
	depth := r.scanner.Depth()
	r.leave(depth)
	key, inList := r.scanner.Key(0), r.scanner.InList()
	if !inList && r.isLimit() {
		r.limit(key, v.Text(), v.Cut())
	}
	if r.hidden > 0 {
		return
	}
	r.names(v, depth, key, inList)
	switch {
	case r.schema == 0 && schemas[key] && !inList && (depth > 1 || key != "input") && isContainer(v):
		r.schema = depth
	case depth == 1 && unread[key], r.schema == 0 && depth > 1 && !inList && marks[key]:
		if isContainer(v) {
			r.hidden = depth
		}
		return
	}
	if r.schema > 0 && depth > r.schema {
		r.syntax(v, key, inList)
	}
	r.text(v, depth, key)
}

// leave forgets a schema or a field that no model reads, if the scanner has left it.
func (r *Reader) leave(depth int) {
	if depth <= r.schema {
		r.schema = 0
	}
	if depth <= r.hidden {
		r.hidden = 0
	}
}

// names takes the model, and counts the texts of a call for embeddings.
func (r *Reader) names(v costrule.Value, depth int, key string, inList bool) {
	switch {
	case depth == 1 && key == "model" && v.Kind == costrule.String && v.Len <= longestModel:
		r.size.Model = v.Text()
	case depth == 2 && r.embeds && inList && inputs[key] && v.Kind != costrule.Figure:
		r.size.Inputs++
	}
}

// isContainer reports whether a value has others in it.
func isContainer(v costrule.Value) bool { return v.Kind == costrule.Object || v.Kind == costrule.List }

// syntax counts the name and the marks of a value in a schema.
func (r *Reader) syntax(v costrule.Value, key string, inList bool) {
	n := int64(len(`,`))
	if !inList {
		n += int64(len(key) + len(`"":`))
	}
	switch v.Kind {
	case costrule.String, costrule.Object, costrule.List:
		n += int64(len(`""`))
	default:
		n += int64(v.Len)
	}
	r.size.Bytes += n
	r.size.Chars += n
}

// text counts the content of a value.
func (r *Reader) text(v costrule.Value, depth int, key string) {
	switch {
	case v.Kind == costrule.Figure && r.embeds && depth >= 2 && inputs[key]:
		r.size.Tokens++ // a text that comes as tokens
	case v.Kind != costrule.String:
	case v.Len >= shortestMedium:
		if m, prefix := r.inside(v); m != text {
			r.size.Tokens += r.media.tokens(m, decoded(v.Len-prefix))
			return
		}
		r.count(v)
	case isRemoteImage(r.scanner, v):
		r.size.Tokens += int64(r.media.ImageTokens)
	default:
		r.count(v)
	}
}

func (r *Reader) count(v costrule.Value) {
	r.size.Bytes += int64(v.Bytes)
	r.size.Chars += int64(v.Chars)
}

// isLimit reports whether the scanner's value is where services have limits on an answer.
func (r *Reader) isLimit() bool {
	depth := r.scanner.Depth()
	if depth > 3 {
		return false
	}
	for out := 1; out < depth; out++ {
		if !groupNames[costrule.Plain(r.scanner.Key(out))] {
			return false
		}
	}
	return true
}

// limit processes a limit on the answer. Of several the largest counts. Words such as "auto" are ignored. Other texts with digits, which
// some services read as numbers (5_000), cannot be read, and neither can one that is not kept completely (cut).
func (r *Reader) limit(name, value string, cut bool) {
	at := &r.output
	switch plain := costrule.Plain(name); {
	case timesNames[plain]:
		at = &r.times
	case !outputNames[plain]:
		return
	}
	n, ok := costrule.Number(value)
	switch {
	case ok && !cut:
		*at = max(*at, int64(n))
	case cut || strings.ContainsFunc(value, unicode.IsDigit) && !strings.Contains(value, "-"):
		r.bad = name
	}
}

// Unreadable returns the name of a limit on the answer that cannot be read, while a service may read it; empty for none.
func (r *Reader) Unreadable() string { return r.bad }

// Size returns the size of the request, whose body has rest more bytes. They are assumed to be like its last ones.
func (r *Reader) Size(rest int64) Size {
	s := r.size
	switch m, length, prefix := r.unfinished(); {
	case m == text:
		s.Bytes += rest
		s.Chars += rest
		if v, ok := r.unfinishedText(); ok {
			s.Bytes += int64(v.Bytes)
			s.Chars += int64(v.Chars)
		}
	case r.scanner != nil:
		s.Tokens += r.media.tokens(m, decoded(int(length+rest)-prefix))
	default:
		s.Tokens += r.media.tokens(m, length+rest)
	}
	s.Answer = min(r.output*max(r.times, 1), Most)
	s.Inputs = max(s.Inputs, 1)
	s.Bytes, s.Chars, s.Tokens = min(s.Bytes, Most), min(s.Chars, Most), min(s.Tokens, Most)
	return s
}

// unfinishedText returns the text under way of a body of JSON.
func (r *Reader) unfinishedText() (v costrule.Value, ok bool) {
	if r.scanner == nil {
		return v, false
	}
	return r.scanner.Unfinished()
}

// unfinished returns the medium of the unfinished end of the body, its length so far, and how many bytes at its beginning are not base64.
func (r *Reader) unfinished() (m medium, length int64, prefix int) {
	if r.scanner == nil {
		return r.open, r.bytes, 0
	}
	v, ok := r.scanner.Unfinished()
	if !ok || v.Len < shortestMedium {
		return text, 0, 0
	}
	m, prefix = r.inside(v)
	return m, int64(v.Len), prefix
}
