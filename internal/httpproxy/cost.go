package httpproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/apierror"
)

// What settings and their faults say is allowed.
const (
	allowedCost   = "a whole number, `bytes/N` with N above 0, `header NAME`, `json PATH` such as `options.tokens`, or `llm`"
	allowedTag    = "`header NAME`, `json PATH` such as `model`, `key` (who the request is from) or `host`"
	allowedSettle = "`drawn`, `usage` or `header NAME`"
)

// maxCost is the largest cost of a request.
const maxCost = 1_000_000_000

// A message is a request as rules see it.
type message struct {
	req *http.Request
	// host is where it goes.
	host string
	// body is what was read of it, and whole tells that this is all.
	body  []byte
	whole bool
}

// length is how long the body is, or as far as it is known.
func (m *message) length() int64 { return max(m.req.ContentLength, int64(len(m.body))) }

type (
	costRule func(m *message) (int, error)
	tagRule  func(m *message) string
)

// parseCost reads what a request costs. ok is false for a text that says nothing.
func parseCost(text string) (rule costRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return func(*message) (int, error) { return 1, nil }, true
	case text == "llm":
		return llmCost, true
	case word == "header" && isHeaderName(argument):
		return headerCost(argument), true
	case word == "json" && isPath(argument):
		return jsonCost(argument), true
	case strings.HasPrefix(text, "bytes/"):
		per, err := strconv.ParseInt(text[len("bytes/"):], 10, 32)
		return func(m *message) (int, error) { return int(min((m.length()+per-1)/per, maxCost)), nil }, err == nil && per > 0
	}
	n, err := strconv.Atoi(text)
	return func(*message) (int, error) { return n, nil }, err == nil && n >= 0 && n <= maxCost
}

// headerCost takes the cost from a header. Without it a request costs one token.
func headerCost(name string) costRule {
	return func(m *message) (int, error) {
		text := m.req.Header.Get(name)
		if text == "" {
			return 1, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxCost {
			return 0, apierror.Field("header "+name, fmt.Sprintf("%.40q", text), fmt.Sprintf("a whole number, 0 to %d", maxCost))
		}
		return n, nil
	}
}

// jsonCost takes the cost from a field of the body. Without a number there a request costs one token.
func jsonCost(path string) costRule {
	return func(m *message) (int, error) {
		raw, ok := m.field(path)
		if !ok {
			return 1, nil
		}
		n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
		if isNumber := err == nil && !math.IsNaN(n); !isNumber {
			return 1, nil
		}
		return int(min(max(math.Ceil(n), 0), maxCost)), nil
	}
}

// What a request to an LLM is taken to cost: four bytes of it are a token, and an answer is as long as it may be.
const (
	bytesPerToken = 4
	outputTokens  = 1024
)

// llmCost is an estimate, for the usage in the answer to correct.
func llmCost(m *message) (int, error) {
	output := 0
	for _, path := range []string{"max_completion_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens"} {
		if raw, ok := m.field(path); ok {
			if n, err := strconv.Atoi(string(raw)); err == nil && n > 0 {
				output = min(n, maxCost)
				break
			}
		}
	}
	if output == 0 {
		output = outputTokens
	}
	if raw, ok := m.field("n"); ok {
		if n, err := strconv.Atoi(string(raw)); err == nil && n > 1 && n <= 128 {
			output *= n
		}
	}
	return min(int(m.length()/bytesPerToken)+output, maxCost), nil
}

// parseTag reads for whom a request draws; a nil rule is nobody.
func parseTag(text string) (rule tagRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return nil, true
	case text == "host":
		return func(m *message) string { return m.host }, true
	case text == "key":
		return keyTag, true
	case word == "header" && isHeaderName(argument):
		return func(m *message) string { return m.req.Header.Get(argument) }, true
	case word == "json" && isPath(argument):
		return func(m *message) string {
			raw, ok := m.field(argument)
			var text string
			if ok && json.Unmarshal(raw, &text) == nil {
				return text
			}
			return ""
		}, true
	}
	return nil, false
}

// field returns what stands at path in a body of JSON: names of objects, with dots between them.
func (m *message) field(path string) (json.RawMessage, bool) {
	at := json.RawMessage(m.body)
	if !m.whole || len(at) == 0 {
		return nil, false
	}
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return nil, false
		}
		inner, ok := object[name]
		if !ok {
			return nil, false
		}
		at = inner
	}
	at = bytes.TrimSpace(at)
	return at, len(at) > 0 && !bytes.Equal(at, []byte("null"))
}

func isPath(text string) bool {
	return text != "" && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".") && !strings.Contains(text, "..")
}

func isHeaderName(text string) bool {
	for _, r := range text {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return text != ""
}
