package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step leaves its row with its commit and figures, whether it fails or not; rows of others stay.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	require.Equal(t, "unknown", commit(t.Context(), "page.md"))
	require.NoError(t, os.WriteFile("page.md", []byte("before\n"+begin+head+"| redis | abc | 1 May 2026, 06:53 | 4m | ok | |\n"+end+"after\n"), 0o600))
	script := filepath.Join(dir, "figures")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$LENGTH of a|b\" >$NUMATHROTTLE_FIGURES/any\n"), 0o700))
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "one")
	tested := commit(t.Context(), "page.md")
	require.Regexp(t, "^[0-9a-f]{7,}$", tested)
	t.Setenv("LENGTH", "7")
	chosen := []step{
		{name: "simulation", length: "LENGTH=1", command: script, beside: true}, {name: "nats", command: "false"},
	}
	require.EqualError(t, run(t.Context(), chosen, "page.md", io.Discard), "nats: exit status 1")
	page, err := os.ReadFile("page.md")
	require.NoError(t, err)
	require.Regexp(t, "^before\n"+begin+`The newest step ran with go1[^\n]+\n\n\| step \| commit \| began \(UTC\) \| took \| ended \| figures \|`, string(page))
	require.Regexp(t, `\n\| simulation \| `+tested+` \| \d+ \w+ \d+, \d\d:\d\d \| \d+s \| ok \| LENGTH=7; 7 of a\\\|b \|\n`+
		`\| tags \| \| \| \| \*\*not run\*\* \| \|\n\| redis \| abc \| 1 May 2026, 06:53 \| 4m \| ok \| \|\n\| nats \| `+tested, string(page))
	require.Contains(t, string(page), "| **failed**: exit status 1 |")
	require.Contains(t, string(page), end+"after\n")
	require.Equal(t, tested, commit(t.Context(), "page.md"), "the page changes nothing")
	require.NoError(t, os.WriteFile(script, nil, 0o700))
	require.Equal(t, tested+"-dirty", commit(t.Context(), "page.md"))
	require.NoError(t, os.WriteFile("page.md", nil, 0o600))
	require.ErrorContains(t, update("page.md", "nats", ""), "page.md has no lines")
}

// The page of this repository has the table.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/reliability.md")
	require.NoError(t, err)
	for _, part := range []string{begin, head, end} {
		require.Contains(t, string(text), part)
	}
}
