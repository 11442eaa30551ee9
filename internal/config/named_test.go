package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type named struct{ text string }

// namedTable takes any name with any settings.
var namedTable = []Field[named]{{
	Key: "modes", Allowed: "a mode", Default: "none", Doc: "x",
	Value: Named(func(c *named, name string, settings [][2]string) bool {
		c.text = name
		for _, s := range settings {
			c.text += " " + s[0] + "=" + s[1]
		}
		return name != "refused"
	}, func(c *named) string { return c.text }),
}}

func TestNamed(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"modes: scheduled", "scheduled"},
		{"modes: {scheduled: {}}", "scheduled"},
		{"modes:\n  scheduled: {}\n", "scheduled"},
		{"modes:\n  scheduled:\n", "scheduled"},
		{"modes:\n  goBackN:\n    coolDownPeriod: 5s # a comment\n    rampDownPercentage: 10\n", "goBackN coolDownPeriod=5s rampDownPercentage=10"},
		{"modes: '{goBackN: {coolDownPeriod: 5s}}'", "goBackN coolDownPeriod=5s"},
	} {
		var c named
		require.Empty(t, texts(loadContent(namedTable, nil, "FILE", []byte(tc.file), &c)), tc.file)
		require.Equal(t, tc.want, c.text, tc.file)
	}
	for _, file := range []string{
		"modes: {}", "modes: []", "modes: [scheduled]", "modes: {a: {}, b: {}}", "modes: {a: {b: {}}}", "modes: {a: {b: 1, b: 2}}",
		"modes: {a: [b]}", "modes: {a: 5}", "modes: {a: {b: !x 1}}", "modes: &x {a: {b: *x}}", "modes: refused", "modes: ''", "modes:",
		"modes: {a: {b: 1.5}}", "modes: {a: {b: }}", "modes: {[a]: {}}", "modes: !x {a: {}}", "modes: '{a'", "modes: {{a: b}: {}}",
	} {
		c := named{"before"}
		faults := loadContent(namedTable, nil, "FILE", []byte(file), &c)
		require.Len(t, faults, 1, file)
		requireOneLine(t, faults)
		require.Equal(t, "before", c.text, file)
	}
	var c named
	require.Empty(t, texts(Load(namedTable, []string{"NUMATHROTTLE_MODES={goBackN: {coolDownPeriod: 5s}}"}, &c)))
	require.Equal(t, "goBackN coolDownPeriod=5s", c.text)
}

// Whatever a file or a variable holds is a fault of one line, or taken.
func FuzzNamed(f *testing.F) {
	for _, text := range []string{
		"scheduled", "{goBackN: {coolDownPeriod: 5s}}", "\n  a:\n    b: 1\n", "&x {a: {b: *x}}", "{a: {? b : c}}", "{a: {b: 1, <<: {c: 2}}}", "%YAML",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c named
		requireOneLine(t, loadContent(namedTable, nil, "FILE", []byte("modes: "+text), &c))
		if !strings.Contains(text, "\x00") {
			requireOneLine(t, Load(namedTable, []string{"NUMATHROTTLE_MODES=" + text}, &c))
		}
	})
}
