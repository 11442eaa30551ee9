package httpproxy

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
)

// maxTag is the longest tag, in bytes.
const maxTag = 256

// headerTag takes the tag from a header, which must not occur with different values: a service may use either.
func headerTag(name string) func(m *message) (string, error) {
	return func(m *message) (string, error) {
		values, err := valuesOf(m.req.Header, name)
		if len(values) == 0 || err != nil {
			return "", err
		}
		for _, value := range values {
			if value != values[0] {
				return "", proxy.FieldError("header "+name, fmt.Sprintf("%.40q and %.40q", values[0], value), "one value")
			}
		}
		return values[0], nil
	}
}

// valuesOf returns the values of a header. It refuses one whose name has underscores for dashes, which many services read as the same.
func valuesOf(h http.Header, name string) ([]string, error) {
	dashes := strings.ReplaceAll(name, "_", "-")
	for other := range h {
		if !strings.EqualFold(other, name) && strings.EqualFold(strings.ReplaceAll(other, "_", "-"), dashes) {
			return nil, proxy.FieldError("header "+name, fmt.Sprintf("spelled %.40q", other), name)
		}
	}
	return h.Values(name), nil
}

// hostTag is the target, in one spelling: without the port of its scheme.
func hostTag(m *message) (string, error) {
	name, port, err := net.SplitHostPort(m.host)
	if err != nil {
		name, port = strings.TrimSuffix(strings.TrimPrefix(m.host, "["), "]"), ""
	}
	name = canonical(name)
	if port == "" || port == m.port {
		if strings.Contains(name, ":") {
			name = "[" + name + "]"
		}
		return name, nil
	}
	return net.JoinHostPort(name, port), nil
}

// checkTag returns an error for an invalid tag of a caller.
func checkTag(tag string) error {
	if len(tag) <= maxTag && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl) {
		return nil
	}
	return proxy.FieldError("tag", fmt.Sprintf("%.40q", tag), fmt.Sprintf("up to %d bytes of text without control characters", maxTag))
}

// tagOf returns the tag of a request, of one level or two; empty for none.
func (p *handler) tagOf(m *message) (tag string, err error) {
	var levels [2]string
	for i, rule := range p.tags {
		if levels[i], err = rule.of(m); err == nil {
			err = checkTag(levels[i])
		}
		if err != nil {
			return "", err
		}
	}
	if len(p.tags) < len(levels) {
		return levels[0], nil
	}
	tag, ok := taglevel.Name(levels[0], levels[1])
	if !ok {
		return "", proxy.FieldError("tag", fmt.Sprintf("%.40q", levels[0]), "no slash in the first of two levels")
	}
	return tag, nil
}

// refusedTag is the tag that a refusal of the service to a tag concerns: its first level.
func (p *handler) refusedTag(tag string) string {
	if len(p.tags) > 1 {
		return taglevel.First(tag)
	}
	return tag
}
