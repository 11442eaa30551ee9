package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A BlockFault is one fault in a text of YAML. Field is its full name, such as quotas.other.total, and Line its line in the text; 0 for the
// whole text.
type BlockFault struct {
	Field, Problem, Allowed string
	Line                    int
}

// in returns the fault with its source: the name of the text, and the line.
func (b *BlockFault) in(name string) *FieldError {
	return &FieldError{Field: b.Field, Problem: b.Problem, Source: at(name, b.Line), Allowed: b.Allowed}
}

// at names a line of a file; line 0 is the whole.
func at(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}

// maxFaults bounds the reported faults of a text: an entirely different text has one in every line.
const maxFaults = 100

// firstFaults returns the first faults of a text, in the order of its lines. A last one, with this field, says that there are more.
func firstFaults(faults []BlockFault, field string) []BlockFault {
	slices.SortStableFunc(faults, func(a, b BlockFault) int { return cmp.Compare(a.Line, b.Line) })
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults:maxFaults], BlockFault{Field: field, Problem: "has more faults", Line: faults[maxFaults].Line})
	}
	return faults
}

// parseYAML returns the only document of a text; nil for an empty one. field is that of a fault.
func parseYAML(text []byte, field string) (*yaml.Node, *BlockFault) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		return nil, &BlockFault{Field: field, Problem: "holds a second document", Allowed: "one", Line: second.Line}
	case !errors.Is(err, io.EOF):
		return nil, &BlockFault{Field: field, Problem: "is not valid YAML: " + withoutContent(err)}
	case document.Kind == 0 || IsNull(document.Content[0]):
		return nil, nil
	}
	return document.Content[0], nil
}

// quoted matches the quotes of unreadable text in a parser's message.
var quoted = regexp.MustCompile("(?s)`.*`|'.*'|\".*\"")

// withoutContent returns a parser's message without content of the text, which may be a secret.
func withoutContent(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "anchor") {
		return "an alias (*name) without its anchor; put a value that begins with * into quotes"
	}
	return quoted.ReplaceAllString(text, "(not shown)")
}

// Block is a value with structure: mappings, lists. The file contains it directly. A variable, a flag or a string in the file contains the
// same YAML, or JSON. set reads the value, and returns all faults of its form. get returns text that set accepts.
func Block[C any](set func(c C, n *yaml.Node) []BlockFault, get func(c C) string) Value[C] {
	return Value[C]{traits{kind: aMapping}, func(c C) place {
		return place{block: func(n *yaml.Node) []BlockFault { return set(c, n) }, get: func() string { return get(c) }}
	}}
}

// putBlock sets the setting from the text of a Block.
func (s *setting) putBlock(text, source string) (faults []*FieldError) {
	n, fault := parseYAML([]byte(text), s.key)
	switch {
	case fault != nil:
		fault.Allowed = cmp.Or(fault.Allowed, s.allowed)
		return []*FieldError{fault.in(source)}
	case n == nil:
		return []*FieldError{s.empty(source)}
	}
	for _, b := range s.setBlock(n, s.key) {
		faults = append(faults, b.in(source))
	}
	return faults
}

// setBlock sets the setting from a node that has structure. On a fault it keeps its value. name is its full name.
func (s *setting) setBlock(n *yaml.Node, name string) []BlockFault {
	restore := s.keep()
	faults := s.block(n)
	if len(faults) == 0 && !s.ok() {
		fault := s.fault(s.get())
		faults = append(faults, BlockFault{Field: s.key, Problem: fault.Problem, Allowed: fault.Allowed, Line: n.Line})
	}
	if len(faults) > 0 {
		restore()
	}
	for i := range faults {
		faults[i].Field = name + strings.TrimPrefix(faults[i].Field, s.key)
	}
	return faults
}

// setNode sets the setting from a node of a mapping. On a fault it keeps its value. name is its full name.
func (s *setting) setNode(n *yaml.Node, name string) []BlockFault {
	n = behindAlias(n)
	switch {
	case s.block != nil && (s.set == nil || n.Kind == yaml.MappingNode && !s.listed || n.Kind == yaml.SequenceNode && s.listed):
		return s.setBlock(n, name)
	case n.Kind != yaml.ScalarNode:
		return []BlockFault{{name, "is " + kindName(n), s.allowed, n.Line}}
	}
	return s.putNode(n, name)
}

// putNode sets the setting from the text of a single value.
func (s *setting) putNode(n *yaml.Node, name string) (faults []BlockFault) {
	if !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp"}, n.ShortTag()) {
		return []BlockFault{{name, "has a tag (!name)", s.allowed, n.Line}}
	}
	text := n.Value
	if IsNull(n) {
		text = ""
	}
	for _, fault := range s.put(text, "") {
		faults = append(faults, BlockFault{name + strings.TrimPrefix(fault.Field, s.key), fault.Problem, fault.Allowed, n.Line})
	}
	return faults
}

// An Entry is a key of a mapping with its value.
type Entry struct {
	Name  string
	Value *yaml.Node
	Line  int
}

// Entries returns the entries of a mapping within a Block, in order; field is its full name. A mapping has no more than most entries.
func Entries(n *yaml.Node, field string, most int, allowed string) (entries []Entry, faults []BlockFault) {
	n = behindAlias(n)
	switch {
	case n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0:
		return nil, []BlockFault{{field, "is " + kindName(n), allowed, n.Line}}
	case len(n.Content)/2 > most:
		return nil, []BlockFault{{field, fmt.Sprintf("has %d entries", len(n.Content)/2), fmt.Sprintf("at most %d", most), n.Line}}
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := behindAlias(n.Content[i])
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || key.Style&yaml.TaggedStyle != 0 {
			faults = append(faults, BlockFault{field, "has a name that is " + kindName(key), "a text", key.Line})
		} else if line, twice := lines[key.Value]; twice {
			faults = append(faults, BlockFault{fullName(field, key.Value), fmt.Sprintf("is given twice, first in line %d", line), "", key.Line})
		} else {
			lines[key.Value] = key.Line
			entries = append(entries, Entry{Name: key.Value, Value: n.Content[i+1], Line: key.Line})
		}
	}
	return entries, faults
}

// mostEntries bounds the entries of a mapping that may have one per field.
const mostEntries = 100

// Mapping sets fields of c from a mapping within a Block, whose full name is field. It checks them as Load does; a field with a fault keeps
// its value.
func Mapping[C any](fields []Field[C], n *yaml.Node, field string, c C) []BlockFault {
	settings := bind(fields, c)
	known := keysOf(settings)
	names := cmp.Or(strings.Join(known, ", "), "nothing")
	allowed := "nothing" // a mapping without settings
	if len(known) > 0 {
		allowed = "one of " + names
	}
	entries, faults := Entries(n, field, mostEntries, "a mapping with "+names)
	for _, e := range entries {
		name := fullName(field, e.Name)
		if i := slices.Index(known, e.Name); i >= 0 {
			faults = append(faults, settings[i].setNode(e.Value, name)...)
			continue
		}
		problem := "is not a setting" + didYouMean(e.Name, known)
		faults = append(faults, BlockFault{name, problem, allowed, e.Line})
	}
	return faults
}

// listItems reads each item of a list within a Block. Nothing (null) is an empty list. The full name of an item is like quotas.match[0].
func listItems(n *yaml.Node, field string, most int, read func(item *yaml.Node, name string) []BlockFault) (faults []BlockFault) {
	n = behindAlias(n)
	switch {
	case IsNull(n):
		return nil
	case n.Kind != yaml.SequenceNode || n.Style&yaml.TaggedStyle != 0:
		return []BlockFault{{field, "is " + kindName(n), "a list", n.Line}}
	case len(n.Content) > most:
		return []BlockFault{{field, fmt.Sprintf("has %d items", len(n.Content)), fmt.Sprintf("at most %d", most), n.Line}}
	}
	for i, item := range n.Content {
		faults = append(faults, read(item, fmt.Sprintf("%s[%d]", field, i))...)
	}
	return faults
}

// plainName matches names that need no quotes in a field.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,64}$`)

// fullName returns the full name of an entry; field is empty for the whole file.
func fullName(field, name string) string {
	if !plainName.MatchString(name) {
		name = quote(name)
	}
	if field == "" {
		return name
	}
	return field + "." + name
}

func behindAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// IsNull reports whether a node is nothing.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge":
		return "a merge (<<)"
	case n.Style&yaml.TaggedStyle != 0:
		return "of a type of its own (!name)"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

// OneLine returns a mapping as YAML in one line.
func OneLine(n *yaml.Node) string {
	flow(n)
	text, err := yaml.Marshal(n)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// flow sets the style of a node and all nested ones, and drops comments, which do not fit a line.
func flow(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	} else if IsNull(n) {
		n.Value = "null"
	}
	for _, inner := range n.Content {
		flow(inner)
	}
}
