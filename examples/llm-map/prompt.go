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
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A prompt makes the messages of a call from a message of the pipeline. The templates are the operator's, but a message may come from
// anybody: its content is always data, never part of a template. Templates access only the message, use only the functions of
// allowedFunctions, and write at most maxPrompt bytes. A prompt is safe for concurrent use.
type prompt struct {
	system, user *template.Template
	wantsJSON    bool // one of them uses the payload as JSON
}

// maxPrompt bounds the output of a template, in bytes.
const maxPrompt = 8 << 20

// ownFunctions are the templates' functions besides the built-in ones.
var ownFunctions = template.FuncMap{
	"json":  toJSON,
	"lower": strings.ToLower,
	"upper": strings.ToUpper,
	"trim":  strings.TrimSpace,
	"join":  join,
	"cut":   cut,
}

// allowedFunctions lists all functions of a template. It excludes some built-in ones: printf and similar ones, because a format from a
// message could request any width, call, and those for HTML, JavaScript and URLs.
var allowedFunctions = []string{"and", "or", "not", "len", "index", "slice", "eq", "ne", "lt", "le", "gt", "ge", "print"}

// newPrompt parses the two templates. The error has a line for every fault.
func newPrompt(system, user string) (*prompt, error) {
	s, errSystem := parseTemplate("system", system, aTemplate, messageFields)
	u, errUser := parseTemplate("prompt", user, aTemplate, messageFields)
	return &prompt{system: s, user: u, wantsJSON: strings.Contains(system+user, ".JSON")}, errors.Join(errSystem, errUser)
}

// messageFields are all fields of a message that templates see.
var messageFields = []string{"Text", "JSON", "Keys", "Headers", "EventTime"}

// parseTemplate parses the template of a setting whose data has only those fields. The error is a *config.FieldError.
func parseTemplate(name, text, what string, fields []string) (*template.Template, error) {
	allowed := map[string]any{}
	for _, f := range allowedFunctions {
		allowed[f] = f // the parser uses only the names
	}
	// The parser itself knows no functions, so this finds all others.
	if _, err := parse.Parse(name, text, "", "", allowed, ownFunctions); err != nil {
		return nil, templateFault(name, err, what)
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(ownFunctions).Parse(text)
	if err == nil {
		err = program.TemplateFields(t, fields...)
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

// errPrompt is the error if a message has no prompt.
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

// messageData returns a message's fields for templates: plain values, so that a template has no methods to call. JSON is present only if it
// is wanted and the payload is JSON.
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

// WriteString hides the buffer's method, which has no bound.
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
