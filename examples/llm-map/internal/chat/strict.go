package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// strict converts a text that is nearly JSON to JSON. It replaces invalid parts that some servers write: control characters in strings by
// their escapes, and NaN and Infinity by null. Other faults stay.
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

// noNumbers are the spellings of floating-point values that are not numbers.
var noNumbers = [][]byte{[]byte("-Infinity"), []byte("+Infinity"), []byte("Infinity"), []byte("-NaN"), []byte("NaN")}

// noNumber returns the length of a value in noNumbers at the beginning of a text; 0 for none.
func noNumber(text []byte) int {
	for _, word := range noNumbers {
		if bytes.HasPrefix(text, word) {
			return len(word)
		}
	}
	return 0
}

// isMendable reports whether a text has parts that strict replaces.
func isMendable(text []byte) bool {
	return bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Infinity")) ||
		bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' })
}

// mostValues bounds the values of a body: no answer has as many chunks.
const mostValues = 1 << 17

// values returns the consecutive JSON values at the beginning of a body, and the rest. err is the reason if there is none.
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
