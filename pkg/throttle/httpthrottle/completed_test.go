package httpthrottle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A JSON text that is cut off anywhere is one again, with all that came whole.
func TestCompleted(t *testing.T) {
	const text = `{"a":[1,{"b":"x","c":null},[]],"error":{"code":"rate","n":429,"more":{}},"d":true}`
	for n := range len(text) {
		got := completed([]byte(text[:n]))
		require.True(t, n == 0 || json.Valid(got), "%s: %s", text[:n], got)
	}
	for cut, want := range map[string]string{
		`{"error":{"code":"rate"`:     `{"error":{"code":"rate"}}`,
		`{"error":{"code":"rate","n"`: `{"error":{"code":"rate"}}`,
		`{"error":{"code":"ra`:        `{"error":{}}`,
		`{"error":{"n":42`:            `{"error":{}}`,
		`[{"code":"rate"},{"co`:       `[{"code":"rate"},{}]`,
		`{"a":1,]`:                    `{"a":1}`,
		strings.Repeat("[", 100_000):  strings.Repeat("[", deepest+1) + strings.Repeat("]", deepest+1),
	} {
		require.Equal(t, want, string(completed([]byte(cut))), "%.80s", cut)
	}
}
