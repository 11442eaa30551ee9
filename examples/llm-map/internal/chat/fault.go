package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// A Kind says what an answer was that is of no use.
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
	// Filtered: a filter of the provider took the answer away.
	Filtered Kind = "content_filter"
	// Broken: the answer ended before it was whole.
	Broken Kind = "broken_answer"
	// Provider: an error of the provider, with whatever status.
	Provider Kind = "provider_error"
)

// A Fault is why a body holds no answer.
type Fault struct { //nolint:errname // it is what an answer is, and an error only on its way
	Kind Kind
	// Code is the provider's word for it; empty for none. It is letters, digits and "_.-", at most 64 of them.
	Code string
	// Status is the HTTP status that the body says it stands for; 0 when it says none.
	Status int
	// Param is the parameter of the request that a Provider fault is about; empty for none. As Code.
	Param string
	// Words is what the provider or the model says, as it came: of any length, and it may repeat what was in the
	// request, or a key. See Line.
	Words string
	// Answer is what of the answer is known. It has no text.
	Answer Answer
	// Body is what the fault was read from, as a JSON object; nil for other kinds than Provider.
	Body []byte

	guessed bool // the status is by the words alone
}

// Error says kind and code, and nothing of what the answer holds.
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
