package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
	"unicode/utf8"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/templatecheck"
)

// A prompt makes the messages of a call from a message of the pipeline. The templates
// are the operator's, the message is anybody's: whatever is in it is data, and
// never part of a template. Templates reach nothing but the message, have the functions
// of allowedFunctions only, and write at most maxPrompt bytes. It may be used from any
// number of goroutines at once.
type prompt struct {
	system, user *template.Template
	wantsJSON    bool // one of them looks at the payload as JSON
}

// maxPrompt is the longest prompt that a template may write, in bytes.
const maxPrompt = 8 << 20

// ownFunctions is what templates can do beyond what is built in.
var ownFunctions = template.FuncMap{
	"json":  toJSON,
	"lower": strings.ToLower,
	"upper": strings.ToUpper,
	"trim":  strings.TrimSpace,
	"join":  join,
	"cut":   cut,
}

// allowedFunctions is every function of a template. Of those that are built in, printf
// and its like are left out, because a format that came from a message could ask for any width, and so is
// call, and what is meant for HTML, JavaScript and URLs.
var allowedFunctions = []string{"and", "or", "not", "len", "index", "slice", "eq", "ne", "lt", "le", "gt", "ge", "print"}

// newPrompt parses the two templates. The error has a line for every fault.
func newPrompt(system, user string) (*prompt, error) {
	s, errSystem := parseTemplate("system", system, aTemplate, messageFields)
	u, errUser := parseTemplate("prompt", user, aTemplate, messageFields)
	return &prompt{system: s, user: u, wantsJSON: strings.Contains(system+user, ".JSON")}, errors.Join(errSystem, errUser)
}

// messageFields is all that templates see of a message.
var messageFields = []string{"Text", "JSON", "Keys", "Headers", "EventTime"}

// parseTemplate parses the template of a setting, whose data has no fields but those. The error is a *config.FieldError.
func parseTemplate(name, text, what string, fields []string) (*template.Template, error) {
	allowed := map[string]any{}
	for _, f := range allowedFunctions {
		allowed[f] = f // the parser looks at the names only
	}
	// By itself the parser knows no function, so that this finds all others.
	if _, err := parse.Parse(name, text, "", "", allowed, ownFunctions); err != nil {
		return nil, templateFault(name, err, what)
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(ownFunctions).Parse(text)
	if err == nil {
		err = templatecheck.Fields(t, fields...)
	}
	if err != nil {
		return nil, templateFault(name, err, what)
	}
	return t, nil
}

func templateFault(name string, err error, allowed string) error {
	return &config.FieldError{
		Field: name, Problem: "is no template that can be used: " + strings.ReplaceAll(err.Error(), "\n", " "), Allowed: allowed,
	}
}

// errPrompt is why there is no prompt for a message.
var errPrompt = errors.New("no prompt can be made of the message")

// messages makes the messages of a call. Errors are errPrompt.
func (p *prompt) messages(keys []string, d mapsdk.Datum) ([]chat.Message, error) {
	data := messageData(keys, d, p.wantsJSON)
	var out []chat.Message
	for _, m := range []struct {
		role string
		t    *template.Template
	}{{chat.System, p.system}, {chat.User, p.user}} {
		var b bounded
		if err := m.t.Execute(&b, data); err != nil {
			return nil, fmt.Errorf("%w: %w", errPrompt, err)
		}
		if !utf8.Valid(b.Bytes()) {
			return nil, fmt.Errorf("%w: it is not UTF-8", errPrompt)
		}
		if b.Len() > 0 {
			out = append(out, chat.Message{Role: m.role, Content: b.String()})
		}
	}
	if len(out) == 0 || out[len(out)-1].Role == chat.System {
		return nil, fmt.Errorf("%w: it is empty", errPrompt)
	}
	return out, nil
}

// messageData is a message as templates see it: plain values, so that a template has no methods to
// call. JSON is there only when it is wanted and the payload is JSON.
func messageData(keys []string, d mapsdk.Datum, wantsJSON bool) map[string]any {
	data := map[string]any{
		"Text":      string(d.Value()),
		"Keys":      keys,
		"Headers":   d.Headers(),
		"EventTime": d.EventTime().UTC().Format(time.RFC3339Nano),
	}
	if !wantsJSON {
		return data
	}
	if value, ok := decodeJSON(d.Value()); ok {
		data["JSON"] = value
	}
	return data
}

// A bounded is a buffer that refuses more than maxPrompt bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPrompt {
		return 0, fmt.Errorf("it would be longer than %d bytes", maxPrompt)
	}
	return b.Buffer.Write(p)
}

// WriteString hides that of the buffer, which knows no bound.
func (b *bounded) WriteString(s string) (int, error) { return b.Write([]byte(s)) }

func toJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func join(separator string, list any) (string, error) {
	switch list := list.(type) {
	case []string:
		return strings.Join(list, separator), nil
	case []any:
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = fmt.Sprint(v)
		}
		return strings.Join(parts, separator), nil
	default:
		return "", fmt.Errorf("join of a %T, allowed: a list", list)
	}
}

// cut returns the first n characters of a text.
func cut(n int, text string) string {
	for i := range text {
		if n <= 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// promptTokens estimates the tokens of a prompt: a quarter of its characters, rounded
// up, as the providers' own limiters do.
func promptTokens(messages []chat.Message) int {
	n := 0
	for i := range messages {
		n += utf8.RuneCountInString(messages[i].Content)
	}
	return (n + 3) / 4
}
