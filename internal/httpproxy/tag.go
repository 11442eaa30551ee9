package httpproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/apierror"
)

// maxTag is the longest tag, in bytes.
const maxTag = 256

// keyHeaders are where services look for the key of a caller.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// keyTag tells callers apart by their keys, of which it shows nothing: it is the beginning of a hash.
func keyTag(m *message) string {
	for _, name := range keyHeaders {
		if key := m.req.Header.Get(name); key != "" {
			sum := sha256.Sum256([]byte(key))
			return "key-" + hex.EncodeToString(sum[:8])
		}
	}
	return ""
}

// checkTag returns an error for a tag that a caller may not send.
func checkTag(tag string) error {
	if len(tag) <= maxTag && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl) {
		return nil
	}
	return apierror.Field("tag", fmt.Sprintf("%.40q", tag), fmt.Sprintf("up to %d bytes of text without control characters", maxTag))
}
