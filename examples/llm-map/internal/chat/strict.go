package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// strict returns a text that is nearly JSON as JSON: what some servers write within it, though JSON has it not, is
// replaced. Those are control characters in strings, by their escapes, and NaN and Infinity, by null. What is wrong
// otherwise stays wrong.
func strict(text []byte) []byte {
	var b bytes.Buffer
	inString, escaped := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c < ' ' && !escaped:
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString:
			if n := noNumber(text[i:]); n > 0 {
				b.WriteString("null")
				i += n - 1
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.Bytes()
}

// noNumbers is what floating point numbers are written as that are none.
var noNumbers = [][]byte{[]byte("-Infinity"), []byte("+Infinity"), []byte("Infinity"), []byte("-NaN"), []byte("NaN")}

// noNumber returns how long the value is at the beginning of a text that is written as one of noNumbers; 0 for none.
func noNumber(text []byte) int {
	for _, word := range noNumbers {
		if bytes.HasPrefix(text, word) {
			return len(word)
		}
	}
	return 0
}

// isMendable tells whether a text has what strict replaces.
func isMendable(text []byte) bool {
	return bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Infinity")) ||
		bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' })
}

// mostValues is how many values of a body are read: no answer has as many chunks.
const mostValues = 1 << 17

// values returns the JSON values that a body begins with, one behind the other, and what stands behind them. err says
// why there is none.
func values(body []byte) (found []json.RawMessage, rest []byte, err error) {
	if json.Valid(body) {
		return []json.RawMessage{body}, nil, nil
	}
	for mended := false; ; mended = true {
		d := json.NewDecoder(bytes.NewReader(body))
		for err = nil; err == nil && len(found) < mostValues; {
			var raw json.RawMessage
			if err = d.Decode(&raw); err == nil {
				found = append(found, raw)
			}
		}
		body = bytes.TrimLeft(body[d.InputOffset():], " \t\r\n\x00")
		if mended || len(body) == 0 || body[0] != '{' && body[0] != '[' || !isMendable(body) {
			break
		}
		body = strict(body)
	}
	if len(found) > 0 {
		err = nil
	}
	return found, body, err
}
