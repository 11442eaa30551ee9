package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// A blocky is a setting that has settings below it: numbers by name.
type blocky struct {
	Numbers map[string]int
	Max     int
}

var blockTable = []Field[blocky]{
	{
		Key: "numbers", Allowed: "a mapping of numbers, `one` not among them",
		Value: Block(func(b *blocky, n *yaml.Node) (faults []BlockFault) {
			b.Numbers = map[string]int{}
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i].Value, n.Content[i+1]
				number, ok := wholeNumber(value.Value)
				if !ok {
					faults = append(faults, BlockFault{Field: "numbers." + key, Problem: "is " + quote(value.Value), Allowed: "a number", Line: value.Line})
				}
				b.Numbers[key] = number
			}
			return faults
		}, func(b *blocky) string {
			if b.Numbers == nil {
				return ""
			}
			return "shown"
		}),
		Range: func(b *blocky) bool { return b.Numbers["one"] == 0 },
	},
	{Key: "max", Allowed: "a number", Value: Int(func(b *blocky) *int { return &b.Max })},
}

// A block is the same YAML everywhere, and each of its faults has its place.
func TestBlock(t *testing.T) {
	loaded := func(file string, environ ...string) (b blocky, lines []string) {
		for _, fault := range loadContent(blockTable, nil, "FILE", []byte(file), &b) {
			lines = append(lines, fault.Error())
		}
		for _, fault := range Load(blockTable, environ, &b) {
			lines = append(lines, fault.Error())
		}
		return b, lines
	}
	for _, file := range []string{"max: 3\nnumbers:\n  a: 1\n  b: 2\n", "numbers: {a: 1, b: 2}\nmax: 3", "max: 3\nnumbers: |\n  {\"a\": 1, \"b\": 2}\n"} {
		b, lines := loaded(file)
		require.Empty(t, lines)
		require.Equal(t, blocky{map[string]int{"a": 1, "b": 2}, 3}, b)
	}
	b, lines := loaded("numbers: {a: 1}", "NUMATHROTTLE_NUMBERS=b: 2\nc: 3")
	require.Empty(t, lines)
	require.Equal(t, map[string]int{"b": 2, "c": 3}, b.Numbers, "a variable wins over the file, as a whole")

	b, lines = loaded("max: 3\nnumbers:\n  a: x\n  b: 2\n  c: y\n", "NUMATHROTTLE_NUMBERS=b: 2\nc: z")
	require.Equal(t, []string{
		`numathrottle: numbers.a is "x" (FILE:3), allowed: a number`,
		`numathrottle: numbers.c is "y" (FILE:5), allowed: a number`,
		`numathrottle: numbers.c is "z" (NUMATHROTTLE_NUMBERS:2), allowed: a number`,
	}, lines)
	require.Equal(t, blocky{Max: 3}, b, "a value with a fault is not taken")

	const allowed = ", allowed: a mapping of numbers, `one` not among them"
	for text, want := range map[string]string{
		"a: [":        `numathrottle: numbers is not valid YAML: line 1: did not find expected node content (NUMATHROTTLE_NUMBERS)` + allowed,
		"5":           "numathrottle: numbers holds a single value (NUMATHROTTLE_NUMBERS:1), allowed: settings as `name: value`",
		"null":        `numathrottle: numbers is empty (NUMATHROTTLE_NUMBERS)` + allowed + `; leave it out for the default`,
		"one: 1":      `numathrottle: numbers is "shown" (NUMATHROTTLE_NUMBERS:1)` + allowed,
		"":            `numathrottle: numbers is empty (NUMATHROTTLE_NUMBERS)` + allowed + `; leave it out for the default`,
		"a: 1\n---\n": "numathrottle: numbers holds a second document (NUMATHROTTLE_NUMBERS:2), allowed: one",
	} {
		_, lines := loaded("", "NUMATHROTTLE_NUMBERS="+text)
		require.Equal(t, []string{want}, lines, "%q", text)
	}

	// As a part of something larger, and as a flag.
	type outer struct{ Inner blocky }
	var o outer
	faults := LoadFlags(Lift(blockTable, func(o *outer) *blocky { return &o.Inner }), map[string]string{"numbers": "{a: 1, b: x, c: y}"}, &o)
	require.Len(t, faults, 2, "each fault by itself")
	require.EqualError(t, faults[1], `numathrottle: numbers.c is "y" (--numbers:1), allowed: a number`)
	require.Empty(t, LoadFlags(Lift(blockTable, func(o *outer) *blocky { return &o.Inner }), map[string]string{"numbers": "{a: 1}"}, &o))
	require.Equal(t, map[string]int{"a": 1}, o.Inner.Numbers)
	require.Equal(t, []Setting{{"numbers", "shown"}}, Show(blockTable, &o.Inner))
}
