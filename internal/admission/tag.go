package admission

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// AllowedTag says what ParseTag takes.
const AllowedTag = "`header NAME`, `key N` counted from 0, or `json PATH`"

// A TagRule is where the tag of a message stands.
type TagRule func(keys []string, value func() []byte, headers func() map[string]string) string

// ParseTag reads a rule: `header NAME`, `key N` counted from 0, `json PATH` such as user.tenant; none for an empty text. ok is
// false for a text that is none of them.
func ParseTag(text string) (tag TagRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "":
		return nil, true
	case word == "header" && argument != "":
		of := HeaderTag(argument)
		return func(_ []string, _ func() []byte, headers func() map[string]string) string { return of(headers()) }, true
	case word == "key":
		index, err := strconv.ParseUint(argument, 10, 16)
		if err != nil {
			return nil, false
		}
		of := KeyTag(int(index))
		return func(keys []string, _ func() []byte, _ func() map[string]string) string { return of(keys) }, true
	case word == "json" && IsPath(argument):
		path := strings.Split(argument, ".")
		return func(_ []string, value func() []byte, _ func() map[string]string) string {
			return jsonTag(value(), path)
		}, true
	}
	return nil, false
}

// IsPath tells whether a text is names with dots between them.
func IsPath(text string) bool {
	return text != "" && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".") && !strings.Contains(text, "..")
}

// jsonTag is the text or number that stands at path in a payload; empty for anything else.
func jsonTag(payload []byte, path []string) string {
	raw, ok := JSONAt(payload, path)
	if !ok || raw[0] == '{' || raw[0] == '[' || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// JSONAt returns what stands at path in a payload: a name in an object, an index from 0 in a list.
func JSONAt(payload []byte, path []string) (json.RawMessage, bool) {
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
