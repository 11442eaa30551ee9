package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Named is one name with its own settings, as in Numaflow's modes: a mapping from the name to a mapping of settings, or the name alone.
//
//	modes: {goBackN: {coolDownPeriod: 5s}}
//	modes: scheduled
//
// A variable contains the same in one line. set receives the settings in the given order, each once; get returns text that set accepts.
func Named[C any](set func(c *C, name string, settings [][2]string) bool, get func(c *C) string) Value[C] {
	return Value[C]{
		kind:    aChoice,
		mapping: true,
		set: func(c *C, text string) bool {
			name, settings, ok := parseNamed(text)
			return ok && set(c, name, settings)
		},
		get: get,
	}
}

// parseNamed parses a name with settings.
func parseNamed(text string) (name string, settings [][2]string, ok bool) {
	if !isLine(text) {
		return "", nil, false
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) != 1 {
		return "", nil, false
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode {
		return root.Value, nil, isPlain(root)
	}
	if root.Kind != yaml.MappingNode || len(root.Content) != 2 || !isPlain(root.Content[0]) {
		return "", nil, false
	}
	inner := root.Content[1]
	if inner.Kind == yaml.ScalarNode && inner.ShortTag() == "!!null" {
		return root.Content[0].Value, nil, true
	}
	if inner.Kind != yaml.MappingNode {
		return "", nil, false
	}
	for i := 0; i+1 < len(inner.Content); i += 2 {
		key, value := inner.Content[i], inner.Content[i+1]
		twice := slices.ContainsFunc(settings, func(s [2]string) bool { return s[0] == key.Value })
		if !isPlain(key) || !isPlain(value) || twice {
			return "", nil, false
		}
		settings = append(settings, [2]string{key.Value, value.Value})
	}
	return root.Content[0].Value, settings, true
}

// isPlain reports whether a node is a value without tags, anchors and aliases.
func isPlain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Anchor == "" && slices.Contains([]string{"!!str", "!!int"}, n.ShortTag()) && n.Style&yaml.TaggedStyle == 0
}

// inOneLine returns a mapping as a line of YAML.
func inOneLine(n *yaml.Node) string {
	flow(n)
	text, err := yaml.Marshal(n)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// flow sets the style of a node and all nested ones, and drops comments, which do not fit a line.
func flow(n *yaml.Node) {
	n.Style = yaml.FlowStyle
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, inner := range n.Content {
		if inner.Kind == yaml.MappingNode || inner.Kind == yaml.SequenceNode {
			flow(inner)
		} else {
			if inner.ShortTag() == "!!null" {
				inner.Value = "null"
			}
			inner.HeadComment, inner.LineComment, inner.FootComment = "", "", ""
		}
	}
}
