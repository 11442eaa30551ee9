package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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

// An API is a form of requests.
type API string

// The APIs.
const (
	Chat      API = "chat"      // chat completions, of OpenAI and most others; also the empty API
	Responses API = "responses" // of OpenAI
	Messages  API = "messages"  // of Anthropic
	// Embeddings answers with a vector for each of many texts.
	Embeddings API = "embeddings"
)

// Path returns the end of the URL of an API's endpoint.
func (a API) Path() string {
	if a == Responses || a == Messages || a == Embeddings {
		return "/" + string(a)
	}
	return "/chat/completions"
}

// prompt returns the key of the messages or texts.
func (a API) prompt() string {
	if a == Responses || a == Embeddings {
		return "input"
	}
	return "messages"
}

// A Field is a field of a request's body: a key, and a value for json.Marshal.
type Field struct {
	Key   string
	Value any
	// Default means that extra fields may have the key instead.
	Default bool
}

// A Template is the common part of all requests of a program. The zero Template is not usable.
type Template struct {
	api        API
	head, tail []byte // the bytes before and after the messages
	extra      map[string]json.RawMessage
	most       int // how long an answer may be according to a default
}

// NewTemplate returns the template of requests to a model. After the messages come fields, in order, and then the fields of extra, a JSON
// object or nothing, unchanged. Errors: extra is not a JSON object, or has a duplicate key, that of the model, of the messages or of a field.
func NewTemplate(api API, model string, fields []Field, extra string) (*Template, error) {
	t := &Template{api: api, extra: map[string]json.RawMessage{}}
	name, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	t.head = fmt.Appendf(nil, `{"model":%s`, name)
	taken := []string{"model", api.prompt()}
	defaults := object{}
	for _, f := range fields {
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if f.Default {
			defaults[f.Key] = value
			continue
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
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		if !t.Sets(key) {
			t.tail = fmt.Appendf(t.tail, ",%q:%s", key, defaults[key])
			t.most = max(t.most, bound(object{key: defaults[key]}))
		}
	}
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

// Sets reports whether the extra fields have a key.
func (t *Template) Sets(key string) bool { return t.extra[key] != nil }

// Body returns the body of a request. The messages API has a field of its own for a system message, which is the first one.
func (t *Template) Body(messages []Message) ([]byte, error) {
	if t.api == Messages && len(messages) > 0 && messages[0].Role == System {
		return t.body(Field{Key: "system", Value: messages[0].Content}, Field{Key: t.api.prompt(), Value: messages[1:]})
	}
	return t.body(Field{Key: t.api.prompt(), Value: messages})
}

// Texts returns the body of a request for the vectors of texts.
func (t *Template) Texts(texts []string) ([]byte, error) {
	return t.body(Field{Key: t.api.prompt(), Value: texts})
}

// body returns the body of a request with these fields.
func (t *Template) body(fields ...Field) ([]byte, error) {
	b := bytes.NewBuffer(slices.Clone(t.head))
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for _, f := range fields {
		fmt.Fprintf(b, ",%q:", f.Key)
		if err := e.Encode(f.Value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the end of the line
	}
	b.Write(t.tail)
	return b.Bytes(), nil
}

// MaxTokens returns the maximum length of an answer according to the extra fields or a default, in tokens; 0 for none.
func (t *Template) MaxTokens() int { return max(bound(t.extra), t.most) }

// bound returns how long an answer may be according to the fields of a request; 0 for no bound.
func bound(fields object) int {
	return max(whole(fields["max_completion_tokens"]), whole(fields["max_tokens"]), whole(fields["max_output_tokens"]))
}

// Choices returns the number of answers that the extra fields request: 1 or more.
func (t *Template) Choices() int { return max(whole(t.extra["n"]), 1) }

// read are the extra fields that a model reads with each prompt, of all APIs: tools, the form of the answer, and prompts.
var read = []string{"tools", "functions", "response_format", "text", "instructions", "system", "output_format", "output_config"}

// Characters returns how many characters of the extra fields a model reads with each prompt.
func (t *Template) Characters() int {
	n := 0
	for _, key := range read {
		n += utf8.RuneCount(t.extra[key])
	}
	return n
}

// Bytes returns how many bytes of the extra fields a model reads with each prompt.
func (t *Template) Bytes() int {
	n := 0
	for _, key := range read {
		n += len(t.extra[key])
	}
	return n
}
