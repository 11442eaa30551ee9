package httpthrottle

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestName is the longest tag that is its own name, in bytes.
const longestName = 128

// nameOf returns the name under which a tag is paused, and which errors and logs show. It is the tag, or the beginning of a hash for one that
// is long or no text: tags may come from anybody, and what is remembered of them must stay small.
func nameOf(tag string) string {
	if len(tag) <= longestName && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl) {
		return tag
	}
	sum := sha256.Sum256([]byte(tag))
	return "sha256-" + hex.EncodeToString(sum[:8])
}
