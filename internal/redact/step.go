package redact

import (
	"html"
	"strconv"
	"strings"
)

// steps hold how many bytes at the beginning of a text may be one byte of a secret; 0 for none. Several are possible for a percent sign, and
// for a backslash, which is 1, 2 or 4 of them.
type steps [3]int

// Longest runs that are read as encoding: of backslashes, and of 25s behind a percent sign. Without a bound a run costs its square.
const (
	longestEscape  = 16
	longestPercent = 9
)

// step returns the steps for one byte of a secret: as it is, encoded, and a backslash encoded twice.
func step(text string, want byte, code bool) (all steps) {
	plain, encoded, twice := &all[0], &all[1], &all[2]
	if text == "" {
		return all
	}
	if same(text[0], want, code) {
		*plain = 1
	}
	switch text[0] {
	case '%':
		*encoded = percent(text, want, code)
	case '\\':
		*encoded = escape(text, want, code)
		if want == '\\' && strings.HasPrefix(text, `\\\\`) {
			*twice = 4
		}
	case '&':
		if end := strings.IndexByte(text[:min(len(text), 10)], ';'); end > 0 {
			if is := html.UnescapeString(text[:end+1]); len(is) == 1 && same(is[0], want, code) {
				*encoded = end + 1
			}
		}
	case '+':
		if want == ' ' {
			*encoded = 1
		}
	}
	return all
}

// percent is step for %41, and for %2541, which was encoded twice.
func percent(text string, want byte, code bool) int {
	n := 1
	for n < 2*longestPercent && strings.HasPrefix(text[n:], "25") && len(text) >= n+4 {
		n += 2
	}
	if b, ok := hexByte(text[n:]); ok && (same(b, want, code) || b == '+' && want == ' ') {
		return n + 2
	}
	if want == '%' && n > 1 {
		return n
	}
	return 0
}

// escape is step for \u0041, \x41, \/ and \\, whose backslash may be escaped as well.
func escape(text string, want byte, code bool) int {
	n := 1
	for n < min(len(text)-1, longestEscape) && text[n] == '\\' {
		n++
	}
	rest := text[n:]
	switch {
	case strings.HasPrefix(rest, "u00") && len(rest) >= 5:
		if b, ok := hexByte(rest[3:]); ok && same(b, want, code) {
			return n + 5
		}
	case strings.HasPrefix(rest, "x"):
		if b, ok := hexByte(rest[1:]); ok && same(b, want, code) {
			return n + 3
		}
	}
	switch {
	case rest != "" && rest[0] == want && strings.IndexByte(`/"'`, want) >= 0:
		return n + 1
	case want == '\\' && n > 1:
		return 2
	case want == '\\' && rest == `\`:
		return n + 1
	}
	return 0
}

// lineBreak returns the length of a line break at the beginning of a text, escaped or not, with the blanks behind it; 0 for none.
func lineBreak(text string) int {
	const longest = 64
	text = text[:min(len(text), longest)]
	n := 0
	for n < len(text) {
		at := n
		for at < min(len(text), n+longestEscape) && text[at] == '\\' {
			at++
		}
		switch {
		case at < len(text) && (text[at] == '\r' || text[at] == '\n' || at > n && (text[at] == 'r' || text[at] == 'n')):
			n = at + 1
		case n > 0 && (text[n] == ' ' || text[n] == '\t'):
			n++
		default:
			return n
		}
	}
	return n
}

func hexByte(text string) (b byte, ok bool) {
	if len(text) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:2], 16, 8)
	return byte(n), err == nil
}

// same reports whether a byte is the wanted one.
func same(b, want byte, code bool) bool {
	if b == want {
		return true
	}
	if !code {
		return false
	}
	return b == '-' && want == '+' || b == '_' && want == '/'
}
