package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The roles of messages.
const (
	System = "system"
	User   = "user"
)

// A Message is a message of a prompt.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A Field is a field of a request's body: a key, and a value for json.Marshal.
type Field struct {
	Key   string
	Value any
}

// Own are the keys that extra fields must not have: they come from the model and the prompt.
var Own = []string{"model", "messages"}

// A Template is the common part of all requests of a program. The zero Template is not usable.
type Template struct {
	head, tail []byte // the bytes before and after the messages
	extra      map[string]json.RawMessage
}

// NewTemplate returns the template of requests to a model. After the messages come fields, in order, and then the fields of extra, a JSON
// object or nothing, unchanged. Errors: extra is not a JSON object, or has a duplicate key, one of Own or one of fields.
func NewTemplate(model string, fields []Field, extra string) (*Template, error) {
	t := &Template{extra: map[string]json.RawMessage{}}
	name, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	t.head = fmt.Appendf(nil, `{"model":%s,"messages":`, name)
	taken := slices.Clone(Own)
	for _, f := range fields {
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		t.tail = fmt.Appendf(t.tail, ",%q:%s", f.Key, value)
		taken = append(taken, f.Key)
	}
	err = eachField(extra, func(key string, value json.RawMessage) error {
		if slices.Contains(taken, key) {
			return fmt.Errorf("sets %.60q, which is set already", key)
		}
		taken = append(taken, key)
		t.extra[key] = value
		encoded, err := json.Marshal(key)
		t.tail = fmt.Appendf(t.tail, ",%s:%s", encoded, value)
		return err
	})
	t.tail = append(t.tail, '}')
	return t, err
}

// eachField calls take with the fields of a JSON object, in order.
func eachField(text string, take func(key string, value json.RawMessage) error) error {
	if text == "" {
		return nil
	}
	const noObject = "is no JSON object"
	decoder := json.NewDecoder(strings.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') || !json.Valid([]byte(text)) {
		return fmt.Errorf("%s", noObject)
	}
	for decoder.More() {
		token, err := decoder.Token()
		key, isText := token.(string)
		if err != nil || !isText {
			return fmt.Errorf("%s", noObject)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("%s", noObject)
		}
		if err := take(key, value); err != nil {
			return err
		}
	}
	return nil
}

// Body returns the body of a request.
func (t *Template) Body(messages []Message) ([]byte, error) {
	b := bytes.NewBuffer(slices.Clone(t.head))
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(messages); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - 1) // the end of the line
	b.Write(t.tail)
	return b.Bytes(), nil
}

// MaxTokens returns the maximum length of an answer according to the extra fields, in tokens; 0 for none.
func (t *Template) MaxTokens() int {
	return max(whole(t.extra["max_completion_tokens"]), whole(t.extra["max_tokens"]))
}

// Choices returns the number of answers that the extra fields request: 1 or more.
func (t *Template) Choices() int { return max(whole(t.extra["n"]), 1) }

// Characters returns how many characters of the extra fields a model reads with each prompt.
func (t *Template) Characters() int {
	n := 0
	for _, key := range []string{"tools", "functions", "response_format"} {
		n += utf8.RuneCount(t.extra[key])
	}
	return n
}
