package httpproxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// A message is a request as the rules see it.
type message struct {
	req *http.Request
	// host is its target, and port the one that its scheme has by default; empty for a tunnel.
	host, port string
	// body is the read part of its body, and whole reports whether that is all.
	body  []byte
	whole bool
	// paths are the fields of the body that rules need. estimates reports whether a rule estimates its tokens.
	paths     []costrule.Path
	estimates bool
	media     prompt.Media

	read *facts // nil: not read yet
}

// length returns the length of the body, as far as known.
func (m *message) length() int64 { return max(m.req.ContentLength, int64(len(m.body))) }

// facts are the rules' facts about a body, which is read once.
type facts struct {
	scanner costrule.Scanner
	places  []*costrule.Place
	prompt  *prompt.Reader // nil: not asked for
}

// keptOfValue is how many bytes of a field are kept: more than the longest tag, in any spelling.
const keptOfValue = 2048

func (m *message) facts() *facts {
	if m.read != nil {
		return m.read
	}
	f := &facts{}
	f.scanner.Keep = keptOfValue
	for _, p := range m.paths {
		f.places = append(f.places, &costrule.Place{Path: p})
	}
	if m.estimates {
		f.prompt = prompt.NewReader(m.req, m.body, &f.scanner, m.media)
	}
	f.scanner.Value = func(v costrule.Value) {
		for _, p := range f.places {
			p.Take(&f.scanner, v)
		}
		if f.prompt != nil && f.prompt.IsJSON() {
			f.prompt.Value(v)
		}
	}
	f.feed(m.body)
	if m.whole {
		f.scanner.End()
	}
	m.read = f
	return f
}

// feed processes more of the body.
func (f *facts) feed(p []byte) {
	if f.prompt != nil {
		f.prompt.Feed(p)
	}
	if f.prompt == nil || !f.prompt.IsJSON() && len(f.places) > 0 {
		_, _ = f.scanner.Write(p) // never fails
	}
}

// field returns the value at a path of a JSON body. ok is false for no value, for null, and in an empty body. fault is as in
// costrule.Place.Found.
func (m *message) field(p costrule.Path) (v costrule.Value, ok bool, fault string) {
	at := func(q costrule.Path) bool { return slices.Equal(p, q) }
	if !slices.ContainsFunc(m.paths, at) {
		m.paths, m.read = append(m.paths, p), nil
	}
	f := m.facts()
	return f.places[slices.IndexFunc(m.paths, at)].Found(&f.scanner)
}

// notRead returns the response to a request whose read part is too short for a rule.
func notRead(what, place string) error {
	return proxy.NewError(http.StatusRequestEntityTooLarge, proxy.TooLong,
		fmt.Sprintf("the %s stands in the body (%s), which is longer than what is read of one (bodyBuffer)", what, place))
}

// notJSON returns the response to a request whose body does not match a rule.
func notJSON(what, place, fault string) *proxy.Error {
	return proxy.NewError(http.StatusBadRequest, proxy.BadRequest,
		fmt.Sprintf("the %s stands in the body (%s), and cannot be read there %s, allowed: JSON in UTF-8 with at most one value there", what, place, fault))
}

// checkPacked returns an error for a body in a compression or a charset that rules cannot read, if they need to.
func (m *message) checkPacked() error {
	if !m.estimates && len(m.paths) == 0 || m.whole && len(m.body) == 0 {
		return nil
	}
	for _, value := range m.req.Header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return proxy.NewError(http.StatusUnsupportedMediaType, proxy.MediaType,
					fmt.Sprintf("Content-Encoding is %.40q, and what the request costs, or for whom, stands in its body, allowed: identity", coding))
			}
		}
	}
	for _, value := range m.req.Header.Values("Content-Type") {
		for part := range strings.SplitSeq(value, ";") {
			name, charset, _ := strings.Cut(part, "=")
			charset = strings.Trim(strings.TrimSpace(charset), `"'`)
			if strings.EqualFold(strings.TrimSpace(name), "charset") && !readCharsets[costrule.Plain(charset)] {
				return proxy.NewError(http.StatusUnsupportedMediaType, proxy.MediaType,
					fmt.Sprintf("the charset is %.40q, and what the request costs, or for whom, stands in its body, allowed: utf-8", charset))
			}
		}
	}
	return nil
}

// readCharsets are those in which rules read a body, in the form of costrule.Plain.
var readCharsets = costrule.Names("utf8 ascii usascii")
