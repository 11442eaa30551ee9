package chat

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ReadVectors parses the body of a response to a request for the vectors of n texts. Each item of its data has the index of its text; they come
// in any order. contentType is as in [Read]. An error is a *Fault; of kind Broken if there is not one vector for each text.
func ReadVectors(body []byte, contentType string, n int) (Answer, error) {
	var whole struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Model json.RawMessage `json:"model"`
		Usage json.RawMessage `json:"usage"`
	}
	body = plain(body)
	if err := json.Unmarshal(body, &whole); err != nil || whole.Data == nil {
		return notVectors(body, contentType)
	}
	a := Answer{Model: textOf(whole.Model), Vectors: make([]json.RawMessage, n)}
	if len(whole.Usage) > 0 {
		a.Usage = usageOf(fmt.Appendf(nil, `{"usage":%s}`, whole.Usage), "application/json")
	}
	broken := func(format string, args ...any) (Answer, error) {
		a.Vectors = nil
		return Answer{}, &Fault{Kind: Broken, Words: fmt.Sprintf(format, args...), Answer: a}
	}
	if len(whole.Data) != n {
		return broken("%d vectors for %d texts", len(whole.Data), n)
	}
	for at, item := range whole.Data {
		switch i := item.Index; {
		case i == nil || *i < 0 || *i >= n:
			return broken("the vector at %d is of no text", at)
		case a.Vectors[*i] != nil:
			return broken("two vectors for text %d", *i)
		case !isVector(item.Embedding):
			return broken("no vector for text %d", *i)
		default:
			a.Vectors[*i] = item.Embedding
		}
	}
	return a, nil
}

// isVector reports whether a value is a list that is not empty, or such a text, as with encoding_format: base64.
func isVector(raw json.RawMessage) bool {
	const shortest = 3
	return len(raw) >= shortest && (raw[0] == '[' || raw[0] == '"') && !isNothing(raw)
}

// notVectors returns the fault of a body without vectors.
func notVectors(body []byte, contentType string) (Answer, error) {
	a, err := Read(body, contentType)
	if f, ok := errors.AsType[*Fault](err); ok {
		return Answer{}, f
	}
	return Answer{}, &Fault{Kind: NoChoices, Answer: Answer{Model: a.Model, Usage: a.Usage}}
}
