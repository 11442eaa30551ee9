package admission

import (
	"math"
	"strconv"
)

// PayloadCost returns a cost by size: one token for every per bytes of a payload or
// part of it, at least one. per below 1 counts as 1.
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

// HeaderCost returns a cost that a header tells: a whole decimal number of tokens,
// where less than zero counts as zero. Without the header, or with something else in
// it, the message costs one token.
func HeaderCost(name string) func(headers map[string]string) int {
	return func(headers map[string]string) int {
		n, err := strconv.ParseInt(headers[name], 10, 32)
		if err != nil {
			return 1
		}
		return int(min(max(n, 0), math.MaxInt32))
	}
}

// HeaderTag returns a tag that a header tells; no tag without it.
func HeaderTag(name string) func(headers map[string]string) string {
	return func(headers map[string]string) string { return headers[name] }
}

// KeyTag returns the key at an index, counted from zero, as the tag; no tag where
// there are fewer keys.
func KeyTag(index int) func(keys []string) string {
	return func(keys []string) string {
		if index < 0 || index >= len(keys) {
			return ""
		}
		return keys[index]
	}
}
