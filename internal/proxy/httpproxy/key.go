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
	keyHeaders = costrule.Names("authorization api_key x_api_key x_goog_api_key x_auth_token x_access_token ocp_apim_subscription_key")
	// keyQueries are parameters of the query.
	keyQueries = costrule.Names("key api_key x_api_key x_goog_api_key token access_token auth_token api_token subscription_key " +
		"ocp_apim_subscription_key x_amz_credential x_goog_credential x_oss_credential aws_access_key_id google_access_id oss_access_key_id")
	// plainSchemes have nothing but a key.
	plainSchemes = costrule.Names("bearer token api_key basic")
	// schemeParams are the parameters with the key, of schemes that have others too. With any other scheme or none it is the first one of
	// keyParams that is there, whatever the order in the header is.
	schemeParams = map[string][]string{
		"token": {"token"}, "bearer": {"token"}, "digest": {"username"}, "oauth": {"oauthconsumerkey"}, "signature": {"keyid"}, "hawk": {"id"},
	}
	keyParams = []string{"credential", "username", "token", "keyid", "key", "apikey", "accesstoken", "oauthconsumerkey", "oauthtoken"}
	// signedSchemes have the key and a signature: KEY:SIGNATURE.
	signedSchemes = costrule.Names("aws goog1 shared_key shared_key_lite")
)

// keyPlaces are where a rule reads keys: in all places, or only in these.
var keyPlaces = map[string]struct{ headers, query bool }{"": {true, true}, "headers": {headers: true}, "query": {query: true}}

// keyTag identifies callers by a hash prefix of their keys, which reveals nothing of the key. The proxy does not know which of several keys
// a service uses, so they must be equal: else callers would choose their tags by keys that the service ignores. Where the query has other data
// by the name of a key, or requests need two keys, the operator says in which place the one is.
func keyTag(place string) func(m *message) (string, error) {
	read := keyPlaces[place]
	return func(m *message) (string, error) {
		keys := map[string]bool{}
		if read.headers {
			headerKeys(m.req.Header, keys)
		}
		if read.query {
			queryKeys(m.req.URL.RawQuery, keys)
		}
		return tagOfKeys(keys)
	}
}

func headerKeys(h http.Header, keys map[string]bool) {
	for name, values := range h {
		if !keyHeaders[costrule.Plain(name)] {
			continue
		}
		for _, value := range values {
			for _, key := range keysIn(value, costrule.Plain(name) == "authorization") {
				keys[key] = true
			}
		}
	}
}

// inPHP drops what PHP takes for an underscore in the name of a parameter.
var inPHP = strings.NewReplacer(".", "", " ", "")

func queryKeys(query string, keys map[string]bool) {
	for name, value := range parameters(query) {
		if keyQueries[costrule.Plain(inPHP.Replace(name))] {
			keys[accessKey(value)] = true
		}
	}
}

func tagOfKeys(keys map[string]bool) (string, error) {
	delete(keys, "")
	if len(keys) > 1 {
		return "", proxy.NewError(http.StatusBadRequest, proxy.BadRequest,
			"the request has several keys (not shown), allowed: one, for it tells callers apart. "+
				"With tag: key headers, or tag: key query, the proxy reads them only there")
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

// keysIn returns the key in a header such as "Bearer KEY"; several if a parameter is there several times. It is the same with another scheme
// or none, with more blanks, and in Authorization with more words behind it. The key of Basic is the user with the password; if one of them
// is empty, the other one.
func keysIn(header string, authorization bool) []string {
	words := strings.Fields(header)
	scheme := ""
	for len(words) > 1 && (plainSchemes[costrule.Plain(words[0])] || authorization && scheme == "") {
		scheme, words = costrule.Plain(words[0]), words[1:]
		if scheme == "basic" {
			return []string{basicKey(words[0])}
		}
	}
	switch {
	case len(words) == 0:
		return nil
	case !authorization:
		return []string{strings.Join(words, " ")}
	case signedSchemes[scheme]:
		key, _, _ := strings.Cut(words[0], ":")
		return []string{key}
	}
	params := schemeParams[scheme]
	if params == nil && !plainSchemes[scheme] {
		params = keyParams
	}
	for _, param := range params {
		if keys := valuesOfParam(strings.Join(words, " "), param); len(keys) > 0 {
			return keys
		}
	}
	if plainSchemes[scheme] { // Rails has parameters behind a key, too
		words[0], _, _ = strings.Cut(words[0], ",")
		words[0], _, _ = strings.Cut(words[0], ";")
	}
	return words[:1]
}

// valuesOfParam returns the values of a parameter in a list such as a="1", b=2, or with semicolons.
func valuesOfParam(list, param string) (values []string) {
	for part := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSuffix(strings.TrimSpace(name), "*") // in the notation with a charset
		if ok && costrule.Plain(name) == param {
			end := " \t"
			if value = strings.TrimSpace(value); strings.HasPrefix(value, `"`) {
				value, end = value[1:], `"`
			}
			if i := strings.IndexAny(value, end); i >= 0 {
				value = value[:i]
			}
			values = append(values, accessKey(value))
		}
	}
	return values
}

// accessKey returns the key in a credential KEY/DATE/REGION/.../aws4_request or its like, and any other text unchanged.
func accessKey(text string) string {
	if key, _, ok := strings.Cut(text, "/"); ok && strings.HasSuffix(text, "_request") {
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
