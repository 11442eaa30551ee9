package tagname

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShorts(t *testing.T) {
	for _, tag := range []string{"", "acme", "größe 1", strings.Repeat("x", 128)} {
		require.Equal(t, tag, Short(tag))
	}
	seen := map[string]bool{}
	for _, tag := range []string{strings.Repeat("x", 129), strings.Repeat("x", 100_000), "\xff", "\xfe", "a\nb", "a\x00b"} {
		name := Short(tag)
		require.Regexp(t, `^sha256-[0-9a-f]{16}$`, name)
		require.Equal(t, name, Short(tag))
		require.False(t, seen[name], "%q", tag)
		seen[name] = true
	}
}
