package render

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Headers are the templates of a request's headers. Their methods are safe for concurrent use.
type Headers struct {
	names []string
	texts []*Text
}

// refusedHeaders are set by the client itself, belong to a connection, or contain a secret that must not be in a printed setting.
var refusedHeaders = []string{
	"Authorization", "Connection", "Content-Encoding", "Content-Length", "Cookie", "Expect", "Host", "Idempotency-Key", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ParseHeaders parses lines of "Name: template", and ignores empty lines.
func ParseHeaders(lines string) (*Headers, error) {
	h := &Headers{}
	var faults []error
	for i, line := range strings.Split(lines, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, source, found := strings.Cut(line, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		switch {
		case !found:
			faults = append(faults, fmt.Errorf("line %d has no colon", i+1))
			continue
		case !ValidHeaderName(name):
			faults = append(faults, fmt.Errorf("line %d has no header's name before its colon", i+1))
			continue
		case slices.Contains(refusedHeaders, name):
			faults = append(faults, fmt.Errorf("line %d sets %s, which has settings of its own or belongs to the connection", i+1, name))
			continue
		case slices.Contains(h.names, name):
			faults = append(faults, fmt.Errorf("line %d sets %s again", i+1, name))
			continue
		}
		t, err := ParseText("header "+name, strings.TrimSpace(source))
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		h.names, h.texts = append(h.names, name), append(h.texts, t)
	}
	return h, errors.Join(faults...)
}

// Render adds the headers for a message to an http.Header. An empty text adds none. Errors contain nothing of the message.
func (h *Headers) Render(m *Message, to http.Header) error {
	for i, name := range h.names {
		value, err := h.texts[i].Render(m)
		if err != nil {
			return err
		}
		value = strings.TrimSpace(value)
		if !ValidHeaderValue(value) {
			return fmt.Errorf("header %s has a control character, or more than %d bytes", name, longestHeader)
		}
		if value != "" {
			to.Set(name, value)
		}
	}
	return nil
}

const longestHeader = 4096

// ValidHeaderName reports whether a text is a token of RFC 9110.
func ValidHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

// ValidHeaderValue reports whether a text can be the value of a header.
func ValidHeaderValue(value string) bool {
	return len(value) <= longestHeader && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
