package config

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type named struct{ text string }

var objectTable = []Field[*named]{
	{Key: "extra", Allowed: "a JSON object", Default: "none", Doc: "x", Value: Object(func(c *named) *string { return &c.text })},
}

// A JSON object is taken as it is written, from a text or from a mapping.
func TestObject(t *testing.T) {
	for file, want := range map[string]string{
		`extra: '{"a": 0.10, "b": [1e3, null], "c": "\ud83d\ude00"}'`: `{"a":0.10,"b":[1e3,null],"c":"\ud83d\ude00"}`,
		"extra: {a: 0.10, b: [x, true, null, ~], c: {d: 'yes', e: 12345678901234567890}}": `{"a":0.10,"b":["x",true,null,null],` +
			`"c":{"d":"yes","e":12345678901234567890}}`,
		"extra:\n  stop:\n    - \"\\n\" # a comment\n    - 2020-01-01\n  on: off\n": `{"stop":["\n","2020-01-01"],"on":"off"}`,
		"extra: {}": `{}`,
	} {
		var c named
		require.Empty(t, texts(loadContent(objectTable, nil, "FILE", []byte(file), &c)), file)
		require.Equal(t, want, c.text, file)
	}
	for _, file := range []string{
		"extra: []", "extra: 7", "extra: '[1]'", `extra: '"a"'`, "extra: {a: !x 1}", "extra: {a: .inf}", "extra: {a: 0x10}", "extra: {1: a}",
		"extra: {a: &x {b: *x}}", "extra: '{a'", "extra: {[a]: b}",
	} {
		c := named{"before"}
		require.Len(t, loadContent(objectTable, nil, "FILE", []byte(file), &c), 1, file)
		require.Equal(t, "before", c.text, file)
	}
}

func TestHeaderLines(t *testing.T) {
	h, ok := ParseHeaders("X-Title: a: b\r\n\n  x-y:c\t\n")
	require.True(t, ok)
	require.Equal(t, http.Header{"X-Title": {"a: b"}, "X-Y": {"c"}}, h)
	for _, text := range []string{"x", ": y", "a b: c", "a:", "a: b\x00", "a: 1\nA: 2", "a: b\rc: d"} {
		_, ok := ParseHeaders(text)
		require.False(t, ok, text)
	}
	v := HeaderLines(func(c *named) *string { return &c.text })
	require.Equal(t, "X-Key, Y (values not shown)", v.in(&named{"X-Key: " + canary + "\nY: z"}).get())
	require.Empty(t, v.in(&named{}).get())
}

// A setting that is that of every program has two variables, of which one may be set.
func TestSharedFields(t *testing.T) {
	table := WithPrefix("PROGRAM_", Field[*named]{
		Key: "strict", Shared: true, Allowed: "a text", Default: "none", Doc: "x", Value: Text(func(c *named) *string { return &c.text }),
	})
	for _, name := range []string{"NUMATHROTTLE_STRICT", "PROGRAM_STRICT"} {
		var c named
		require.Empty(t, Load(table, []string{name + "=yes"}, &c))
		require.Equal(t, "yes", c.text)
	}
	var c named
	require.Equal(t, []string{
		"numathrottle: strict is set by NUMATHROTTLE_STRICT, and by PROGRAM_STRICT, allowed: one of them",
		"numathrottle: PROGRAM_STRICTT is not a variable of program; did you mean PROGRAM_STRICT?",
	}, texts(Load(table, []string{"NUMATHROTTLE_STRICT=a", "PROGRAM_STRICT=b", "PROGRAM_STRICTT=c"}, &c)))
	require.Contains(t, Table(table), "<br>`PROGRAM_STRICT`<br>`NUMATHROTTLE_STRICT` |")
}
