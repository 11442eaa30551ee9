package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type inner struct {
	Text   string
	Number int
}

var innerFields = []Field[*inner]{
	TextField("text", "a text", "none", "A text", func(c *inner) *string { return &c.Text }),
	NumberField("number", 1, 9, "none", "A number", func(c *inner) *int { return &c.Number }),
}

func nodeOf(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &n))
	return n.Content[0]
}

func TestMappingWithinABlock(t *testing.T) {
	got := inner{Text: "before", Number: 3}
	require.Empty(t, Mapping(innerFields, nodeOf(t, "{number: 7}"), "outer.a", &got))
	require.Equal(t, inner{Text: "before", Number: 7}, got)

	faults := Mapping(innerFields, nodeOf(t, "number: 17\ntext: [a]\nnumbr: 1\nnumber: 2\n? [x]\n: 1\n"), "outer.a", &got)
	require.Equal(t, []BlockFault{
		{Field: "outer.a.number", Problem: "is given twice, first in line 1", Line: 4},
		{Field: "outer.a", Problem: "has a name that is a list", Allowed: "a text", Line: 5},
		{Field: "outer.a.number", Problem: `is "17"`, Allowed: "a whole number, 1 to 9", Line: 1},
		{Field: "outer.a.text", Problem: "is a list", Allowed: "a text", Line: 2},
		{Field: "outer.a.numbr", Problem: "is not a setting; did you mean number?", Allowed: "one of text, number", Line: 3},
	}, faults)
	require.Equal(t, inner{Text: "before", Number: 7}, got, "what is wrong changes nothing")
	faults = Mapping(innerFields, nodeOf(t, "text:"), "outer.a", &got)
	require.Equal(t, "is empty", faults[0].Problem)
	require.Equal(t, "is a single value", Mapping(innerFields, nodeOf(t, "5"), "outer.a", &got)[0].Problem)
}

func TestEntriesKeepTheirOrder(t *testing.T) {
	entries, faults := Entries(nodeOf(t, "{z: 1, a: {b: 2}, m: 3}"), "outer", 3, "a mapping")
	require.Empty(t, faults)
	names := ""
	for _, e := range entries {
		names += e.Name
	}
	require.Equal(t, "zam", names)
	_, faults = Entries(nodeOf(t, "{z: 1, a: 2}"), "outer", 1, "a mapping")
	require.Equal(t, []BlockFault{{Field: "outer", Problem: "has 2 entries", Allowed: "at most 1", Line: 1}}, faults)
	require.Equal(t, `{a: 1, b: {c: 2}}`, OneLine(nodeOf(t, "a: 1\nb:\n  c: 2\n")))
}

// A blocky is a setting that has settings below it: numbers by name.
type blocky struct {
	Numbers map[string]int
	Max     int
}

var blockTable = []Field[*blocky]{
	{
		Key: "numbers", Allowed: "a mapping of numbers, `one` not among them",
		Value: Block(func(b *blocky, n *yaml.Node) []BlockFault {
			b.Numbers = map[string]int{}
			entries, faults := Entries(n, "numbers", 9, "a mapping of numbers")
			for _, e := range entries {
				number, ok := WholeNumber(e.Value.Value)
				if !ok {
					faults = append(faults, BlockFault{Field: "numbers." + e.Name, Problem: "is " + quote(e.Value.Value), Allowed: "a number", Line: e.Line})
				}
				b.Numbers[e.Name] = number
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
		"5":           "numathrottle: numbers is a single value (NUMATHROTTLE_NUMBERS:1), allowed: a mapping of numbers",
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
