package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInput: the lines of the file that the user names, else of Go's source; anything else is named in the error.
func TestInput(t *testing.T) {
	dir := t.TempDir()
	text, empty := filepath.Join(dir, "text"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(text, []byte("one\n\ntwo\nthree"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	files, name, err := inputFiles(t.Context(), text)
	require.NoError(t, err)
	require.Equal(t, []string{text}, files)
	require.Equal(t, text, name)

	files, _, err = inputFiles(t.Context(), "")
	require.NoError(t, err)
	require.Greater(t, len(files), 1000)

	for _, wrong := range []string{dir, empty, filepath.Join(dir, "missing")} {
		_, _, err = inputFiles(t.Context(), wrong)
		require.ErrorContains(t, err, "DEMO_INPUT")
		require.ErrorContains(t, err, wrong)
	}
}

// TestReadGoesOnFromTheStart: a short text lasts as long as the demo.
func TestReadGoesOnFromTheStart(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("one\ntwo\nthree\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	f := &feeder{lines: make(chan string)}
	go f.read(ctx, []string{text})
	for range 3 {
		for _, want := range []string{"one", "two", "three"} {
			require.Equal(t, want, <-f.lines)
		}
	}
	cancel()
	for range f.lines { // it is closed
	}
}
