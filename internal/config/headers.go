package config

import (
	"net/http"
	"strings"
)

// HeaderLines is lines of "Name: value", as ParseHeaders reads them. Only the names are printed, because values may be secrets.
func HeaderLines[C any](at func(C) *string) Value[C] {
	f := ofText(func(text string) bool { _, ok := ParseHeaders(text); return ok })
	f.show = headerNames
	return of(at, traits{kind: someLines, secret: true, hidden: true}, f)
}

// headerNames returns the names in lines of headers; empty for none.
func headerNames(text string) string {
	var names []string
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && isToken(strings.TrimSpace(name)) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + " (values not shown)"
}

// ParseHeaders parses lines of "Name: value", and ignores empty lines. It returns false if a name is invalid or duplicate, or a value is
// empty or has control characters.
func ParseHeaders(text string) (http.Header, bool) {
	h := http.Header{}
	if len(text) > maxLines {
		return h, false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		control := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
		if !ok || !isToken(name) || value == "" || control || h.Get(name) != "" {
			return h, false
		}
		h.Set(name, value)
	}
	return h, true
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	return name != ""
}
