package httpproxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// The allowed values in settings and their faults.
const (
	allowedCost = "a whole number, `bytes/N` with N above 0, `header NAME` (one that is passed on), `json PATH` such as `options.tokens`, or `llm`"
	allowedTag  = "`header NAME` (one that is passed on), `json PATH` such as `model`, " +
		"`key` (who the request is from; `key headers` or `key query`: only by a key there) or `host`"
	allowedSettle = "`drawn`, `usage` or `header NAME`"
)

// maxCost is the largest cost in a setting or an answer.
const maxCost = 1_000_000_000

// A costRule computes the cost of a request.
type costRule struct {
	// draw returns how many tokens to draw.
	draw func(m *message) (int, error)
	// passed returns the final cost after so many bytes of its body were sent beyond those that were read; nil: the drawn tokens.
	passed func(m *message, bytes int64) int
	// path is the field of the body to read; nil for none.
	path costrule.Path
	// estimates reports whether it reads the whole body.
	estimates bool
	// tunnels reports whether bytes sent in a tunnel count, too.
	tunnels bool
}

// A tagRule selects the tag of a request.
type tagRule struct {
	of   func(m *message) (string, error) // nil: no tag
	path costrule.Path                    // as in a costRule
}

// parseCost parses a cost rule. ok is false for an invalid text.
func parseCost(text string) (rule costRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return fixedCost(1), true
	case text == costLLM: // the call says it; see llmCall
		return costRule{draw: func(*message) (int, error) { return 1, nil }, passed: func(*message, int64) int { return 1 }, estimates: true}, true
	case word == "header" && isRuleHeader(argument):
		return costRule{draw: headerCost(argument)}, true
	case word == "json":
		path, ok := costrule.ParsePath(argument)
		return costRule{draw: jsonCost(path), path: path}, ok
	case strings.HasPrefix(text, "bytes/"):
		per, err := strconv.ParseInt(text[len("bytes/"):], 10, 32)
		if err != nil || per < 1 {
			return costRule{}, false
		}
		return bytesCost(per), true
	}
	n, err := strconv.Atoi(text)
	return fixedCost(n), err == nil && n >= 0 && n <= maxCost
}

func fixedCost(n int) costRule {
	return costRule{draw: func(*message) (int, error) { return n, nil }}
}

// bytesCost charges a token for per bytes of the body or part of them. A websocket draws at least one, because its sent bytes are settled
// with its permit.
func bytesCost(per int64) costRule {
	tokens := func(n int64) int { return int(min((n+per-1)/per, costrule.Ungrantable)) }
	return costRule{
		draw: func(m *message) (int, error) {
			if isHandshake(m.req) {
				return 1, nil
			}
			return tokens(m.length()), nil
		},
		passed:  func(m *message, bytes int64) int { return tokens(int64(len(m.body)) + bytes) },
		tunnels: true,
	}
}

// headerCost takes the cost from a header. Without it a request costs one token.
func headerCost(name string) func(m *message) (int, error) {
	return func(m *message) (int, error) {
		values, err := valuesOf(m.req.Header, name)
		if len(values) == 0 || err != nil {
			return 1, err
		}
		most := 0
		for _, text := range values {
			n, ok := costrule.Number(text)
			if !ok {
				return 0, noNumber("header "+name, text)
			}
			most = max(most, n)
		}
		return most, nil
	}
}

// jsonCost takes the cost from a field of the body. Without a value there, a request costs one token.
func jsonCost(path costrule.Path) func(m *message) (int, error) {
	place := "json " + strings.Join(path, ".")
	return func(m *message) (int, error) {
		if !m.whole {
			return 0, notRead("cost", place)
		}
		v, ok, fault := m.field(path)
		switch {
		case fault != "":
			return 0, &unreadableError{place, notJSON("cost", place, fault)}
		case !ok:
			return 1, nil
		}
		n, ok := v.Number()
		if !ok {
			return 0, noNumber(place, v.Shown())
		}
		return n, nil
	}
}

// An unreadableError is a cost that cannot be read, with its place and the response to the client.
type unreadableError struct {
	place  string
	answer *proxy.Error
}

// Error implements error.
func (e *unreadableError) Error() string { return e.answer.Message }

func noNumber(place, text string) error {
	return &unreadableError{place, proxy.FieldError(place, costrule.Shown(text), costrule.AllowedNumber)}
}

// parseTag parses a tag rule; a rule without a function means no tag. ok is false for an invalid text.
func parseTag(text string) (rule tagRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return tagRule{}, true
	case text == "host":
		return tagRule{of: hostTag}, true
	case word == "key":
		_, ok := keyPlaces[argument]
		return tagRule{of: keyTag(argument)}, ok
	case word == "header" && isRuleHeader(argument):
		return tagRule{of: headerTag(argument)}, true
	case word == "json":
		path, ok := costrule.ParsePath(argument)
		return tagRule{path: path, of: jsonTag(path)}, ok
	}
	return tagRule{}, false
}

// jsonTag takes the tag from a field of the body.
func jsonTag(path costrule.Path) func(m *message) (string, error) {
	place := "json " + strings.Join(path, ".")
	return func(m *message) (string, error) {
		v, ok, fault := m.field(path)
		switch {
		case fault != "":
			return "", notJSON("tag", place, fault)
		case !ok && !m.whole:
			return "", notRead("tag", place)
		case v.Kind == costrule.Object, v.Kind == costrule.List:
			return "", proxy.FieldError(place, v.Shown(), "a text, a number, true or false")
		}
		return v.Tag(), nil
	}
}

// ending are headers that are not passed on as they came, so that no rule can read them.
var ending = []string{
	"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", tokenHeader,
}

// isRuleHeader reports whether a text is the name of a header that a rule can read.
func isRuleHeader(text string) bool {
	return isHeaderName(text) && !slices.Contains(ending, http.CanonicalHeaderKey(text))
}

func isHeaderName(text string) bool {
	for _, r := range text {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return text != ""
}
