package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is a JSON object, as a text. In the file it may be a mapping, whose numbers keep their spelling.
func Object[C any](at func(*C) *string) Value[C] {
	return Value[C]{
		kind:    aMapping,
		mapping: true,
		set: func(c *C, text string) bool {
			object, ok := jsonObject(text)
			*at(c) = object
			return ok
		},
		get:   func(c *C) string { return *at(c) },
		check: func(c *C) bool { return len(*at(c)) <= maxLines },
	}
}

// jsonObject converts a text to its JSON object in one line, also from YAML.
func jsonObject(text string) (string, bool) {
	if len(text) > maxLines {
		return "", false
	}
	var b bytes.Buffer
	if json.Valid([]byte(text)) {
		if err := json.Compact(&b, []byte(text)); err != nil {
			return "", false
		}
		return b.String(), strings.HasPrefix(b.String(), "{")
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", false
	}
	if !writeJSON(&b, document.Content[0]) {
		return "", false
	}
	return b.String(), true
}

// writeJSON writes a node as JSON. It returns false for parts that JSON does not have: a tag, an alias, a key that is not a text, a number
// such as .inf.
func writeJSON(b *bytes.Buffer, n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle != 0 || n.Anchor != "" {
		return false
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return writeScalar(b, n)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, inner := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if !writeJSON(b, inner) {
				return false
			}
		}
		b.WriteByte(']')
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || !writeJSON(b, key) {
				return false
			}
			b.WriteByte(':')
			if !writeJSON(b, n.Content[i+1]) {
				return false
			}
		}
		b.WriteByte('}')
	default:
		return false
	}
	return true
}

// writeScalar writes a single value.
func writeScalar(b *bytes.Buffer, n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) { // 0x10 and .5 are numbers elsewhere
			return false
		}
		b.WriteString(n.Value)
	case "!!bool":
		var value bool
		if n.Decode(&value) != nil {
			return false
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return false
		}
		b.Write(encoded)
	case "!!str", "!!timestamp":
		encoded, err := json.Marshal(n.Value)
		if err != nil {
			return false
		}
		b.Write(encoded)
	default:
		return false
	}
	return true
}
