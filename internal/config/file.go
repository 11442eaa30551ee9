package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is the maximum size of a file, in bytes.
const maxFile = 1 << 20

// maxFaults bounds the reported faults of a file: an entirely different file has one in every line.
const maxFaults = 100

// loadFile sets c from a YAML file: one mapping from keys to scalars. It calls from with each key and its position.
func loadFile[C any](fields []Field[C], without []string, name string, c *C, from func(key, source string)) []error {
	if name == "" {
		return []error{&FieldError{Field: FileVariable, Problem: "is empty", Allowed: "the path of a YAML file; unset it for none"}}
	}
	file, err := os.Open(name)
	if err != nil {
		return []error{unreadable(name, err)}
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return []error{unreadable(name, err)}
	}
	if len(content) > maxFile {
		return []error{unreadable(name, fmt.Errorf("it is longer than %d bytes", maxFile))}
	}
	return readContent(fields, without, name, content, c, from)
}

// readContent is loadFile for the content of the file.
func readContent[C any](fields []Field[C], without []string, name string, content []byte, c *C, from func(key, source string)) []error {
	document, fault := parse(name, content)
	if fault != nil {
		return []error{fault}
	}
	if document == nil {
		return nil // empty, or only comments
	}
	r := fileReader[C]{name: name, fields: fields, without: without, lines: map[string]int{}, from: from}
	for i := 0; i+1 < len(document.Content); i += 2 {
		if len(r.faults) >= maxFaults {
			return append(r.faults, &FieldError{Field: FileVariable, Problem: "has more faults", Source: at(name, document.Content[i].Line)})
		}
		r.setting(document.Content[i], document.Content[i+1], c)
	}
	return r.faults
}

func unreadable(name string, err error) error {
	// The message already has the path.
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		err = pathErr.Err
	}
	return &FieldError{Field: FileVariable, Problem: fmt.Sprintf("is %s, which cannot be read: %v", quote(name), err)}
}

// parse returns the mapping in a file, or nil if it is empty.
func parse(name string, content []byte) (*yaml.Node, error) {
	fault := func(line int, problem, allowed string) error {
		return &FieldError{Field: FileVariable, Problem: problem, Source: at(name, line), Allowed: allowed}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(content)))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // neither a mapping nor a fault
	} else if err != nil {
		return nil, fault(0, "is not valid YAML: "+withoutContent(err), "")
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, fault(second.Line, "holds a second document", "one")
	} else if !errors.Is(err, io.EOF) {
		return nil, fault(0, "is not valid YAML: "+withoutContent(err), "")
	}
	root := document.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null":
		return nil, nil //nolint:nilnil // as above
	case root.Kind != yaml.MappingNode:
		return nil, fault(root.Line, "holds "+kindName(root), "settings as `name: value`")
	}
	return root, nil
}

// quoted matches the quotes of unreadable text in a parser's message.
var quoted = regexp.MustCompile("(?s)`.*`|'.*'|\".*\"")

// withoutContent returns a parser's message without content of the file: the text that it could not read may be a secret.
func withoutContent(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "anchor") {
		return "an alias (*name) without its anchor; put a value that begins with * into quotes"
	}
	return quoted.ReplaceAllString(text, "(not shown)")
}

// at names a line of a file; line 0 is the whole.
func at(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}

// A fileReader sets the settings of one file, one after the other.
type fileReader[C any] struct {
	name    string
	fields  []Field[C]
	without []string       // keys of the library that the program does not have
	lines   map[string]int // where each key was seen
	from    func(key, source string)
	faults  []error
}

func (r *fileReader[C]) fault(f FieldError, line int) {
	f.Source = at(r.name, line)
	r.faults = append(r.faults, &f)
}

// setting sets one setting, or records its fault.
func (r *fileReader[C]) setting(key, value *yaml.Node, c *C) {
	if key.Kind != yaml.ScalarNode {
		r.fault(FieldError{Field: "a name", Problem: "is " + kindName(key), Allowed: "one of " + strings.Join(keys(r.fields), ", ")}, key.Line)
		return
	}
	name := key.Value
	if line, ok := r.lines[name]; ok {
		r.fault(FieldError{Field: quoteKey(name), Problem: fmt.Sprintf("is given twice, first in line %d", line)}, key.Line)
		return
	}
	r.lines[name] = key.Line
	i := slices.IndexFunc(r.fields, func(f Field[C]) bool { return f.Key == name })
	if i < 0 {
		meant, _ := nearest(name, keys(r.fields))
		near := didYouMean(name, keys(r.fields))
		if near == "" {
			near = "; there are " + strings.Join(keys(r.fields), ", ")
		}
		problem := "is not a setting"
		if slices.Contains(r.without, name) {
			problem = notTaken
		}
		r.fault(FieldError{Field: quoteKey(name), Problem: problem + near, meant: meant}, key.Line)
		return
	}
	field := &r.fields[i]
	r.from(name, at(r.name, key.Line))
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	switch {
	case value.Kind == yaml.MappingNode && field.Value.block != nil:
		r.faults = append(r.faults, field.putBlock(c, value, r.name)...)
		return
	case value.Kind == yaml.MappingNode && field.Value.mapping && value.Style&yaml.TaggedStyle == 0:
		value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: inOneLine(value), Line: value.Line}
	case value.Kind != yaml.ScalarNode:
		r.fault(FieldError{Field: field.Key, Problem: "is " + kindName(value), Allowed: field.Allowed}, value.Line)
		return
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp"}, value.ShortTag()):
		r.fault(FieldError{Field: field.Key, Problem: "has a tag (!name)", Allowed: field.Allowed}, value.Line)
		return
	}
	text := value.Value
	if value.ShortTag() == "!!null" {
		text = ""
	}
	if err := field.put(c, text, at(r.name, value.Line)); err != nil {
		r.faults = append(r.faults, Split(err)...)
	}
}

// quoteKey prints a key of the file, quoted unless it looks like a key.
func quoteKey(key string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_.-]{1,60}$`).MatchString(key) {
		return key
	}
	return quote(key)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	default:
		return "of an unknown kind"
	}
}
