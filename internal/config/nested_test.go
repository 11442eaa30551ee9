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

var innerFields = []Field[inner]{
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
