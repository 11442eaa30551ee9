package admission

import (
	"log/slog"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// PayloadCost returns a cost by size: one token for every per bytes of a payload or part of it, at least one. A per below 1 counts as 1.
func PayloadCost(per int) func(value []byte) int {
	per = max(per, 1)
	return func(value []byte) int {
		n := len(value) / per
		if len(value)%per > 0 {
			n++
		}
		return max(n, 1)
	}
}

// HeaderCost returns a cost that a header contains, read by costrule.Number. Without the header a message costs one token. With anything
// else in it, the cost is costrule.Ungrantable, so that the message is denied, and the log says why.
func HeaderCost(name string) func(headers map[string]string) int {
	return headerCost(name, costrule.Ungrantable, "the message is denied, with the reason too_large")
}

// ReadHeaderCost is HeaderCost for a message that is read already and cannot be denied: it costs one token if its header cannot be read.
func ReadHeaderCost(name string) func(headers map[string]string) int {
	return headerCost(name, 1, ReadAlready)
}

// ReadAlready describes the effect of an unreadable cost in a source.
const ReadAlready = "the message has been read already, and counts as one token"

func headerCost(name string, unreadable int, outcome string) func(headers map[string]string) int {
	var complaint costrule.Complaint
	return func(headers map[string]string) int {
		text, ok := headers[name]
		if !ok {
			return 1
		}
		n, ok := costrule.Number(text)
		if !ok {
			complaint.Tell(slog.Default(), "header "+name, text, outcome)
			return unreadable
		}
		return n
	}
}

// HeaderTag returns the tag in a header; no tag without it.
func HeaderTag(name string) func(headers map[string]string) string {
	return func(headers map[string]string) string { return headers[name] }
}

// KeyTag returns the key at an index, counted from zero, as the tag; no tag if there are fewer keys.
func KeyTag(index int) func(keys []string) string {
	return func(keys []string) string {
		if index < 0 || index >= len(keys) {
			return ""
		}
		return keys[index]
	}
}
