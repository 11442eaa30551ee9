package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// TextOrList is a text of one line, or in brackets a list of texts: [a, b]. In a file it may also be a list of YAML. No text of a list has a
// comma or a bracket.
func TextOrList[C any](at func(C) *string) Value[C] {
	f := ofText(isLine)
	f.parse = func(text string) (string, bool) {
		if !strings.HasPrefix(text, "[") {
			return text, true
		}
		n, fault := parseYAML([]byte(text), "")
		if fault != nil || n == nil {
			return "", false
		}
		return listText(n)
	}
	return Value[C]{traits{kind: aText, listed: true}, func(c C) place {
		text := at(c)
		p := f.place(text)
		p.block = func(n *yaml.Node) (faults []BlockFault) {
			list, ok := listText(n)
			if !ok {
				return []BlockFault{{Problem: "is a list of something else than texts without commas and brackets", Line: n.Line}}
			}
			*text = list
			return nil
		}
		return p
	}}
}

// listText returns the text of a list.
func listText(n *yaml.Node) (string, bool) {
	var texts []string
	for _, e := range n.Content {
		if e.Kind != yaml.ScalarNode || e.ShortTag() != "!!str" || strings.ContainsAny(e.Value, ",[]") || !isLine(e.Value) {
			return "", false
		}
		texts = append(texts, e.Value)
	}
	return "[" + strings.Join(texts, ", ") + "]", n.Kind == yaml.SequenceNode
}

// Listed returns the texts of a TextOrList; one that is no list is the only one.
func Listed(text string) []string {
	inner, is := strings.CutPrefix(text, "[")
	inner, ends := strings.CutSuffix(inner, "]")
	switch {
	case !is || !ends:
		return []string{text}
	case inner == "":
		return nil
	}
	list := strings.Split(inner, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// TextOrListForm returns the schema of a TextOrList with so many texts in a list.
func TextOrListForm(least, most int) Schema {
	return anyForm(TextForm(maxText), Schema{"type": "array", "minItems": least, "maxItems": most, "items": TextForm(maxText)})
}
