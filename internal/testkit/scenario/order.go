package scenario

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An Order is a command's words and settings, without its name. Both are taken from it.
type Order struct {
	T *testing.T
	// Line is the line that it is on, for messages, and More the indented lines below.
	Line, More string

	Words []string
	Set   map[string]string
}

// NewOrder returns the order of a text.
func NewOrder(t *testing.T, line, text string) *Order {
	t.Helper()
	o := &Order{T: t, Line: line, Set: map[string]string{}}
	for w := range strings.FieldsSeq(text) {
		if key, value, ok := strings.Cut(w, "="); ok {
			o.Set[key] = value
		} else {
			o.Words = append(o.Words, w)
		}
	}
	return o
}

// Word takes the next word.
func (o *Order) Word(without string) string {
	if len(o.Words) == 0 {
		return without
	}
	defer func() { o.Words = o.Words[1:] }()
	return o.Words[0]
}

// Rest takes all words that are left.
func (o *Order) Rest() []string {
	defer func() { o.Words = nil }()
	return o.Words
}

// Is takes a word that may stand anywhere.
func (o *Order) Is(word string) bool {
	before := len(o.Words)
	o.Words = slices.DeleteFunc(o.Words, func(w string) bool { return w == word })
	return len(o.Words) < before
}

// Value takes a setting.
func (o *Order) Value(key string) string {
	defer delete(o.Set, key)
	return o.Set[key]
}

// Count takes a number of tokens.
func (o *Order) Count(without string) int { return int(o.Number(o.Word(without))) }

// Number returns the number that a word is, or the seconds of a time; 0 for no word.
func (o *Order) Number(word string) float64 {
	f, ok := figure(cmp.Or(word, "0"))
	require.True(o.T, ok, "%s: %q is no number", o.Line, word)
	return f
}

// Time returns the time that a word is.
func (o *Order) Time(word string) time.Duration { return time.Duration(o.Number(word) * 1e9) }
