package handlerproxy

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// What a cost and a tag can be, for settings and their faults.
const (
	allowedCost = "a whole number, `bytes/N` with N above 0, `header NAME`, or `json PATH` such as `usage.tokens`"
	allowedTag  = "`header NAME`, `key N` counted from 0, or `json PATH`"
)

// What a cost or a tag is taken from.
type (
	costRule func(value func() []byte, headers func() map[string]string) int
	tagRule  func(keys []string, value func() []byte, headers func() map[string]string) string
)

// parseCost reads a cost; a nil rule is one token for each message. ok is false for a text that is none.
func parseCost(text string) (cost costRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "" || text == "1":
		return nil, true
	case word == "header" && argument != "":
		of := admission.HeaderCost(argument)
		return func(_ func() []byte, headers func() map[string]string) int { return of(headers()) }, true
	case word == "json" && isPath(argument):
		path := strings.Split(argument, ".")
		return func(value func() []byte, _ func() map[string]string) int { return jsonCost(value(), path) }, true
	case strings.HasPrefix(text, "bytes/"):
		per, err := strconv.ParseInt(strings.TrimPrefix(text, "bytes/"), 10, 32)
		if err != nil || per < 1 {
			return nil, false
		}
		of := admission.PayloadCost(int(per))
		return func(value func() []byte, _ func() map[string]string) int { return of(value()) }, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return nil, false
	}
	return func(func() []byte, func() map[string]string) int { return int(n) }, true
}

// parseTag reads a tag; a nil rule is none.
func parseTag(text string) (tag tagRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return nil, true
	case word == "header" && argument != "":
		of := admission.HeaderTag(argument)
		return func(_ []string, _ func() []byte, headers func() map[string]string) string { return of(headers()) }, true
	case word == "key":
		index, err := strconv.ParseUint(argument, 10, 16)
		if err != nil {
			return nil, false
		}
		of := admission.KeyTag(int(index))
		return func(keys []string, _ func() []byte, _ func() map[string]string) string { return of(keys) }, true
	case word == "json" && isPath(argument):
		path := strings.Split(argument, ".")
		return func(_ []string, value func() []byte, _ func() map[string]string) string {
			return jsonTag(value(), path)
		}, true
	}
	return nil, false
}

// isPath tells whether a text is names with dots between them.
func isPath(text string) bool {
	return text != "" && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".") && !strings.Contains(text, "..")
}

// jsonCost is the number that stands at path in a payload, rounded up. A negative one counts as zero. Without a number
// there a message costs one token.
func jsonCost(payload []byte, path []string) int {
	raw, ok := jsonAt(payload, path)
	if !ok {
		return 1
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || math.IsNaN(n) {
		return 1
	}
	return int(min(max(math.Ceil(n), 0), math.MaxInt32))
}

// jsonTag is the text or number that stands at path in a payload; empty for anything else.
func jsonTag(payload []byte, path []string) string {
	raw, ok := jsonAt(payload, path)
	if !ok || raw[0] == '{' || raw[0] == '[' || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// jsonAt returns what stands at path in a payload: a name in an object, an index from 0 in a list.
func jsonAt(payload []byte, path []string) (json.RawMessage, bool) {
	at := json.RawMessage(payload)
	for _, step := range path {
		at = bytes.TrimLeft(at, " \t\r\n")
		if len(at) > 0 && at[0] == '[' {
			var list []json.RawMessage
			i, err := strconv.Atoi(step)
			if err != nil || json.Unmarshal(at, &list) != nil || i < 0 || i >= len(list) {
				return nil, false
			}
			at = list[i]
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return nil, false
		}
		inner, ok := object[step]
		if !ok {
			return nil, false
		}
		at = inner
	}
	at = bytes.TrimSpace(at)
	return at, len(at) > 0
}
