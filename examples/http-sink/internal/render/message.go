package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"text/template"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
)

// A Message is the templates' view of a message. It is used by one goroutine at a time.
type Message struct {
	datum  sinksdk.Datum
	parsed bool
	json   any
	err    error
}

// NewMessage returns the view of d.
func NewMessage(d sinksdk.Datum) *Message { return &Message{datum: d} }

// ID is the message's ID.
func (m *Message) ID() string { return m.datum.ID() }

// Keys are the message's keys.
func (m *Message) Keys() []string { return m.datum.Keys() }

// Key is the first key; empty for none.
func (m *Message) Key() string {
	if keys := m.datum.Keys(); len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// Value is the payload.
func (m *Message) Value() string { return string(m.datum.Value()) }

// Headers are the message's headers. A missing one is an error in a template.
func (m *Message) Headers() map[string]string { return m.datum.Headers() }

// EventTime is the message's event time, Watermark its watermark; both in UTC.
func (m *Message) EventTime() time.Time { return m.datum.EventTime().UTC() }

// Watermark is the message's watermark, in UTC.
func (m *Message) Watermark() time.Time { return m.datum.Watermark().UTC() }

// JSON is the payload, parsed. Numbers keep their spelling. The error does not repeat the payload.
func (m *Message) JSON() (any, error) {
	if !m.parsed {
		m.parsed = true
		m.json, m.err = parseJSON(m.datum.Value())
	}
	return m.json, m.err
}

var errNotJSON = errors.New("the message is not one JSON text")

func parseJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return nil, errNotJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return value, nil
}

// functions are those of templates besides text/template's own.
var functions = template.FuncMap{
	"path":   escapePath,
	"query":  escapeQuery,
	"raw":    text,
	"json":   toJSON,
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
}

// text formats a value for a URL or header.
func text(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", errors.New("a value is missing")
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool, int, int64, float64:
		return fmt.Sprint(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	default:
		return "", fmt.Errorf("a value is a %T, allowed: a text, a number, true or false, a time", value)
	}
}

// escapePath turns a value into one segment of a path. An empty one would change which resource the URL names.
func escapePath(value any) (string, error) {
	s, err := text(value)
	if err == nil && s == "" {
		err = errors.New("a value in the path is empty")
	}
	return url.PathEscape(s), err
}

func escapeQuery(value any) (string, error) {
	s, err := text(value)
	return url.QueryEscape(s), err
}

// toJSON prints a value as JSON, without the escapes for HTML.
func toJSON(value any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b.Bytes(), "\n")), nil
}
