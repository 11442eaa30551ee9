package usage_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

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
		if !strings.Contains(body, `"usage`) {
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
