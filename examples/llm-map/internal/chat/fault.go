package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// A Kind is the kind of an unusable answer.
type Kind string

// The kinds of faults.
const (
	// NoBody: the body is empty.
	NoBody Kind = "no_body"
	// NotJSON: the body is something else, such as a page, or ends in the middle.
	NotJSON Kind = "not_json"
	// NoChoices: JSON without a choice, and without an error.
	NoChoices Kind = "no_choices"
	// Empty: a choice with neither text nor calls of tools.
	Empty Kind = "empty_answer"
	// Refused: the model declined.
	Refused Kind = "refusal"
	// Filtered: a filter of the provider removed the answer.
	Filtered Kind = "content_filter"
	// Broken: the answer ended before it was complete.
	Broken Kind = "broken_answer"
	// Provider: an error of the provider, with any status.
	Provider Kind = "provider_error"
)

// A Fault says why a body contains no answer.
type Fault struct { //nolint:errname // it is what an answer is, and an error only on its way
	Kind Kind
	// Code is the provider's word for it; empty for none. It is letters, digits and "_.-", at most 64 of them.
	Code string
	// Status is the HTTP status that the body implies; 0 for none.
	Status int
	// Param is the request parameter that caused a Provider fault; empty for none. Its form is that of Code.
	Param string
	// Words is the text of the provider or the model, unchanged: of any length, and it may repeat parts of the request, or a key. See Line.
	Words string
	// Answer is the known part of the answer. It has no text.
	Answer Answer
	// Body is the source of the fault, as a JSON object; nil for other kinds than Provider.
	Body []byte

	guessed bool // the status follows only from the words
}

// Error returns kind and code, and nothing of the answer's content.
func (f *Fault) Error() string {
	if f.Code != "" && f.Code != string(f.Kind) {
		return fmt.Sprintf("chat: %s, code %s", f.Kind, f.Code)
	}
	return "chat: " + string(f.Kind)
}

const longestWords = 300

// Line returns a text as one line without control characters, cut to longestWords.
func Line(text string) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = b.Len() > 0
			continue
		}
		if n >= longestWords {
			return b.String() + "..."
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
