package handlerproxy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// A cost is read as a number, and what is none is denied: it never counts as one token.
func TestHowCostsAreWritten(t *testing.T) {
	for text, want := range map[string]int{
		"5.0": 5, "4.2": 5, "\t5": 5, "5e2": 500, "99999999999": costrule.Ungrantable, "0": 0,
		"": costrule.Ungrantable, "-1": costrule.Ungrantable, "NaN": costrule.Ungrantable, "Inf": costrule.Ungrantable, "0x5": costrule.Ungrantable,
		"five": costrule.Ungrantable,
	} {
		for rule, m := range map[string]struct {
			value   string
			headers map[string]string
		}{
			"header cost":   {"", map[string]string{"cost": text}},
			"json a.0.cost": {`{"a":[{"cost":"` + text + `"}]}`, nil},
		} {
			var out bytes.Buffer
			p := &proxy{Config: Config{Kind: Map, Cost: rule}, log: slog.New(slog.NewTextHandler(&out, nil))}
			cost := p.costOf()
			got := cost(func() []byte { return []byte(m.value) }, func() map[string]string { return m.headers })
			require.Equal(t, want, got, "%s with %q", rule, text)
			readable := want != costrule.Ungrantable || text == "99999999999"
			require.Equal(t, readable, out.Len() == 0, out.String())
		}
	}
	var out bytes.Buffer
	p := &proxy{Config: Config{Kind: Map, Cost: "json a"}, log: slog.New(slog.NewTextHandler(&out, nil))}
	for value, want := range map[string]int{
		`{"a":4.2}`: 5, `{"a":5e2}`: 500, `{"a":null}`: 1, `{}`: 1, ``: 1, ` `: 1, `[]`: 1,
		`no json`: costrule.Ungrantable, `{"a":1} {"a":2}`: costrule.Ungrantable, `{"a":1,"a":5}`: costrule.Ungrantable, "\x1f\x8b": costrule.Ungrantable,
		`{"a":1,"b":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`: costrule.Ungrantable,
		`{"a":-1}`: costrule.Ungrantable, `{"a":true}`: costrule.Ungrantable, `{"a":[1]}`: costrule.Ungrantable, `{"a":{}}`: costrule.Ungrantable,
	} {
		require.Equal(t, want, p.costOf()(func() []byte { return []byte(value) }, nil), value)
	}
	p.Kind = Source
	require.Equal(t, 1, p.costOf()(func() []byte { return []byte(`{"a":-1}`) }, nil), "a source has read it already")
	require.Contains(t, out.String(), "counts as one token")
}
