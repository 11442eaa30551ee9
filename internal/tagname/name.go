package tagname

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLen is the maximum length of a tag with its own quota, in bytes.
const MaxLen = 64

// Valid reports whether a tag can have a quota of its own: 1 to MaxLen bytes of UTF-8 without control characters.
func Valid(tag string) bool {
	return tag != "" && len(tag) <= MaxLen && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl)
}
