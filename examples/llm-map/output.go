package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"text/template"
	"unicode/utf8"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
)

// An output makes a message's payload from a result and its message, by a template like those of prompts. It is safe for concurrent use.
type output struct{ template *template.Template }

// outputFields are all fields that the template of an output sees. The fields of a message are as in a prompt.
var outputFields = []string{
	"Text", "JSON", "Keys", "Headers", "EventTime", "Message", "Result", "Answer", "AnswerJSON", "Model", "Usage",
}

const anOutput = "a text/template over the message and its result"

// newOutput parses the template; nil when there is none. Errors are *config.FieldError.
func newOutput(text string) (*output, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // results are JSON then
	}
	t, err := parseTemplate("output", text, anOutput, outputFields)
	if err != nil {
		return nil, err
	}
	return &output{t}, nil
}

// errOutput is the error if a result has no output.
var errOutput = errors.New("the setting output does not fit the message or its result")

// render makes the payload of a result without an error. Errors are errOutput.
func (o *output) render(keys []string, d mapsdk.Datum, r result) ([]byte, error) {
	data := messageData(keys, d, true)
	if value, ok := data["JSON"]; ok {
		data["Message"] = value
	} else if utf8.Valid(d.Value()) {
		data["Message"] = string(d.Value())
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOutput, err)
	}
	whole, _ := decodeJSON(encoded)
	data["Result"] = whole
	if fields, ok := whole.(map[string]any); ok {
		if usage, ok := fields["usage"]; ok {
			data["Usage"] = usage
		}
	}
	data["Answer"], data["Model"] = r.Text, r.Model
	if value, ok := decodeJSON([]byte(r.Text)); ok {
		data["AnswerJSON"] = value
	}
	var b bounded
	if err := o.template.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("%w: %w", errOutput, err)
	}
	return b.Bytes(), nil
}

// decodeJSON parses a text that is one JSON value. Numbers keep their spelling.
func decodeJSON(text []byte) (value any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	ok = decoder.Decode(&value) == nil && !decoder.More()
	return value, ok
}
