package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script runs one of the scripts and returns what it prints.
func script(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestReleaseNotes(t *testing.T) {
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	require.NoError(t, os.WriteFile(changelog, []byte(`# Changelog

## [Unreleased]

- later

## [1.2.3] - 2026-01-02

### Added

- first

- second

## [1.2.30] - 2026-01-01

- third

## [1.2.0-rc.1]

[1.2.3]: https://example.com
`), 0o600))
	for version, want := range map[string]string{
		"v1.2.3":  "### Added\n\n- first\n\n- second\n",
		"v1.2.30": "- third\n",
	} {
		out, err := script(t, "scripts/release-notes.sh", version, changelog)
		require.NoError(t, err, out)
		require.Equal(t, want, out)
	}
	for version, want := range map[string]string{
		"v1.2.0-rc.1": `has nothing below "## [1.2.0-rc.1]"`,
		"v9.9.9":      `has nothing below "## [9.9.9]"`,
		"1.2.3":       `the version is "1.2.3", allowed: v1.2.3 or v1.2.3-rc.1`,
		"":            `the version is ""`,
		"v1.2.*":      `the version is "v1.2.*"`,
	} {
		out, err := script(t, "scripts/release-notes.sh", version, changelog)
		require.Error(t, err)
		require.Contains(t, out, want)
	}
}

func TestArchives(t *testing.T) {
	dist := t.TempDir()
	fill := func(programs ...string) {
		for _, platform := range []string{"linux_amd64", "linux_arm64"} {
			require.NoError(t, os.MkdirAll(filepath.Join(dist, platform), 0o755))
			for _, program := range programs {
				require.NoError(t, os.WriteFile(filepath.Join(dist, platform, program), []byte(program+platform), 0o755))
			}
		}
	}
	fill("llm-map", "numathrottle")
	out, err := script(t, "scripts/archive.sh", "v1.2.3", dist)
	if _, gitErr := script(t, "-c", "git log -1"); gitErr != nil {
		t.Skip("not in a checkout, or without git")
	}
	require.Error(t, err)
	require.Contains(t, out, "linux_amd64/http-sink is not there")
	fill("llm-map", "numathrottle", "http-sink")
	out, err = script(t, "scripts/archive.sh", "v1.2.3", dist)
	require.NoError(t, err, out)
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	require.NoError(t, err)
	for _, platform := range []string{"linux_amd64", "linux_arm64"} {
		name := "numathrottle_1.2.3_" + platform + ".tar.gz"
		content, err := os.ReadFile(filepath.Join(dist, name))
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		require.Contains(t, string(sums), hex.EncodeToString(sum[:])+"  "+name+"\n")
		files := unpack(t, filepath.Join(dist, name))
		require.Equal(t, "http-sink"+platform, files["http-sink"])
		for _, file := range []string{"llm-map", "numathrottle", "LICENSE", "README.md", "CHANGELOG.md"} {
			require.NotEmpty(t, files[file])
		}
		require.Len(t, files, 6)
	}
	require.NoError(t, os.Chtimes(filepath.Join(dist, "linux_amd64/llm-map"), time.Time{}, time.Now().Add(-time.Hour)))
	_, err = script(t, "scripts/archive.sh", "v1.2.3", dist)
	require.NoError(t, err)
	again, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	require.NoError(t, err)
	require.Equal(t, string(sums), string(again), "the same bytes at another time")

	out, err = script(t, "scripts/archive.sh", "v1.2.3", filepath.Join(dist, "missing"))
	require.Error(t, err)
	require.Contains(t, out, "which is not there")
	out, err = script(t, "scripts/archive.sh", "latest", dist)
	require.Error(t, err)
	require.Contains(t, out, `the version is "latest"`)
}

// unpack returns the files of an archive. Programs must be executable.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[h.Name] = string(content)
		require.Zero(t, h.Uid)
		if !strings.Contains(h.Name, ".") && h.Name != "LICENSE" {
			require.EqualValues(t, 0o755, h.Mode&0o777, h.Name)
		}
	}
}

// Found are the tests that ask internal/race, by whatever way; not those that only speak of it.
func TestAsksRace(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a_test.go"), []byte(`package a

func TestAsks(t *testing.T) {
	race.Skip(t, "it measures")
}

func TestShort(t *testing.T) { each(t, func() {}) }

func TestByMethod(t *testing.T) {
	var s stage
	s.wait()
}

func TestWhole(t *testing.T) {
	// No race.Skip here, and nothing from each.
	eachOne(t)
	reach(t)
}

func TestByValue(t *testing.T) { inBubble(t, hostile) }
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b_test.go"), []byte(`package a_test

func each(t *testing.T, do func()) {
	for range times() {
		do()
	}
}

func times() int { return race.Fewer(10) }

func (s *stage) wait() { _ = race.On }

func hostile(t *testing.T) { race.Some([]int{1}) }

func eachOne(t *testing.T) {}
`), 0o600))
	out, err := script(t, "scripts/asks-race.sh", folder)
	require.NoError(t, err)
	require.Equal(t, "^(TestAsks|TestByMethod|TestByValue|TestShort)$\n", out)

	require.NoError(t, os.Remove(filepath.Join(folder, "b_test.go")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a_test.go"), []byte("package a\n\nfunc TestWhole(t *testing.T) {}\n"), 0o600))
	out, err = script(t, "scripts/asks-race.sh", folder)
	require.Error(t, err)
	require.Contains(t, out, "asks internal/race")
}
