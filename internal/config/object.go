package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is a JSON object, as a text. In the file it may be a mapping, whose numbers keep their spelling.
func Object[C any](at func(C) *string) Value[C] {
	f := format[string]{parse: jsonObject, show: strings.Clone, check: func(text string) bool { return len(text) <= maxLines }}
	return Value[C]{traits{kind: aMapping}, func(c C) place {
		text := at(c)
		p := f.place(text)
		p.block = func(n *yaml.Node) []BlockFault {
			var b bytes.Buffer
			if !writeJSON(&b, n) {
				return []BlockFault{{
					Problem: "has a part that JSON does not have: a tag, an alias, a name that is not a text, or a number such as .inf", Line: n.Line,
				}}
			}
			*text = b.String()
			return nil
		}
		return p
	}}
}

// jsonObject converts a text to its JSON object in one line, also from YAML.
func jsonObject(text string) (string, bool) {
	var b bytes.Buffer
	if len(text) <= maxLines && json.Valid([]byte(text)) {
		err := json.Compact(&b, []byte(text))
		return b.String(), err == nil && strings.HasPrefix(b.String(), "{")
	}
	var document yaml.Node
	if len(text) > maxLines || yaml.Unmarshal([]byte(text), &document) != nil || len(document.Content) != 1 {
		return "", false
	}
	ok := document.Content[0].Kind == yaml.MappingNode && writeJSON(&b, document.Content[0])
	return b.String(), ok
}

// writeJSON writes a node as JSON. It returns false for parts that JSON does not have: a tag, an alias, a key that is not a text, a number
// such as .inf.
func writeJSON(b *bytes.Buffer, n *yaml.Node) bool {
	isMapping := n.Kind == yaml.MappingNode
	switch {
	case n.Style&yaml.TaggedStyle != 0 || n.Anchor != "":
		return false
	case n.Kind == yaml.ScalarNode:
		return writeScalar(b, n)
	case !isMapping && n.Kind != yaml.SequenceNode:
		return false
	}
	ends := "[]"
	if isMapping {
		ends = "{}"
	}
	b.WriteByte(ends[0])
	for i, inner := range n.Content {
		isKey := isMapping && i%2 == 0
		switch {
		case isMapping && !isKey:
			b.WriteByte(':')
		case i > 0:
			b.WriteByte(',')
		}
		if isKey && (inner.Kind != yaml.ScalarNode || inner.ShortTag() != "!!str") || !writeJSON(b, inner) {
			return false
		}
	}
	b.WriteByte(ends[1])
	return true
}

// writeScalar writes a single value.
func writeScalar(b *bytes.Buffer, n *yaml.Node) bool {
	var value any
	switch n.ShortTag() {
	case "!!null":
	case "!!int", "!!float":
		value = json.Number(n.Value) // which rejects 0x10 and .5
	case "!!bool":
		var is bool
		if n.Decode(&is) != nil {
			return false
		}
		value = is
	case "!!str", "!!timestamp":
		value = n.Value
	default:
		return false
	}
	encoded, err := json.Marshal(value)
	b.Write(encoded)
	return err == nil
}
