package httpproxy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// The places in which services expect a caller's key, in the form of costrule.Plain.
var (
	keyHeaders = names("authorization api_key x_api_key x_goog_api_key x_auth_token x_access_token ocp_apim_subscription_key")
	// keyQueries are parameters of the query.
	keyQueries = names("key api_key x_api_key x_goog_api_key token access_token auth_token api_token subscription_key " +
		"ocp_apim_subscription_key x_amz_credential")
	// keyParams are those of a scheme that has several, such as Digest or AWS4-HMAC-SHA256.
	keyParams = names("credential username token key keyid api_key access_token oauth_token oauth_consumer_key")
)

// keyTag identifies callers by a hash prefix of their keys, which reveals nothing of the key. The proxy does not know which of several keys
// a service uses, so they must be equal.
func keyTag(m *message) (string, error) {
	keys := map[string]bool{}
	for name, values := range m.req.Header {
		if !keyHeaders[costrule.Plain(name)] {
			continue
		}
		for _, value := range values {
			keys[keyIn(value)] = true
		}
	}
	for name, value := range parameters(m.req.URL.RawQuery) {
		if keyQueries[costrule.Plain(name)] {
			keys[accessKey(value)] = true
		}
	}
	delete(keys, "")
	if len(keys) > 1 {
		return "", proxy.NewError(http.StatusBadRequest, proxy.BadRequest,
			"the request has several keys (not shown) in its headers and query, allowed: one, for the limit is told apart by it")
	}
	for key := range keys {
		sum := sha256.Sum256([]byte(key))
		return "key-" + hex.EncodeToString(sum[:8]), nil
	}
	return "", nil
}

// parameters iterates over the parameters of a query, as services read them: separated by & or ;, and decoded where they can be.
func parameters(query string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
			name, value, _ := strings.Cut(pair, "=")
			if !yield(unescaped(name), unescaped(value)) {
				return
			}
		}
	}
}

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// keyIn returns the key in a value such as "Bearer KEY". It is the same with another scheme or none, with more blanks, and with more words
// behind it. The key of Basic is the user with the password; if one of them is empty, the other one.
func keyIn(value string) string {
	words := strings.Fields(value)
	if len(words) == 0 {
		return ""
	}
	if len(words) > 1 {
		if strings.EqualFold(words[0], "Basic") {
			return basicKey(words[1])
		}
		words = words[1:]
	}
	for part := range strings.SplitSeq(strings.Join(words, " "), ",") {
		name, param, ok := strings.Cut(part, "=")
		if ok && keyParams[costrule.Plain(strings.TrimSpace(name))] {
			return accessKey(strings.Trim(strings.TrimSpace(param), `"`))
		}
	}
	return words[0]
}

// accessKey returns the key of AWS in a credential KEY/DATE/REGION/..., and any other text unchanged.
func accessKey(text string) string {
	if key, _, ok := strings.Cut(text, "/"); ok && strings.HasSuffix(text, "/aws4_request") {
		return key
	}
	return text
}

// basicKey decodes the base64 of Basic like the most lenient services: in either alphabet, with any padding and with other bytes between.
func basicKey(text string) string {
	text, _, _ = strings.Cut(text, "=")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return '+'
		case r == '_':
			return '/'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '+', r == '/':
			return r
		}
		return -1
	}, text)
	if len(text)%4 == 1 {
		text = text[:len(text)-1] // of less than a byte
	}
	pair, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return text
	}
	user, password, ok := strings.Cut(string(pair), ":")
	if !ok || user == "" || password == "" {
		return user + password
	}
	return user + ":" + password
}
