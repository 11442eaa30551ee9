package meta

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// Every make target and script of the workflows exists, those of a release included. Each job ends within the hour. A change runs every
// step of .ci/run, and makes what a release makes, but for what needs the tag and its evidence.
func TestWorkflowsRunWhatExists(t *testing.T) {
	makefile, change, release := read(t, "Makefile"), read(t, ".github/workflows/ci.yml"), read(t, ".github/workflows/release.yml")
	for _, target := range regexp.MustCompile(`\bmake ([a-z-]+)`).FindAllStringSubmatch(regexp.MustCompile(`#.*`).ReplaceAllString(change+release, ""), -1) {
		require.Contains(t, makefile, "\n"+target[1]+":")
	}
	for _, script := range regexp.MustCompile(`\bscripts/[\w.-]+`).FindAllString(change+release, -1) {
		require.FileExists(t, script)
	}
	for workflow, text := range map[string]string{"ci": change, "release": release} {
		var w struct {
			Jobs map[string]map[string]any
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &w))
		require.NotEmpty(t, w.Jobs)
		for name, job := range w.Jobs {
			minutes, _ := job["timeout-minutes"].(int)
			require.True(t, job["uses"] != nil || 1 <= minutes && minutes <= 60, "%s: %s has %d minutes", workflow, name, minutes)
		}
	}
	steps := regexp.MustCompile(`(?m)^\s*step "(make [a-z-]+)"`).FindAllStringSubmatch(read(t, ".ci/run"), -1)
	require.GreaterOrEqual(t, len(steps), 7)
	for _, step := range steps {
		require.Regexp(t, `\b`+step[1]+`\b`, change)
	}
	require.Contains(t, change, "make release-dry-run\n")
	_, dry, _ := strings.Cut(makefile, "\nrelease-dry-run: ##")
	dry, _, _ = strings.Cut(dry, "\n\n")
	for _, script := range regexp.MustCompile(`\bscripts/[\w.-]+`).FindAllString(release, -1) {
		require.Contains(t, dry+"scripts/evidence.sh scripts/release-notes.sh", script)
	}
}

// A release needs the checks and the evidence before it publishes anything. Images have an SBOM, a provenance and an attestation.
func TestReleaseIsChecked(t *testing.T) {
	release := read(t, ".github/workflows/release.yml")
	var w struct {
		Jobs map[string]struct {
			Needs       any
			Environment string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(release), &w))
	for _, name := range []string{"images", "chart", "install"} {
		require.Subset(t, w.Jobs[name].Needs, []any{"check", "evidence"}, name)
	}
	for _, name := range []string{"images", "chart", "binaries"} {
		require.Equal(t, "release", w.Jobs[name].Environment, "%s publishes, so the rules of the environment apply", name)
	}
	require.Subset(t, w.Jobs["binaries"].Needs, []any{"images", "chart", "install"}, "the release is last")
	for _, has := range []string{"sbom: true", "provenance: mode=max", "platforms: linux/amd64,linux/arm64", "subject-digest: ${{"} {
		require.Contains(t, release, has)
	}
}

// Every module gets updates, and its tests run.
func TestEveryModule(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "go.mod", "*/go.mod").Output()
	if err != nil {
		t.Skip("not in a checkout, or without git")
	}
	_, updates, found := strings.Cut(read(t, ".github/dependabot.yml"), "package-ecosystem: gomod\n    directories: [")
	require.True(t, found)
	updates, _, _ = strings.Cut(updates, "]")
	for file := range strings.FieldsSeq(string(out)) {
		module := filepath.Dir(file)
		require.Contains(t, strings.Split(updates, ", "), filepath.Join("/", module))
		if module != "." {
			require.Contains(t, read(t, "Makefile"), " -C "+module+" test ")
		}
	}
}

// If the builder misses a file of the checkout, the version in the binaries becomes that of changed files.
func TestDockerignoreLeavesEverythingThatGitKnows(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--ignored", "--exclude-from=.dockerignore").Output()
	if err != nil {
		t.Skip("not in a checkout, or without git")
	}
	require.Empty(t, string(out))
	require.NotContains(t, strings.Split(read(t, ".dockerignore"), "\n"), ".git")
}
