package listen_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// What stands in the file counts, from the next request on, and nothing else ever does.
func TestATokenFileIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	var log strings.Builder
	const first, second = "first-canary-0123456", "other-canary-0123456"
	write(first + "\n")
	token := listen.TokenIn(path, first, listen.MinTokenBytes, slog.New(slog.NewTextHandler(&log, nil)))
	knows := func(text string) bool { return token.Matches([]string{"Bearer " + text}) }
	require.True(t, knows(first))
	write(second)
	require.True(t, knows(second))
	require.False(t, knows(first), "it was withdrawn")
	require.Contains(t, log.String(), "the token was read anew")
	for name, spoil := range map[string]func(){
		"gone":            func() { require.NoError(t, os.Remove(path)) },
		"empty":           func() { write("") },
		"a line end":      func() { write("\n") },
		"several lines":   func() { write(second + "\n" + second) },
		"one that is bad": func() { write("short-canary") },
	} {
		log.Reset()
		spoil()
		for range 3 {
			require.False(t, knows(second), name)
			require.False(t, knows(""), name)
			require.False(t, token.Matches(nil), name)
			require.False(t, knows("short-canary"), name)
		}
		require.Equal(t, 1, strings.Count(log.String(), "nobody is let in"), "%s: %s", name, &log)
		write(second)
		require.True(t, knows(second), name)
	}
	// As Kubernetes replaces a mounted Secret: by a link that points elsewhere.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "next"), []byte(first), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "next"), filepath.Join(dir, "link")))
	require.NoError(t, os.Rename(filepath.Join(dir, "link"), path))
	require.True(t, knows(first))
	require.False(t, knows(second))
	require.NotContains(t, log.String(), "canary")
}
