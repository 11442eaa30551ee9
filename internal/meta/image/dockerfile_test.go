package image

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository.
const root = "../../.."

// programs are the targets of the Dockerfile.
var programs = []string{"llm-map", "http-sink", "numathrottle"}

// A stage is a part of a Dockerfile from one FROM to the next.
type stage struct {
	name, from   string
	platform     string
	instructions []instruction
}

// An instruction is a line, with those that continue it.
type instruction struct{ keyword, text string }

// parseDockerfile reads as much of the format as the Dockerfile uses.
func parseDockerfile(t *testing.T) []stage {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	var stages []stage
	var line string
	for part := range strings.Lines(string(content)) {
		part = strings.TrimSpace(part)
		if part == "" || strings.HasPrefix(part, "#") {
			continue
		}
		line += part
		if before, continued := strings.CutSuffix(line, "\\"); continued {
			line = before
			continue
		}
		keyword, text, _ := strings.Cut(line, " ")
		line = ""
		if keyword == "FROM" {
			from := regexp.MustCompile(`^(?:--platform=(\S+) )?(\S+) AS (\S+)$`).FindStringSubmatch(text)
			require.NotNil(t, from, text)
			stages = append(stages, stage{platform: from[1], from: from[2], name: from[3]})
			continue
		}
		require.NotEmpty(t, stages, "%s before the first FROM", keyword)
		last := &stages[len(stages)-1]
		last.instructions = append(last.instructions, instruction{keyword, strings.TrimSpace(text)})
	}
	require.Empty(t, line, "the last line is continued by none")
	return stages
}

// A recipe is what the image of a target consists of.
type recipe struct {
	files      map[string]string // by where they are in the image: where the build stage has them
	env        []string
	user       string
	entrypoint []string
	labels     string
}

// recipeOf puts together what the stages of a target say.
func recipeOf(t *testing.T, stages []stage, target string) recipe {
	t.Helper()
	r := recipe{files: map[string]string{}}
	i := slices.IndexFunc(stages, func(s stage) bool { return s.name == target })
	require.GreaterOrEqual(t, i, 0, "no stage %q", target)
	if from := stages[i].from; from != "scratch" {
		r = recipeOf(t, stages, from)
	}
	for _, in := range stages[i].instructions {
		switch in.keyword {
		case "COPY":
			words := strings.Fields(in.text)
			require.Len(t, words, 3, "COPY %s: one file at a time, so that this test sees them all", in.text)
			require.Equal(t, "--from=build", words[0])
			require.False(t, strings.HasSuffix(words[2], "/"), in.text)
			r.files[words[2]] = words[1]
		case "ENV":
			r.env = append(r.env, strings.Fields(in.text)...)
		case "USER":
			r.user = in.text
		case "ENTRYPOINT":
			require.NoError(t, json.Unmarshal([]byte(in.text), &r.entrypoint), "in exec form: there is no shell")
		case "LABEL":
			r.labels += in.text + " "
		case "ARG":
		default:
			require.Fail(t, "an instruction that this test does not know", "%s %s", in.keyword, in.text)
		}
	}
	return r
}

func file(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(content)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestDockerfile(t *testing.T) {
	stages := parseDockerfile(t)
	require.Equal(t, "build", stages[0].name)
	require.Equal(t, "$BUILDPLATFORM", stages[0].platform, "Go compiles for the target; nothing is emulated")
	require.Regexp(t, `^docker\.io/library/golang:\d+\.\d+\.\d+-[a-z]+@sha256:[0-9a-f]{64}$`, stages[0].from, "the whole version, and its digest")
	require.Contains(t, goVersion(t), regexp.MustCompile(`^docker\.io/library/golang:(\d+\.\d+)`).FindStringSubmatch(stages[0].from)[1], "the Go of go.mod")
	image := regexp.MustCompile(`golang:(\d+\.\d+)\.(\d+)-`).FindStringSubmatch(stages[0].from)
	toolchain := regexp.MustCompile(`^(\d+\.\d+)\.(\d+)\n$`).FindStringSubmatch(file(t, ".go-version"))
	require.NotNil(t, toolchain, "a whole version")
	require.Equal(t, image[1], toolchain[1])
	require.GreaterOrEqual(t, number(t, toolchain[2]), number(t, image[2]), "a newer image needs a newer .go-version")
	var builds []string
	for _, in := range stages[0].instructions {
		if in.keyword == "RUN" {
			builds = append(builds, in.text)
		}
	}
	require.Len(t, builds, 1)
	require.Contains(t, builds[0], "scripts/build.sh /out", "the flags of a build stand there and nowhere else")
	require.Contains(t, builds[0], "GOOS=$TARGETOS GOARCH=$TARGETARCH")
	require.Contains(t, builds[0], "GOTOOLCHAIN=go$(cat .go-version) ", "what is scanned is what is shipped")
	for _, cache := range []string{"target=/go/pkg/mod", "target=/root/.cache/go-build"} {
		require.Contains(t, builds[0], "--mount=type=cache,"+cache)
	}
	for _, program := range programs {
		r := recipeOf(t, stages, program)
		require.Equal(t, []string{"/" + program}, r.entrypoint)
		require.Equal(t, "/out/"+program, r.files["/"+program])
		require.Len(t, r.files, 2, "the program and the authorities, and nothing else")
		require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, r.user, "a number, and not root's")
		for _, label := range []string{"title=" + program, "description=", "version=$VERSION", "revision=$REVISION", "source=https://", "licenses=Apache-2.0"} {
			require.Contains(t, r.labels, "org.opencontainers.image."+label)
		}
	}
	require.Equal(t, "numathrottle", stages[len(stages)-1].name, "what is built without --target")
}

// goVersion is that of go.mod.
func goVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(content))[1]
}

// A file that git knows and the builder does not get would make the version that of a changed checkout.
func TestDockerignoreLeavesEverythingThatGitKnows(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	var patterns []*regexp.Regexp
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			require.NotContains(t, line, "!", "what this test does not read")
			pattern := regexp.QuoteMeta(strings.Trim(line, "/"))
			pattern = strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `\*`, `[^/]*`).Replace(pattern)
			patterns = append(patterns, regexp.MustCompile(`^`+pattern+`(?:/|$)`))
		}
	}
	require.NotEmpty(t, patterns)
	ignored := func(path string) bool {
		return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(path) })
	}
	for path, want := range map[string]bool{
		".bin/golangci-lint": true, "numathrottle": true, "cmd/numathrottle/main.go": false, "examples/llm-map/main.go": false,
		"a/b/c.test": true, "c.prof": true, ".git/HEAD": false, "go.mod": false,
	} {
		require.Equal(t, want, ignored(path), path)
	}
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("not in a checkout, or without git: %v", err)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		require.False(t, ignored(path), "%s is left out by .dockerignore", path)
	}
}

func TestImageScriptSaysWhatIsMissing(t *testing.T) {
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	empty := t.TempDir()
	for _, tool := range []string{"git", "dirname", "uname"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(empty, tool)))
	}
	run := func(env, arg string) string {
		cmd := exec.CommandContext(t.Context(), bash, "scripts/image.sh", arg)
		cmd.Dir, cmd.Env = root, []string{"PATH=" + empty, env}
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		return string(out)
	}
	require.Contains(t, run("X=", "llm-map"),
		"nothing here builds images:\n  docker: not installed\n  podman: not installed\n  buildah: not installed\nInstall one of:")
	require.Contains(t, run("BUILDER=kaniko", "llm-map"), "BUILDER is kaniko, allowed: docker, podman, buildah")
	// A stand-in that is content with everything.
	require.NoError(t, os.WriteFile(filepath.Join(empty, "podman"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o755))
	require.Contains(t, run("X=", "nope"), "nope is no program, allowed: llm-map, http-sink, numathrottle")
	cmd := exec.CommandContext(t.Context(), bash, "scripts/image.sh")
	cmd.Dir, cmd.Env = root, []string{"PATH=" + empty, "PREFIX=registry.example/p/", "PLATFORM=linux/arm64"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for target, image := range map[string]string{"llm-map": "numathrottle-llm-map", "http-sink": "numathrottle-http-sink", "numathrottle": "numathrottle"} {
		require.Regexp(t, `build --target `+target+` --tag registry.example/p/`+image+`:\S+ --tag registry.example/p/`+image+
			`:latest --build-arg VERSION=\S+ --build-arg REVISION=\S+ --platform linux/arm64 --build-arg BUILDPLATFORM=linux/\w+ \.\n`, string(out))
	}
}
