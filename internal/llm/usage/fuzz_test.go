package usage_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// usageKeys are the keys that an answer with a usage has at least one of.
var usageKeys = []string{`"usage"`, `"usageMetadata"`, `"amazon-bedrock-invocationMetrics"`, `"meta"`}

// However an answer is cut into pieces, its usage is the same, and no more than can be
// believed.
func FuzzUsage(f *testing.F) {
	for _, tc := range answersOfLLMs {
		f.Add(tc.body, uint16(3))
	}
	f.Fuzz(func(t *testing.T, body string, at uint16) {
		whole := usage.NewMeter(&http.Response{}, nil)
		_, _ = io.WriteString(whole, body)
		used, known := whole.Used()
		require.GreaterOrEqual(t, used, 0)
		require.LessOrEqual(t, used, 3_000_000)
		if !slices.ContainsFunc(usageKeys, func(key string) bool { return strings.Contains(body, key) }) {
			require.False(t, known)
		}
		cut := min(int(at), len(body))
		pieces := usage.NewMeter(&http.Response{}, nil)
		_, _ = io.WriteString(pieces, body[:cut])
		_, _ = io.WriteString(pieces, body[cut:])
		again, knownAgain := pieces.Used()
		require.Equal(t, used, again)
		require.Equal(t, known, knownAgain)
		if atLeast, final := pieces.UsedUntil(false); final {
			require.Equal(t, used, atLeast)
			require.True(t, known, "what is final early is final at the end")
		}
	})
}
