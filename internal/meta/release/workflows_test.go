package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// root is the repository.
const root = "../../.."

// A workflow is what these tests look at in a workflow file.
type workflow struct {
	On          yaml.Node
	Permissions *map[string]string
	Concurrency *struct {
		Group            string
		CancelInProgress yaml.Node `yaml:"cancel-in-progress"`
	}
	Jobs map[string]job
}

type job struct {
	RunsOn         string `yaml:"runs-on"`
	TimeoutMinutes int    `yaml:"timeout-minutes"`
	Permissions    *map[string]string
	Uses           string
	Environment    string
	Env            map[string]string
	Steps          []step
}

type step struct {
	Uses, Run string
	With      map[string]string
	Env       map[string]string
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(content)
}

// eachWorkflow runs a test on every workflow file.
func eachWorkflow(t *testing.T, test func(t *testing.T, content string, w *workflow)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.y*ml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var w workflow
			require.NoError(t, yaml.Unmarshal(content, &w))
			require.NotEmpty(t, w.Jobs)
			test(t, string(content), &w)
		})
	}
}

// pinned is an action at the digest of a commit.
var pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)

// A tag of an action can be moved to another commit by whoever has taken over its repository; a
// digest cannot. The tag stands behind it, for people and for dependabot.
func TestActionsArePinned(t *testing.T) {
	digests := map[string]string{}
	eachWorkflow(t, func(t *testing.T, content string, w *workflow) {
		var found []string
		for name, j := range w.Jobs {
			if j.Uses != "" {
				require.True(t, strings.HasPrefix(j.Uses, "./.github/workflows/"), "%s uses %s, allowed: workflows of this repository", name, j.Uses)
				require.FileExists(t, filepath.Join(root, j.Uses))
			}
			for _, s := range j.Steps {
				if s.Uses == "" {
					continue
				}
				found = append(found, s.Uses)
				require.Regexp(t, pinned, s.Uses, "job %s", name)
				action, digest, _ := strings.Cut(s.Uses, "@")
				require.Equal(t, digest, orSet(digests, action, digest), "%s has one digest everywhere", action)
			}
		}
		for _, use := range found {
			require.Regexp(t, regexp.QuoteMeta(use)+` # v\d+\.\d+\.\d+\n`, content, "its tag stands behind the digest")
		}
		for line := range strings.Lines(content) {
			if strings.Contains(line, "uses:") && !strings.Contains(line, "./") {
				require.Regexp(t, `uses: \S+@[0-9a-f]{40} # v\d`, line, "also where no step is read")
			}
		}
	})
	require.NotEmpty(t, digests)
}

func orSet(m map[string]string, key, value string) string {
	if m[key] == "" {
		m[key] = value
	}
	return m[key]
}

// mayWrite is which jobs may have more than reading, and what.
var mayWrite = map[string][]string{
	"images":   {"id-token", "attestations"},
	"binaries": {"contents", "id-token", "attestations"},
}

func TestWorkflowsHaveTheLeastRights(t *testing.T) {
	eachWorkflow(t, func(t *testing.T, content string, w *workflow) {
		require.NotNil(t, w.Permissions, "without it a job gets what the repository's settings say")
		require.Empty(t, *w.Permissions, "each job says what it needs")
		require.NotContains(t, content, "write-all")
		require.NotContains(t, content, "read-all")
		require.NotContains(t, content, "pull_request_target", "it gives secrets to the code of strangers")
		require.NotContains(t, content, "secrets: inherit")
		for name, j := range w.Jobs {
			require.NotNil(t, j.Permissions, name)
			for scope, right := range *j.Permissions {
				if right == "read" {
					continue
				}
				require.Equal(t, "write", right, "%s: %s", name, scope)
				require.Contains(t, mayWrite[name], scope, "job %s", name)
				require.Equal(t, "release", j.Environment, "who may write waits for the rules of an environment: %s", name)
			}
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/checkout@") {
					require.Equal(t, "false", s.With["persist-credentials"], "%s: the token is not left in the checkout", name)
				}
			}
		}
	})
}

func TestJobsEnd(t *testing.T) {
	eachWorkflow(t, func(t *testing.T, _ string, w *workflow) {
		require.NotNil(t, w.Concurrency)
		require.NotEmpty(t, w.Concurrency.Group)
		require.False(t, w.Concurrency.CancelInProgress.IsZero(), "said, not left to the default")
		for name, j := range w.Jobs {
			if j.Uses != "" {
				continue // the jobs of that workflow have one
			}
			require.Positive(t, j.TimeoutMinutes, name)
			require.LessOrEqual(t, j.TimeoutMinutes, 60, name)
			require.Regexp(t, `^ubuntu-\d\d\.\d\d$`, j.RunsOn, "%s: no image that changes under it", name)
		}
	})
}

// What others can name (a branch, a title) must not be read by a shell as commands. It comes
// in by variables.
func TestScriptsHoldNoExpressions(t *testing.T) {
	eachWorkflow(t, func(t *testing.T, _ string, w *workflow) {
		for name, j := range w.Jobs {
			for _, s := range j.Steps {
				require.NotContains(t, s.Run, "${{", "job %s", name)
			}
		}
	})
}

// Every make target and every script that a workflow runs is there.
func TestWorkflowsRunWhatThereIs(t *testing.T) {
	makefile := read(t, "Makefile")
	ran := 0
	eachWorkflow(t, func(t *testing.T, _ string, w *workflow) {
		for _, j := range w.Jobs {
			for _, s := range j.Steps {
				for _, target := range regexp.MustCompile(`\bmake ([a-z-]+)`).FindAllStringSubmatch(s.Run, -1) {
					require.Regexp(t, `(?m)^`+target[1]+`:`, makefile)
					ran++
				}
				for _, set := range regexp.MustCompile(`\bmake test (\w+)=1\b`).FindAllStringSubmatch(s.Run, -1) {
					// Under another name the test would skip what it is set for.
					require.Contains(t, read(t, "internal", "meta", "image", "build_test.go"), `"`+set[1]+`"`)
					ran++
				}
				for _, script := range regexp.MustCompile(`\bscripts/[\w.-]+`).FindAllString(s.Run, -1) {
					require.FileExists(t, filepath.Join(root, script))
					ran++
				}
				if strings.HasPrefix(s.Uses, "actions/setup-go@") { // what is scanned is what is shipped
					require.Equal(t, ".go-version", s.With["go-version-file"])
					require.NotContains(t, s.With, "go-version")
				}
				if target, ok := s.With["target"]; ok && !strings.HasPrefix(target, "${{") {
					require.Regexp(t, `(?m)^FROM .* AS `+target+`$`, read(t, "Dockerfile"))
				}
			}
		}
	})
	require.GreaterOrEqual(t, ran, 5)
}

// What is no setting, and has the prefix of one, the program refuses, and so do the tests of it.
func TestWorkflowsSetNoUnknownSettings(t *testing.T) {
	eachWorkflow(t, func(t *testing.T, content string, _ *workflow) {
		require.NotRegexp(t, `(?i)\bnumathrottle_\w+\s*[=:]`, content)
	})
}

// What .ci/run runs here, a workflow runs on every change.
func TestWorkflowRunsEveryStepOfTheCheck(t *testing.T) {
	var w workflow
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github", "workflows", "ci.yml")), &w))
	var runs strings.Builder
	for _, j := range w.Jobs {
		for _, s := range j.Steps {
			runs.WriteString(s.Run + "\n")
		}
	}
	steps := regexp.MustCompile(`(?m)^\s*step "(make [a-z-]+)"`).FindAllStringSubmatch(read(t, ".ci", "run"), -1)
	require.GreaterOrEqual(t, len(steps), 7)
	for _, step := range steps {
		require.Regexp(t, `\b`+step[1]+`\b`, runs.String())
	}
}

func TestDependabotKnowsEveryModule(t *testing.T) {
	var conf struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github", "dependabot.yml")), &conf))
	known := map[string][]string{}
	for _, u := range conf.Updates {
		known[u.Ecosystem] = append(known[u.Ecosystem], u.Directories...)
		if u.Directory != "" {
			known[u.Ecosystem] = append(known[u.Ecosystem], u.Directory)
		}
	}
	require.Contains(t, known, "github-actions")
	require.Contains(t, known, "docker")
	slices.Sort(known["gomod"])
	require.Equal(t, modules(t), known["gomod"])
}

// modules lists the folders of all modules, as seen from the repository's, by name.
func modules(t *testing.T) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			relative, err := filepath.Rel(root, filepath.Dir(path))
			require.NoError(t, err)
			list = append(list, filepath.ToSlash(filepath.Join("/", relative)))
		}
		return err
	}))
	slices.Sort(list)
	return list
}

// The tests of every module are run by some target.
func TestEveryModuleIsTested(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, module := range modules(t) {
		if module != "/" {
			require.Contains(t, makefile, " -C "+module[1:]+" test ")
		}
	}
}

// What the manifests deploy is what a release pushes.
func TestManifestsNameTheImagesOfARelease(t *testing.T) {
	released := regexp.MustCompile(`\{program: [\w-]+, image: ([\w-]+)\}`).FindAllStringSubmatch(read(t, ".github", "workflows", "release.yml"), -1)
	require.Len(t, released, 3)
	var names []string
	for _, match := range released {
		names = append(names, match[1])
	}
	deployed := 0
	for _, folder := range []string{"manifests", "examples"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			content, err := os.ReadFile(path)
			for _, match := range regexp.MustCompile(`(?m)^\s*image: \S*/(numathrottle[\w-]*)`).FindAllStringSubmatch(string(content), -1) {
				require.Contains(t, names, match[1], path)
				deployed++
			}
			return err
		}))
	}
	require.Positive(t, deployed)
}

// Each image of a release is pushed with its SBOM and its provenance, for both platforms, and attested by its digest.
func TestReleasedImagesSayWhatTheyAre(t *testing.T) {
	pushed := 0
	eachWorkflow(t, func(t *testing.T, _ string, w *workflow) {
		for name, j := range w.Jobs {
			push := slices.IndexFunc(j.Steps, func(s step) bool { return s.With["push"] == "true" })
			if push < 0 {
				continue
			}
			pushed++
			with := j.Steps[push].With
			require.Equal(t, "true", with["sbom"], name)
			require.Equal(t, "mode=max", with["provenance"], name)
			require.Equal(t, "linux/amd64,linux/arm64", with["platforms"], name)
			attested := slices.ContainsFunc(j.Steps[push:], func(s step) bool {
				return strings.HasPrefix(s.Uses, "actions/attest@") && strings.Contains(s.With["subject-digest"], ".outputs.digest")
			})
			require.True(t, attested, "%s: by its digest, which a tag does not name for good", name)
		}
	})
	require.Positive(t, pushed)
}
