package httpproxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// maxTag is the longest tag, in bytes.
const maxTag = 256

// keyHeaders are the headers in which services expect a caller's key.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// keyTag identifies callers by a hash prefix of their keys, which reveals nothing of the key. The proxy does not know which of several keys
// a service uses, so they must be equal.
func keyTag(m *message) (string, error) {
	key := ""
	for _, name := range keyHeaders {
		for _, value := range m.req.Header.Values(name) {
			if scheme, rest, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
				value = strings.TrimSpace(rest) // one key has one tag, in any form
			}
			if value != "" && key != "" && value != key {
				return "", proxy.NewError(http.StatusBadRequest, proxy.BadRequest,
					"the request has several keys (not shown), allowed: one, for the limit is told apart by it")
			}
			key = cmp.Or(value, key)
		}
	}
	if key == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(key))
	return "key-" + hex.EncodeToString(sum[:8]), nil
}

// headerTag takes the tag from a header, which must not occur with different values: a service may use either.
func headerTag(name string) func(m *message) (string, error) {
	return func(m *message) (string, error) {
		values := m.req.Header.Values(name)
		for _, value := range values {
			if value != values[0] {
				return "", proxy.FieldError("header "+name, fmt.Sprintf("%.40q and %.40q", values[0], value), "one value")
			}
		}
		return m.req.Header.Get(name), nil
	}
}

// checkTag returns an error for an invalid tag of a caller.
func checkTag(tag string) error {
	if len(tag) <= maxTag && utf8.ValidString(tag) && !strings.ContainsFunc(tag, unicode.IsControl) {
		return nil
	}
	return proxy.FieldError("tag", fmt.Sprintf("%.40q", tag), fmt.Sprintf("up to %d bytes of text without control characters", maxTag))
}
