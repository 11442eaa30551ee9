// Package redact removes secrets from texts that come from services, in whatever encoding they are echoed.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Hidden replaces a secret.
const Hidden = "(not shown)"

// A Redactor removes some secrets. It is safe for concurrent use.
type Redactor struct{ secrets []secret }

// A secret is a text with the forms that are searched for.
type secret struct {
	plain string
	codes []string // the parts of its base64 that are the same in any surroundings, and its hex digits
}

const (
	shortest = 6 // a shorter secret would hit words by chance
	// shortestCode is the shortest part of base64 that is searched for.
	shortestCode = 8
	// leastPrefix is how much of a secret's beginning counts as the secret.
	leastPrefix = 16
	// leastCode is the same for base64 and hex.
	leastCode = 24
	// leastPart is the least part of a secret that a Word may not be.
	leastPart = 8
)

// New returns a Redactor of secrets, such as values of headers: "Bearer KEY" hides KEY too, "session=KEY" and `token="KEY"` likewise, and
// "Basic CREDENTIALS" the password, but no scheme. Secrets of less than 6 bytes are left out.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		name, rest, _ := strings.Cut(s, " ")
		if decoded, err := base64.StdEncoding.DecodeString(rest); strings.EqualFold(name, "basic") && err == nil {
			_, password, _ := strings.Cut(string(decoded), ":")
			r.add(string(decoded), password)
		}
		r.add(s)
		words := strings.Fields(s)
		if len(words) > 1 && scheme.MatchString(words[0]) {
			words = words[1:]
		}
		r.add(words...)
		for _, pair := range strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || c == ';' || c == ',' }) {
			_, value, _ := strings.Cut(pair, "=")
			r.add(strings.Trim(value, `"`))
		}
	}
	r.sort()
	return r
}

// scheme matches the name of a scheme of Authorization.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z-]{0,15}$`)

// With returns a Redactor that also removes some texts, but not their single words.
func (r *Redactor) With(texts ...string) *Redactor {
	more := &Redactor{secrets: slices.Clone(r.secrets)}
	more.add(texts...)
	more.sort()
	return more
}

// sort puts longer secrets first.
func (r *Redactor) sort() {
	slices.SortStableFunc(r.secrets, func(a, b secret) int { return cmp.Compare(len(b.plain), len(a.plain)) })
	r.secrets = slices.CompactFunc(r.secrets, func(a, b secret) bool { return a.plain == b.plain })
}

func (r *Redactor) add(secrets ...string) {
	for _, text := range secrets {
		if len(text) < shortest || strings.EqualFold(text, "bearer") {
			continue
		}
		s := secret{plain: text}
		for skip := range 3 {
			if code := base64.RawStdEncoding.EncodeToString([]byte(text[skip : len(text)-(len(text)-skip)%3])); len(code) >= shortestCode {
				s.codes = append(s.codes, code)
			}
		}
		digits := hex.EncodeToString([]byte(text))
		s.codes = append(s.codes, digits, strings.ToUpper(digits))
		r.secrets = append(r.secrets, s)
		for _, escape := range []string{`\u%04x`, `\u%04X`} {
			if ascii := escaped(text, escape); ascii != text {
				r.secrets = append(r.secrets, secret{plain: ascii})
			}
		}
	}
}

// escaped returns a text in ASCII, as JSON can have it: others are escaped in UTF-16.
func escaped(text, escape string) string {
	var out strings.Builder
	for _, char := range text {
		if char < utf8.RuneSelf {
			out.WriteRune(char)
			continue
		}
		for _, code := range utf16.Encode([]rune{char}) {
			fmt.Fprintf(&out, escape, code)
		}
	}
	return out.String()
}

// secretName matches the names of headers and parameters that hold secrets.
var secretName = regexp.MustCompile(`(?i)auth|token|secret|passw|pwd|key|sign|sig$|credential|cookie|session|jwt|assertion`)

// IsSecretName reports whether the name of a header or a parameter suggests that its value is a secret.
func IsSecretName(name string) bool {
	return secretName.MatchString(name) && !strings.EqualFold(name, "Idempotency-Key")
}

// Request returns a Redactor of what a request logs in with: headers and parameters whose names suggest it.
func Request(req *http.Request) *Redactor {
	var secrets []string
	for name, values := range req.Header {
		if IsSecretName(name) {
			secrets = append(secrets, values...)
		}
	}
	if req.URL != nil {
		if password, ok := req.URL.User.Password(); ok {
			secrets = append(secrets, password)
		}
		for name, values := range req.URL.Query() {
			if IsSecretName(name) {
				secrets = append(secrets, values...)
			}
		}
	}
	return New(secrets...)
}

// Text returns a text without the secrets. It finds them as they are; with some or all characters encoded as in URLs, JSON, Go or HTML; in
// base64 of any alphabet, alone or as a part; in hex; and wrapped into lines. The first 16 bytes of a longer one count, too, and the first 24 of
// its code.
func (r *Redactor) Text(text string) string {
	var out strings.Builder
	from := 0
	for at := 0; at < len(text) && len(r.secrets) > 0; {
		begin, end := r.find(text, at)
		if end == 0 {
			at++
			continue
		}
		begin = max(begin, from)
		out.WriteString(text[from:begin])
		out.WriteString(Hidden)
		from, at = end, end
	}
	if from == 0 {
		return text
	}
	return out.String() + text[from:]
}

// Word returns a short text of a service, such as a code, or nothing if a secret is in it or it is a part of one.
func (r *Redactor) Word(word string) string {
	if r.Text(word) != word {
		return ""
	}
	for _, s := range r.secrets {
		if len(word) >= leastPart && strings.Contains(s.plain, word) {
			return ""
		}
	}
	return word
}

// find returns where a secret is that begins at a place in a text; end 0: none does. For base64 it is the whole of it.
func (r *Redactor) find(text string, at int) (begin, end int) {
	for _, s := range r.secrets {
		if n, size := match(text[at:], s.plain, false); size == len(s.plain) || size >= leastPrefix {
			return at, at + n
		}
		for _, code := range s.codes {
			n, size := match(text[at:], code, true)
			if size < min(len(code), leastCode) {
				continue
			}
			begin, end = at, at+n
			for begin > 0 && isCode(text[begin-1]) {
				begin--
			}
			for end < len(text) && isCode(text[end]) {
				end++
			}
			return begin, end
		}
	}
	return 0, 0
}

// isCode reports whether a byte can be a part of base64, or of its encoding.
func isCode(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte(`+/-_=%\`, b) >= 0
}

// match returns how many bytes at the beginning of a text are the first size bytes of a secret, encoded or not. In code both alphabets of
// base64 are one.
func match(text, secret string, code bool) (n, size int) {
	if step(text, secret[0], code) == (steps{}) {
		return 0, 0
	}
	ends := []int{0} // where what was found may end
	for size < len(secret) {
		var next []int
		for _, end := range ends {
			next = after(next, text, end, secret[size], code)
			if broken := lineBreak(text[end:]); size > 0 && broken > 0 {
				next = after(next, text, end+broken, secret[size], code)
			}
		}
		if next == nil {
			break
		}
		ends = next
		size++
	}
	return slices.Max(ends), size
}

// after adds to ends where one byte of a secret may end that begins at a place in a text.
func after(ends []int, text string, at int, want byte, code bool) []int {
	for _, n := range step(text[at:], want, code) {
		if n > 0 && !slices.Contains(ends, at+n) {
			ends = append(ends, at+n)
		}
	}
	return ends
}
