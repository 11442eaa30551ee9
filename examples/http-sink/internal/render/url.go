package render

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"text/template/parse"
)

// A URL is the template of a request's URL. Its methods are safe for concurrent use.
type URL struct {
	tmpl   *template.Template
	prefix string // before the first action
	scheme string
	host   string
	name   string // of the host, without port
}

// longestURL is the length that all servers accept.
const longestURL = 8000

// ParseURL parses the template of a URL. Errors describe the fault without repeating the text, which may be a secret.
func ParseURL(source string) (*URL, error) {
	t, err := parseTemplate("url", source)
	if err != nil {
		return nil, err
	}
	if t.Tree == nil || t.Root == nil || len(t.Root.Nodes) == 0 {
		return nil, errors.New("is empty")
	}
	first, ok := t.Root.Nodes[0].(*parse.TextNode)
	if !ok {
		return nil, errors.New("begins with an action; scheme, host and the first / of the path must stand before it")
	}
	prefix := string(first.Text)
	if err := escapeActions(t); err != nil {
		return nil, err
	}
	u, err := url.Parse(prefix)
	_, behind, _ := strings.Cut(prefix, "://")
	switch {
	case err != nil:
		return nil, errors.New("does not parse as a URL before its first action")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("has not the scheme http or https")
	case u.Host == "" || u.Hostname() == "":
		return nil, errors.New("has no host before its first action")
	case u.User != nil:
		return nil, errors.New("has a user; set basicUsername and basicPassword")
	case len(t.Root.Nodes) > 1 && !strings.Contains(behind, "/"):
		return nil, errors.New("has no / between its host and its first action")
	}
	r := &URL{tmpl: t, prefix: prefix, scheme: u.Scheme, host: u.Host, name: u.Hostname()}
	if _, err := r.confine(prefix); err != nil {
		return nil, err
	}
	return r, nil
}

// Host returns the host of all URLs of the template, with a port if it names one.
func (r *URL) Host() string { return r.host }

// Hostname is Host without port and brackets.
func (r *URL) Hostname() string { return r.name }

// Plain reports whether requests go over http.
func (r *URL) Plain() bool { return r.scheme == "http" }

// Render returns the URL for a message. Errors contain nothing of the message.
func (r *URL) Render(m *Message) (string, error) {
	text, err := execute(r.tmpl, m)
	if err != nil {
		return "", err
	}
	u, err := r.confine(text)
	if err != nil {
		return "", fmt.Errorf("url: %w", err)
	}
	return u.String(), nil
}

// confine checks that a URL is within the prefix.
func (r *URL) confine(text string) (*url.URL, error) {
	switch {
	case len(text) > longestURL:
		return nil, fmt.Errorf("has %d bytes, allowed: at most %d", len(text), longestURL)
	case !strings.HasPrefix(text, r.prefix):
		return nil, errors.New("has lost its beginning")
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' || c == '#' }):
		return nil, errors.New(`has a space, a control character, a backslash or "#"`)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("does not parse")
	}
	// The prefix ensures that; this check does not depend on how it is parsed.
	if u.Scheme != r.scheme || u.Host != r.host || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return nil, errors.New("names another host")
	}
	return u, checkPath(u.EscapedPath())
}

// checkPath refuses a path that a server might take for one outside of its beginning, even if it decodes repeatedly.
func checkPath(path string) error {
	const mostDecodings = 4
	for range mostDecodings {
		if strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) {
			return errors.New("has an escaped control character or backslash in its path")
		}
		for segment := range strings.SplitSeq(path, "/") {
			segment, _, _ = strings.Cut(segment, ";") // some servers ignore what follows
			if segment == "." || segment == ".." {
				return errors.New(`has a segment "." or ".." in its path`)
			}
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return nil // a "%" that is no escape any more
		}
		path = decoded
	}
	return fmt.Errorf("has a path that is escaped more than %d times", mostDecodings)
}
