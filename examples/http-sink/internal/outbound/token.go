package outbound

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
)

// A token is a token from a token endpoint.
type token struct {
	kind, text string
	expiry     time.Time // zero: unknown; it is used until the service refuses it
}

// header returns the value of the header Authorization.
func (t *token) header() string { return t.kind + " " + t.text }

// longestToken caps the life of a token.
const longestToken = 10 * 365 * 24 * time.Hour

var (
	errNoToken  = errors.New("its answer holds no token")
	errBadToken = errors.New("its token cannot be sent: it is not visible ASCII, or its type is no word")
)

// parseToken parses the response of a token endpoint, independently of its Content-Type: JSON if it looks like it, else the form of a
// query, as GitHub sends. code is an error code in it, which may come with status 200.
func parseToken(body []byte, now time.Time) (t *token, code string, err error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff")))
	get := func(string) string { return "" }
	text := func(name string) string { return get(name) }
	if bytes.HasPrefix(body, []byte("{")) {
		var fields map[string]json.RawMessage
		// Unreadable JSON is no token; json's own error might repeat it.
		if json.Unmarshal(body, &fields) != nil {
			return nil, "", errNoToken
		}
		get = func(name string) string { return scalar(fields[name]) }
		text = func(name string) (text string) {
			if json.Unmarshal(fields[name], &text) != nil {
				return "" // nothing else is a token
			}
			return text
		}
	} else if values, err := url.ParseQuery(string(body)); err == nil {
		get = values.Get
	}
	if code := get("error"); code != "" {
		return nil, knownCode(code), errNoToken
	}
	t = &token{kind: tokenKind(get("token_type")), text: text("access_token")}
	switch {
	case t.text == "":
		return nil, "", errNoToken
	case config.HeaderProblem(t.text) != "", t.kind == "":
		return nil, "", errBadToken
	}
	if life := lifetime(get("expires_in")); life > 0 {
		t.expiry = now.Add(life)
	}
	return t, "", nil
}

// scalar returns a JSON value as text: a string, a number or a boolean unchanged, and for an object the name of the error.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		for _, name := range []string{"error", "code", "type", "status"} {
			if inner, ok := object[name]; ok {
				return strings.Trim(string(inner), `"`)
			}
		}
		if object != nil {
			return "error"
		}
		return "" // null
	}
	return string(raw)
}

// lifetime parses expires_in: seconds as a number of any form, or as text. It returns 0 for invalid values, and for values not above 0: a
// new token is valid.
func lifetime(text string) time.Duration {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	if seconds >= longestToken.Seconds() {
		return longestToken
	}
	return time.Duration(seconds * float64(time.Second))
}

// tokenKind returns the scheme of the header Authorization for a token_type: Bearer if there is none, and in the usual case; empty if it is
// not a word.
func tokenKind(text string) string {
	text = strings.TrimSpace(text)
	switch strings.ToLower(text) {
	case "", "bearer":
		return "Bearer"
	case "mac":
		return "MAC"
	case "basic":
		return "Basic"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
		return ""
	}
	return text
}

// The errors of RFC 6749, section 5.2, and two of section 4.1.2.1: permanent faults of a client. Only these are shown, because others may
// repeat sent data.
var deniedCodes = []string{
	"invalid_client", "unauthorized_client", "invalid_grant", "invalid_scope", "invalid_request", "unsupported_grant_type", "access_denied",
	"incorrect_client_credentials", // GitHub's
}

var busyCodes = []string{"temporarily_unavailable", "server_error", "slow_down"}

func knownCode(code string) string {
	if slices.Contains(deniedCodes, code) || slices.Contains(busyCodes, code) {
		return code
	}
	return "an error of its own"
}

// A TokenError says why there is no token. It contains nothing of the endpoint's response.
type TokenError struct {
	// RetryAfter is when the endpoint is asked again.
	RetryAfter time.Duration

	why string
}

// Error is the same for all messages, because the platform counts failures by their text.
func (e *TokenError) Error() string { return "no token: " + e.why }

// A refusal is a response of a token endpoint without a token.
type refusal struct {
	status int    // 0: there was no response
	code   string // of OAuth; empty for none
	err    error  // the cause besides the status
	unread bool   // the client's secret could not be read, and no request was made
	after  time.Duration
}

// Error implements error.
func (r *refusal) Error() string {
	switch {
	case r.unread:
		return r.err.Error()
	case r.status == 0 && errors.Is(r.err, dialguard.ErrAddress):
		return dialguard.ErrAddress.Error()
	case r.status == 0:
		return "the token endpoint could not be reached"
	case r.code != "":
		return fmt.Sprintf("the token endpoint answered with status %d (%s)", r.status, r.code)
	case r.status >= 300:
		return fmt.Sprintf("the token endpoint answered with status %d", r.status)
	}
	return "the token endpoint answered, but " + r.err.Error()
}

// denied reports whether the endpoint will give the same answer until somebody changes something.
func (r *refusal) denied() bool {
	if r.code != "" {
		return slices.Contains(deniedCodes, r.code)
	}
	switch r.status {
	case 400, 401, 403, 404, 405: //nolint:mnd // see net/http
		return true
	}
	return false
}
