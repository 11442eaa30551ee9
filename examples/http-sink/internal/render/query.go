package render

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

var (
	errNoFields = errors.New("the message is no JSON object, whose fields could be parameters")
	errTaken    = errors.New("a field of the message has the name of a parameter that url sets")
)

// AddFields adds a query parameter to a rendered URL for each field of the message, by name. Values are texts, numbers, true and false; a
// list gives a parameter for each of its values, null gives none. Errors contain nothing of the message.
func AddFields(to string, m *Message) (string, error) {
	value, err := m.JSON()
	if err != nil {
		return "", err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return "", errNoFields
	}
	u, err := url.Parse(to)
	if err != nil {
		return "", errors.New("does not parse")
	}
	own, added := u.Query(), url.Values{}
	for name, value := range fields {
		list, isList := value.([]any)
		switch {
		case value == nil:
			continue
		case !isList:
			list = []any{value}
		}
		if own.Has(name) {
			return "", errTaken
		}
		for _, one := range list {
			text, err := text(one)
			if err != nil {
				return "", fmt.Errorf("a field cannot be a parameter: %w", err)
			}
			added.Add(name, text)
		}
	}
	if len(added) == 0 {
		return to, nil
	}
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	to += separator + added.Encode()
	if len(to) > longestURL {
		return "", fmt.Errorf("url: has %d bytes, allowed: at most %d", len(to), longestURL)
	}
	return to, nil
}
