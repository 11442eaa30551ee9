package meta

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script runs one of the scripts and returns its output.
func script(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", args...).CombinedOutput()
	return string(out), err
}

// write writes files into a new folder.
func write(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755))
	}
	return folder
}

// The message for a wrong argument has its value and the allowed ones.
func TestScriptsRefuse(t *testing.T) {
	for call, says := range map[string]string{
		"build.sh":                  "no folder to build into, allowed: scripts/build.sh OUT [PROGRAM ...]",
		"build.sh /tmp nope":        "nope is no program, allowed: numathrottle llm-map http-sink",
		"archive.sh latest /tmp":    `the version is "latest", allowed: v1.2.3 or v1.2.3-rc.1`,
		"archive.sh v1.2.3 /none":   `the folder is "/none", which is not there`,
		"package.sh 1.2 .":          `the version is "1.2", allowed: v1.2.3 or v1.2.3-rc.1`,
		"install-check.sh 1.2":      `the version is "1.2", allowed: v1.2.3 or v1.2.3-rc.1`,
		"release-notes.sh v1.2.*":   `the version is "v1.2.*"`,
		"release-notes.sh v999.9.9": `has nothing below "## [999.9.9]"`,
	} {
		out, err := script(t, strings.Fields("scripts/"+call)...)
		require.Error(t, err, call)
		require.Contains(t, out, says)
	}
}

func TestReleaseNotes(t *testing.T) {
	changelog := "# C\n\n## [Unreleased]\n\n- a\n\n## [1.2.3] - 2026\n\n### Added\n\n- b\n\n## [1.2.30]\n\n- c\n\n[1.2.3]: https://h\n"
	folder := write(t, map[string]string{"C.md": changelog})
	for version, want := range map[string]string{"v1.2.3": "### Added\n\n- b\n", "v1.2.30": "- c\n"} {
		out, err := script(t, "scripts/release-notes.sh", version, filepath.Join(folder, "C.md"))
		require.NoError(t, err, out)
		require.Equal(t, want, out)
	}
}

// An archive has the programs, executable, and the same bytes at another time.
func TestArchives(t *testing.T) {
	files := map[string]string{}
	for _, platform := range []string{"linux_amd64", "linux_arm64"} {
		for _, program := range []string{"llm-map", "http-sink", "numathrottle"} {
			files[platform+"/"+program] = program + platform
		}
	}
	var sums []string
	for range 2 {
		dist := write(t, files)
		require.NoError(t, os.Chtimes(filepath.Join(dist, "linux_amd64/llm-map"), time.Time{}, time.Now().Add(-time.Hour*time.Duration(len(sums)))))
		out, err := script(t, "scripts/archive.sh", "v1.2.3", dist)
		require.NoError(t, err, out)
		archive, err := os.ReadFile(filepath.Join(dist, "numathrottle_1.2.3_linux_arm64.tar.gz"))
		require.NoError(t, err)
		sum, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
		require.NoError(t, err)
		digest := sha256.Sum256(archive)
		require.Contains(t, string(sum), hex.EncodeToString(digest[:])+"  numathrottle_1.2.3_linux_arm64.tar.gz\n")
		list, err := exec.CommandContext(t.Context(), "tar", "-tvzf", filepath.Join(dist, "numathrottle_1.2.3_linux_amd64.tar.gz")).Output()
		require.NoError(t, err)
		for _, name := range []string{"llm-map", "http-sink", "numathrottle", "LICENSE", "README.md", "CHANGELOG.md"} {
			require.Regexp(t, `(?m)^-rw.r.[x-]r.. 0/0 .* `+name+`$`, string(list))
		}
		require.Contains(t, string(list), "-rwxr-xr-x")
		sums = append(sums, string(sum))
	}
	require.Equal(t, sums[0], sums[1])
}

// The images get the names and tags of the pages, whichever tool builds them.
func TestImageScript(t *testing.T) {
	tools := write(t, map[string]string{"podman": "#!/bin/sh\necho \"$@\"\n"})
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("BUILDER", "podman")
	t.Setenv("PREFIX", "registry.example/p/")
	out, err := script(t, "scripts/image.sh")
	require.NoError(t, err, out)
	for target, image := range map[string]string{"llm-map": "numathrottle-llm-map", "http-sink": "numathrottle-http-sink", "numathrottle": "numathrottle"} {
		require.Regexp(t, `build --target `+target+` --tag registry.example/p/`+image+`:\S+ --tag registry.example/p/`+image+`:latest `, out)
	}
	t.Setenv("BUILDER", "kaniko")
	out, err = script(t, "scripts/image.sh")
	require.Error(t, err)
	require.Contains(t, out, "BUILDER is kaniko, allowed: docker, podman, buildah")
}

// A release needs pages of nearly its own commit: not of an old one, of changed files, or of runs that failed.
func TestEvidence(t *testing.T) {
	dir := write(t, map[string]string{"docs/benchmarks.md": "", "docs/reliability.md": ""})
	t.Setenv("EVIDENCE_ROOT", dir)
	git := func(args ...string) string {
		args = append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)
		cmd := exec.CommandContext(t.Context(), "git", args...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	first := git("rev-parse", "--short", "HEAD")
	for i := range 3 {
		git("commit", "-q", "--allow-empty", "-m", fmt.Sprint(i))
	}
	near := git("rev-parse", "--short", "HEAD")
	t.Setenv("EVIDENCE_BEHIND", "2")
	for _, c := range []struct{ step, bench, says string }{
		{near + " | 1 May | 4m | ok", near, ""},
		{first + " | 1 May | 4m | ok", near, "redis is of " + first + ", 3 commits behind, allowed: 2: run make soak"},
		{near + "-dirty | 1 May | 4m | ok", near, `redis is of the commit "` + near + `-dirty"`},
		{"abcdef0 | 1 May | 4m | ok", near, "redis is of abcdef0, which is no commit before"},
		{near + " | 1 May | 4m | **failed**: exit status 1", near, `redis ended with "**failed**: exit status 1", allowed: ok`},
		{" | | | **not run**", near, "redis was not run: run make soak"},
		{near + " | 1 May | 4m | ok", first, "docs/benchmarks.md: the run is of " + first + ", 3 commits behind"},
	} {
		page := "| step | commit | began (UTC) | took | ended |\n| --- | --- | --- | ---: | --- |\n| redis | " + c.step + " |\n\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "docs/reliability.md"), []byte(page), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "docs/benchmarks.md"), []byte("| commit | "+c.bench+" |\n"), 0o600))
		out, err := script(t, "scripts/evidence.sh")
		require.Equal(t, c.says == "", err == nil, out)
		require.Contains(t, out, c.says)
	}
}

// A target fails if it finds something, and if it ends long before its time twice.
func TestFuzzTargetsFail(t *testing.T) {
	fake := write(t, map[string]string{
		"fuzz_test.go": "func FuzzWell(f *testing.F) {\nfunc FuzzEarly(f *testing.F) {\nfunc FuzzFinds(f *testing.F) {\nfunc FuzzOnce(f *testing.F) {\n",
		"go": `#!/usr/bin/env bash
case "$1 $2" in
"env GOCACHE") echo "$FAKE/cache" ;;
"list -m") echo example.com/module ;;
"list -f") echo "$FAKE example.com/module fuzz_test.go" ;;
"test -c") while [[ $1 != -o ]]; do shift; done; cp "$FAKE/binary" "$2" ;;
esac
`,
		"binary": `#!/usr/bin/env bash
[[ $1 != -test.list ]] || exec grep -o 'Fuzz[A-Za-z]*' "$FAKE/fuzz_test.go"
echo "fuzz: elapsed: 1s, execs: 100 (20/sec), new interesting: 7 (total: 9)"
case "$*" in *FuzzOnce*) ! mkdir "$FAKE/once" || exec "$0" FuzzEarly ;; esac
case "$*" in *FuzzEarly*) printf -- '--- FAIL: x\n    context deadline exceeded\n'; exit 1 ;; *FuzzFinds*) echo 'Failing input written'; exit 1 ;; esac
`,
	})
	for name, value := range map[string]string{"FAKE": fake, "GO": fake + "/go", "FUZZ_TIME": "60s", "FUZZ_ONLY": "."} {
		t.Setenv(name, value)
	}
	out, err := script(t, "scripts/fuzz.sh")
	require.Error(t, err, out)
	for target, result := range map[string]string{"Well": "ok", "Once": "ok", "Early": "FAILED", "Finds": "FAILED"} {
		require.Regexp(t, `(?m)^Fuzz`+target+` +100 +7 +\d+ +`+result+`$`, out)
	}
	t.Setenv("FUZZ_ONLY", "FuzzWell")
	out, err = script(t, "scripts/fuzz.sh")
	require.NoError(t, err, out)
}

// make norace runs the tests that ask internal/testkit, directly or by a helper.
func TestAsksRace(t *testing.T) {
	folder := write(t, map[string]string{
		"a_test.go": "func TestAsks(t *testing.T) {\n\ttestkit.SkipRace(t, \"\")\n}\n\nfunc TestByHelper(t *testing.T) { each(t) }\n\n" +
			"func TestWhole(t *testing.T) {\n\t// No testkit.SkipRace here, and nothing from each.\n\teachOne(t)\n}\n",
		"b_test.go": "func each(t *testing.T) { times() }\n\nfunc times() int { return testkit.Fewer(10) }\n\nfunc eachOne(t *testing.T) {}\n",
	})
	out, err := script(t, "scripts/asks-race.sh", folder)
	require.NoError(t, err, out)
	require.Equal(t, "^(TestAsks|TestByHelper)$\n", out)
}
