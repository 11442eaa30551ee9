package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A Text is the template of a body, a header or a key. Its methods are safe for concurrent use.
type Text struct{ tmpl *template.Template }

// ParseText parses a template. name is its name in errors.
func ParseText(name, source string) (*Text, error) {
	t, err := parseTemplate(name, source)
	if err != nil {
		return nil, err
	}
	return &Text{t}, nil
}

// Render returns the text for a message. Errors contain nothing of the message's payload.
func (t *Text) Render(m *Message) (string, error) { return execute(t.tmpl, m) }

func parseTemplate(name, source string) (*template.Template, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(functions).Parse(source)
	if err != nil {
		return nil, errors.New("is no template: " + withoutText(err))
	}
	if err := program.TemplateFields(t, messageFields...); err != nil {
		return nil, fmt.Errorf("is no template for a message: %w", err)
	}
	return t, nil
}

// messageFields are those of a Message.
var messageFields = []string{"ID", "Key", "Keys", "Value", "JSON", "Headers", "EventTime", "Watermark"}

// execute runs a template.
func execute(t *template.Template, m *Message) (string, error) {
	var b bytes.Buffer
	if err := t.Execute(&limited{buffer: &b}, m); err != nil {
		if errors.Is(err, errTooLong) {
			return "", fmt.Errorf("%s: %w", t.Name(), errTooLong)
		}
		return "", fmt.Errorf("the template of %s failed for this message", t.Name())
	}
	return b.String(), nil
}

// longestText bounds the output of a template for one message.
const longestText = 64 << 20

var errTooLong = fmt.Errorf("the text is longer than %d bytes", longestText)

type limited struct{ buffer *bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.buffer.Len()+len(p) > longestText {
		return 0, errTooLong
	}
	return l.buffer.Write(p)
}

// withoutText returns a parser's message, up to where it repeats the template.
func withoutText(err error) string {
	text := err.Error()
	for _, quote := range `"<` + "`" {
		text, _, _ = strings.Cut(text, string(quote))
	}
	return text
}
