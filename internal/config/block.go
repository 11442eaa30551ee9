package config

import (
	"go.yaml.in/yaml/v3"
)

// A BlockFault is one fault of a Block. Field is its full name, such as quotas.other.total, and Line its line in the text; 0 for the whole
// text.
type BlockFault struct {
	Field, Problem, Allowed string
	Line                    int
}

// Block is a mapping with nested mappings and lists. The file contains it directly; a variable, a flag or a string in the file contains the
// same YAML, or JSON. set reads it and returns all faults of its form; get returns text that set accepts.
func Block[C any](set func(c *C, n *yaml.Node) []BlockFault, get func(c *C) string) Value[C] {
	return Value[C]{kind: aMapping, block: set, get: get, set: func(c *C, text string) bool {
		n, err := parse("", []byte(text))
		return err == nil && n != nil && len(set(c, n)) == 0
	}}
}

// putBlock sets the field from a mapping in source. On a fault c keeps the value it had.
func (f *Field[C]) putBlock(c *C, n *yaml.Node, source string) []error {
	before := *c
	var faults []error
	for _, b := range f.Value.block(c, n) {
		faults = append(faults, &FieldError{Field: b.Field, Problem: b.Problem, Source: at(source, b.Line), Allowed: b.Allowed})
	}
	if len(faults) == 0 && !f.ok(c) {
		fault := f.fault(c, f.Value.get(c))
		fault.Source = at(source, n.Line)
		faults = append(faults, fault)
	}
	if len(faults) > 0 {
		*c = before
	}
	return faults
}

// putBlockText is putBlock for the text of a mapping.
func (f *Field[C]) putBlockText(c *C, text, source string) []error {
	n, err := parse(source, []byte(text))
	if fault, ok := err.(*FieldError); ok { //nolint:errorlint // parse returns no other, and wraps none
		fault.Field = f.Key
		if fault.Allowed == "" {
			fault.Allowed = f.Allowed
		}
		return []error{fault}
	}
	if n == nil {
		return []error{f.empty(source)}
	}
	return f.putBlock(c, n, source)
}
