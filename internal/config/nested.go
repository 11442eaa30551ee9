package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Entry is a key of a mapping with its value.
type Entry struct {
	Name  string
	Value *yaml.Node
	Line  int
}

// Entries returns the entries of a mapping within a Block, in order; field is its full name. A mapping has no more than most entries.
func Entries(n *yaml.Node, field string, most int, allowed string) (entries []Entry, faults []BlockFault) {
	n = behindAlias(n)
	bad := func(line int, name, problem, allowed string) {
		faults = append(faults, BlockFault{Field: name, Problem: problem, Allowed: allowed, Line: line})
	}
	switch {
	case n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0:
		bad(n.Line, field, "is "+kindName(n), allowed)
		return nil, faults
	case len(n.Content)/2 > most:
		bad(n.Line, field, fmt.Sprintf("has %d entries", len(n.Content)/2), fmt.Sprintf("at most %d", most))
		return nil, faults
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := behindAlias(n.Content[i])
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			bad(key.Line, field, "has a name that is "+kindName(key), "a text")
			continue
		}
		if line, twice := lines[key.Value]; twice {
			bad(key.Line, field+"."+quoteKey(key.Value), fmt.Sprintf("is given twice, first in line %d", line), "")
			continue
		}
		lines[key.Value] = key.Line
		entries = append(entries, Entry{Name: key.Value, Value: n.Content[i+1], Line: key.Line})
	}
	return entries, faults
}

// Mapping sets fields of c from a mapping within a Block, whose full name is field. It checks them as Load does; a field with a fault keeps
// its value. No field may be a Block itself.
func Mapping[C any](fields []Field[C], n *yaml.Node, field string, c *C) []BlockFault {
	known := strings.Join(keys(fields), ", ")
	entries, faults := Entries(n, field, mostEntries, "a mapping with "+known)
	for _, e := range entries {
		name := field + "." + quoteKey(e.Name)
		i := slices.IndexFunc(fields, func(f Field[C]) bool { return f.Key == e.Name })
		value := behindAlias(e.Value)
		switch {
		case i < 0:
			problem := "is not a setting" + didYouMean(e.Name, keys(fields))
			faults = append(faults, BlockFault{Field: name, Problem: problem, Allowed: "one of " + known, Line: e.Line})
			continue
		case value.Kind == yaml.MappingNode && fields[i].Value.mapping && value.Style&yaml.TaggedStyle == 0:
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: inOneLine(value), Line: value.Line}
		case value.Kind != yaml.ScalarNode:
			faults = append(faults, BlockFault{Field: name, Problem: "is " + kindName(value), Allowed: fields[i].Allowed, Line: value.Line})
			continue
		}
		text := value.Value
		if value.ShortTag() == "!!null" {
			text = ""
		}
		for _, err := range Split(fields[i].put(c, text, "")) {
			fault := BlockFault{Field: name, Problem: err.Error(), Line: value.Line}
			if f, ok := errors.AsType[*FieldError](err); ok {
				fault.Problem, fault.Allowed = f.Problem, f.Allowed
			}
			faults = append(faults, fault)
		}
	}
	return faults
}

// OneLine returns a mapping as YAML in one line.
func OneLine(n *yaml.Node) string { return inOneLine(n) }

func behindAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// mostEntries bounds the entries of a mapping that may have one per field.
const mostEntries = 100
