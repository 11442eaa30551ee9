package main

import (
	"net/url"
	"regexp"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/redact"
)

// keyLike matches keys and parts of them: text with the prefix of a key, text after Bearer, and text masked with stars.
var keyLike = regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(sk|pk|rk|gsk|xai|hf|key)[-_][A-Za-z0-9_*.-]{4,}|[^\s"',;:]*\*{2,}[^\s"',;:]*`)

// redactor returns a redactor for the secrets of a call: its key, and the user's headers. Of a header, single words are secret only in a login.
func (c *client) redactor(key string) *redact.Redactor {
	logins, others := []string{key}, []string(nil)
	for name, values := range c.header {
		for _, value := range values {
			switch {
			case redact.IsSecretName(name) || login.MatchString(value):
				logins = append(logins, value)
			case name != "Accept" && name != "Content-Type" && name != "Anthropic-Version":
				others = append(others, value)
			}
		}
	}
	return redact.New(logins...).With(others...)
}

// login matches the value of a header that logs in, whatever the header's name.
var login = regexp.MustCompile(`(?i)^(bearer|basic|digest|token|key|api-?key)\s`)

// longestSearched is how much of a provider's words is searched for secrets: far more than is shown.
const longestSearched = 16 << 10

// hide removes secrets from the words of a provider or a model.
func hide(f *chat.Fault, r *redact.Redactor) {
	f.Code, f.Param = r.Word(f.Code), r.Word(f.Param)
	f.Answer.Model, f.Answer.FinishReason = r.Text(f.Answer.Model), r.Text(f.Answer.FinishReason)
	words := r.Text(f.Words[:min(len(f.Words), longestSearched)])
	if f.Kind == chat.Provider { // a model may write with stars
		words = keyLike.ReplaceAllString(words, redact.Hidden)
	}
	f.Words = chat.Line(words)
}

// A hushed error has a text without secrets: net/http repeats lines of a broken response.
type hushed struct {
	error

	text string
}

func (e *hushed) Error() string { return e.text }
func (e *hushed) Unwrap() error { return e.error }

// hush removes secrets from the text of an error of the connection.
func hush(err error, r *redact.Redactor) error {
	at, ok := err.(*url.Error) //nolint:errorlint // what http.Client returns
	if ok {
		err = at.Err
	}
	if text := r.Text(err.Error()); text != err.Error() {
		err = &hushed{err, text}
	}
	if ok {
		at.Err = err
		return at
	}
	return err
}
