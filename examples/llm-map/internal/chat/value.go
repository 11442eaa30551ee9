package chat

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// An object is a JSON object with unparsed values. Keys are case-sensitive, and the last of duplicate keys counts.
type object = map[string]json.RawMessage

// objectOf returns raw as an object; nil if it is not one.
func objectOf(raw json.RawMessage) object {
	var o object
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// listOf returns raw as a list; nil if it is not one. A single object is a list of one.
func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	if objectOf(raw) != nil {
		return []json.RawMessage{raw}
	}
	return nil
}

// textOf returns raw as a text: a string, or the source of a number, else empty.
func textOf(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// quoted returns a text as a JSON string.
func quoted(text string) json.RawMessage {
	encoded, err := json.Marshal(text)
	if err != nil { // no text fails
		return json.RawMessage(`""`)
	}
	return encoded
}

// whole returns raw as an integer from 0 to 1e9, rounded up: a number or a text with one. 0 for anything else.
func whole(raw json.RawMessage) int {
	const most = 1_000_000_000
	f, err := strconv.ParseFloat(strings.TrimSpace(textOf(raw)), 64)
	if err != nil || !(f > 0 && f <= most) {
		return 0
	}
	return int(math.Ceil(f))
}

// isNothing reports whether raw is missing or an empty value: null, false, 0, or an empty text, list or object.
func isNothing(raw json.RawMessage) bool {
	switch text := string(bytes.TrimSpace(raw)); text {
	case "", "null", "false", "0", `""`, "{}", "[]":
		return true
	}
	return false
}

// first returns the first non-empty value of an object, by the order of keys; nil for none.
func first(o object, keys ...string) json.RawMessage {
	for _, key := range keys {
		if !isNothing(o[key]) {
			return o[key]
		}
	}
	return nil
}

// isWord reports whether a provider's text is fit for results and logs: letters, digits and "_-.", at most 64.
func isWord(text string) bool {
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			return false
		}
	}
	return text != "" && len(text) <= 64
}
