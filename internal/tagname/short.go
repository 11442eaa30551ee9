package tagname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestShown is the maximum length of a tag that is its own short name, in bytes.
const longestShown = 128

// Short returns the name of a tag for errors, logs and memory. It is the tag, or a hash prefix if the tag is long, invalid UTF-8, or has
// control characters: tags come from messages, and so from anybody.
func Short(tag string) string {
	if len(tag) <= longestShown && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl) {
		return tag
	}
	return Hashed(tag)
}

// Hashed returns a hash prefix in place of a name, of 23 bytes.
func Hashed(tag string) string {
	sum := sha256.Sum256([]byte(tag))
	return "sha256-" + hex.EncodeToString(sum[:8])
}
