package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// git runs git in a folder, as somebody.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// evidence is what scripts/evidence.sh says of a repository whose pages are of these commits, by the steps of the soak.
func evidence(t *testing.T, dir string, steps []string, bench string) (string, error) {
	t.Helper()
	page := "# Reliability\n\n| step | commit | began (UTC) | took | ended |\n| --- | --- | --- | ---: | --- |\n" +
		strings.Join(steps, "\n") + "\n\n| a | b |\n"
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "docs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docs", "reliability.md"), []byte(page), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docs", "benchmarks.md"), []byte("|  |  |\n| --- | --- |\n"+bench), 0o600))
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "scripts", "evidence.sh"))
	cmd.Env = append(os.Environ(), "EVIDENCE_ROOT="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A release needs pages of what it is: not of a commit long before, of another branch, of changed files, or of runs that failed.
func TestEvidence(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	made := 0
	commit := func() string {
		made++ // each another one, within a second too
		git(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprint(made))
		return git(t, dir, "rev-parse", "--short", "HEAD")
	}
	first := commit()
	near := commit()
	git(t, dir, "checkout", "-q", "-b", "elsewhere")
	elsewhere := commit()
	git(t, dir, "checkout", "-q", "main")
	for range 100 {
		commit()
	}
	row := func(name, of, ended string) string {
		return fmt.Sprintf("| %s | %s | 1 May 2026, 06:53 | 4m19s | %s |", name, of, ended)
	}
	bench := "| commit | " + near + " |\n"
	out, err := evidence(t, dir, []string{row("redis", near, "ok"), row("nats", near, "ok")}, bench)
	require.NoError(t, err, out)
	for _, c := range []struct {
		steps []string
		bench string
		want  string
	}{
		{[]string{row("redis", near, "ok"), row("tags", first, "ok")}, bench, "tags is of " + first + ", 101 commits behind, allowed: 100: run make soak"},
		{[]string{row("redis", near+"-dirty", "ok")}, bench, `redis is of the commit "` + near + `-dirty"`},
		{[]string{row("redis", elsewhere, "ok")}, bench, "redis is of " + elsewhere + ", which is no commit before"},
		{[]string{row("redis", "abcdef0", "ok")}, bench, "redis is of abcdef0, which is no commit before"},
		{[]string{row("redis", near, "**failed**: exit status 1")}, bench, `redis ended with "**failed**: exit status 1", allowed: ok`},
		{[]string{"| quotas |  | | | **not run** |"}, bench, "quotas was not run: run make soak"},
		{nil, bench, "docs/reliability.md has no table of steps"},
		{[]string{row("redis", near, "ok")}, "", "docs/benchmarks.md names no commit: run make bench"},
		{[]string{row("redis", near, "ok")}, "| commit | " + first + " |\n", "docs/benchmarks.md: the run is of " + first + ", 101 commits behind"},
	} {
		out, err := evidence(t, dir, c.steps, c.bench)
		require.Error(t, err, c.want)
		require.Contains(t, out, c.want)
	}
}

// The release asks for the evidence before anything is published, and a change does not.
func TestOnlyAReleaseNeedsEvidence(t *testing.T) {
	require.NotContains(t, read(t, ".github", "workflows", "ci.yml"), "evidence")
	require.NotContains(t, read(t, ".ci", "run"), "evidence")
	var w struct {
		Jobs map[string]struct{ Needs yaml.Node }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github", "workflows", "release.yml")), &w))
	for _, name := range []string{"images", "chart", "install"} {
		var needs []string
		node := w.Jobs[name].Needs
		require.NoError(t, node.Decode(&needs), name)
		require.Contains(t, needs, "evidence", name)
		require.Contains(t, needs, "check", name)
	}
	var needs []string
	node := w.Jobs["binaries"].Needs
	require.NoError(t, node.Decode(&needs))
	require.Subset(t, needs, []string{"images", "chart", "install"}, "the release is the last that is made")
}

// The dry run packs what a release packs.
func TestTheDryRunDoesWhatAReleaseDoes(t *testing.T) {
	release, makefile := read(t, ".github", "workflows", "release.yml"), read(t, "Makefile")
	_, dry, found := strings.Cut(makefile, "release-dry-run: ##")
	require.True(t, found)
	dry, _, _ = strings.Cut(dry, "\n\n")
	for _, script := range []string{"scripts/archive.sh", "scripts/package.sh", "scripts/install-check.sh"} {
		require.Contains(t, release, script)
		require.Contains(t, dry, script)
	}
	require.Contains(t, read(t, ".github", "workflows", "ci.yml"), "make release-dry-run")
	for _, name := range []string{"scripts/package.sh", "scripts/install-check.sh"} {
		out, err := script(t, name, "1.2", ".")
		require.Error(t, err)
		require.Contains(t, out, `the version is "1.2", allowed: v1.2.3 or v1.2.3-rc.1`)
	}
}
