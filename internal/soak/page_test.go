package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/meta/wrap"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

// madeUp writes figures of every test, in which all ended as it says, to a folder.
func madeUp(t *testing.T, outcome string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	save := func(name string, figures any) { require.NoError(t, proof.Save(folder, name, figures)) }
	for _, name := range []string{
		"simulation", "shell", "redis", "nats", "stops", "strict", "overrides", "limits", "tags", "quotas", "permits",
		"noloss", "pressure", "flat",
	} {
		save(name, proof.Pools{Subject: name})
	}
	for _, name := range []string{"permits-redis", "permits-nats"} {
		save(name, proof.Permits{Store: name})
	}
	save("mutants", []proof.Mutant{{Rule: "a", Seeds: 1, Caught: "window"}, {Rule: "b", Directed: "a schedule", Caught: "window"}})
	save("regressions", []proof.Regression{{Found: "once", Replay: "go test"}})
	save("regressions-servers", []proof.Regression{})
	save("fuzz", []proof.Fuzzed{{Target: "FuzzOne", Seconds: 25, Executions: 1, Result: outcome}})
	for _, s := range steps(lengths{}) {
		save(s.name+".run", ended(s.name, outcome))
	}
	return folder
}

func ended(name, outcome string) proof.Step {
	return proof.Step{Name: name, Command: "go test", Commit: "abc", Began: time.Unix(1_800_000_000, 0), Took: time.Minute, Outcome: outcome}
}

// written is the page that is made of a folder.
func written(t *testing.T, folder string) string {
	t.Helper()
	var p page
	_ = p.load(folder) // what is missing shows on the page
	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, p.write(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// head is the page above its table of steps.
func head(page string) string {
	before, _, _ := strings.Cut(page, "| step |")
	return before
}

func TestPageSaysThatAllIsWell(t *testing.T) {
	page := written(t, madeUp(t, proof.Well))
	require.Contains(t, head(page), "**0 violations; every step ended well**")
	require.Contains(t, page, "| mutants | abc | 15 January 2027, 08:00 | 1m0s | ok |\n")
	require.Contains(t, page, "| 2 of 2 rules caught |")
	require.Contains(t, page, "| 1 targets |")
	require.NotContains(t, page, "## What failed")
	require.NotContains(t, page, "FuzzOne", "targets that are well are counted only")
	require.NotContains(t, page, "**failed**")
	require.NotContains(t, head(page), "steps failed")
}

// A step can fail although no promise was seen broken.
func TestPageSaysWhatFailed(t *testing.T) {
	folder := madeUp(t, proof.Well)
	for _, name := range []string{"simulation", "mutants"} {
		require.NoError(t, proof.Save(folder, name+".run", ended(name, "exit status 1")))
	}
	require.NoError(t, os.Remove(filepath.Join(folder, "slots.run.json")))
	require.NoError(t, proof.Save(folder, "mutants", []proof.Mutant{
		{Rule: "a", Seeds: 1, Caught: "window"}, {Rule: "b", Directed: "a schedule"}, {Rule: "c"},
	}))
	require.NoError(t, proof.Save(folder, "fuzz", []proof.Fuzzed{{Target: "FuzzOne", Seconds: 5, Executions: 1, Result: "FAILED"}}))
	page := written(t, folder)
	require.Contains(t, head(page), "**0 violations; 2 of 18 steps failed: simulation, mutants; not run: slots**")
	require.Contains(t, page, "| mutants | abc | 15 January 2027, 08:00 | 1m0s | **failed**: exit status 1 |\n")
	require.Contains(t, page, "| slots |  | | | **not run** |\n")
	require.Contains(t, page, "| 1 of 3 rules caught |")
	require.Contains(t, page, "| b |  | schedule \"a schedule\" | **not caught** |\n")
	require.Contains(t, page, "| c |  |  | **not caught** |\n")
	require.Contains(t, page, "| FuzzOne | 5 | 1 | FAILED |\n")
}

// Figures of before outcomes were recorded say neither the one nor the other.
func TestPageOfOlderFigures(t *testing.T) {
	page := written(t, madeUp(t, ""))
	require.Contains(t, head(page), "**0 violations**")
	require.Contains(t, page, "| mutants | abc | 15 January 2027, 08:00 | 1m0s |  |\n")
	require.Contains(t, page, "| 2 rules caught |")
	require.Contains(t, page, "| FuzzOne | 25 | 1 |  |\n")
	require.NotContains(t, page, "**failed**")
	require.NotContains(t, head(page), "steps failed")
	require.NotContains(t, page, "ended well")
}

// A promise that was seen broken is a step that failed, whatever was recorded of its end.
func TestPageOfOlderFiguresWithViolations(t *testing.T) {
	folder := madeUp(t, "")
	require.NoError(t, proof.Save(folder, "noloss", proof.Pools{Violations: []proof.Violation{{Promise: "R11", Text: "lost", Replay: "go test"}}}))
	page := written(t, folder)
	require.Contains(t, head(page), "**1 violation; 1 of 18 steps failed: losses**")
	require.Contains(t, page, "| losses | abc | 15 January 2027, 08:00 | 1m0s | **failed**: violations |\n")
	require.Contains(t, page, "- **R11 broken**: lost. Replay: `go test`")
}

func TestStepRecordsHowItEnded(t *testing.T) {
	folder := t.TempDir()
	for command, want := range map[string]string{"true": proof.Well, "false": "exit status 1"} {
		err := step{name: command, args: []string{command}}.do(t.Context(), "abc", folder, io.Discard)
		require.Equal(t, want == proof.Well, err == nil)
		var got proof.Step
		require.NoError(t, proof.Load(folder, command+".run", &got))
		require.Equal(t, want, got.Outcome)
		require.Equal(t, want != proof.Well, got.Failed())
	}
}

// git runs git in the working directory.
func git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// A simulation that was ended goes on only while nothing has changed of what it depends on.
func TestWhatIsSimulated(t *testing.T) {
	t.Chdir("../..")
	parts := simulated(t.Context())
	require.Subset(t, parts, []string{"go.mod", "internal/sim", "pkg/consensus", "pkg/throttle"})
	for _, path := range parts {
		require.True(t, filepath.IsLocal(path), path)
		_, err := os.Stat(path)
		require.NoError(t, err)
	}
}

func TestVersionOfWhatIsCommitted(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(file, text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	of := func() string { return version(t.Context(), []string{"a.mod", "b"}) }
	require.Empty(t, of(), "no repository")
	require.Equal(t, "unknown", commit(t.Context()))
	git(t, "init", "-q")
	require.NoError(t, os.MkdirAll("b/below", 0o700))
	others := []string{"c.go", "b/b_test.go", "b/page.md", "b/below/d.go"}
	for _, file := range append([]string{"a.mod", "b/b.go"}, others...) {
		write(file, "1")
	}
	require.Empty(t, of(), "nothing is committed")
	git(t, "add", ".")
	git(t, "commit", "-qm", "one")
	one := of()
	require.NotEmpty(t, one)
	for _, file := range others {
		write(file, "2")
		require.Equal(t, one, of(), file)
		git(t, "commit", "-qam", "another file")
		require.Equal(t, one, of(), file)
	}
	versions := []string{one}
	for _, file := range []string{"a.mod", "b/b.go"} {
		write(file, "2")
		require.Empty(t, of(), "not committed")
		require.Contains(t, commit(t.Context()), "-dirty")
		git(t, "commit", "-qam", "one of them")
		require.NotContains(t, versions, of(), file)
		versions = append(versions, of())
	}
	write("b/new.go", "1")
	require.Empty(t, of(), "not committed")
	git(t, "add", ".")
	git(t, "commit", "-qm", "one more")
	require.NotContains(t, versions, of())
	require.NotContains(t, commit(t.Context()), "-dirty")
	require.NoError(t, os.MkdirAll("docs", 0o700))
	write("docs/reliability.md", "{}")
	require.NotContains(t, commit(t.Context()), "-dirty", "written by the soak")
	require.NotEmpty(t, of())
	require.NotEqual(t, one, of())
}

// The simulation is told of what it is, in what is committed.
func TestTheSimulationGoesOn(t *testing.T) {
	i := slices.IndexFunc(steps(lengths{}), func(s step) bool { return s.name == "simulation" })
	s := steps(lengths{})[i]
	folder := t.TempDir()
	t.Chdir(folder)
	require.NoError(t, os.MkdirAll("internal/sim", 0o700))
	require.NoError(t, os.WriteFile("internal/sim/sim.go", []byte("package sim\n"), 0o600))
	require.NoError(t, os.WriteFile("go.mod", []byte("module m\n"), 0o600))
	git(t, "init", "-q")
	git(t, "add", ".")
	git(t, "commit", "-qm", "one")
	s.args = []string{"sh", "-c", `test -n "$NUMATHROTTLE_SIM_OF"`}
	require.NoError(t, s.do(t.Context(), "abc", folder, io.Discard))
	require.NoError(t, os.WriteFile("go.mod", []byte("module m // changed\n"), 0o600))
	require.Error(t, s.do(t.Context(), "abc", folder, io.Discard))
}

// The page in the repository is one that this program has written: whoever changes what it says beside its figures changes it in the
// template, and writes it anew or in both.
func TestThePageIsOfItsTemplate(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	require.NoError(t, err)
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if !strings.Contains(paragraph, "{{") {
			require.Contains(t, string(page), wrap.Markdown(paragraph))
		}
	}
}
