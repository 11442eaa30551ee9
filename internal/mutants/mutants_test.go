package mutants

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// asks finds the rules that switches ask for.
var asks = regexp.MustCompile(`skip\("([^"]*)"\)`)

// Each edit fits one place of the product as it is, and what it makes is Go. Each rule is asked for, and none that is not known.
func TestEditsFit(t *testing.T) {
	for _, r := range rules {
		_, err := switched(root, []Rule{r})
		require.NoError(t, err)
	}
	files, err := switched(root, rules)
	require.NoError(t, err)
	asked := map[string]bool{}
	for name, text := range files {
		_, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		for _, m := range asks.FindAllStringSubmatch(text, -1) {
			asked[m[1]] = true
		}
	}
	for _, r := range rules {
		require.NotEmpty(t, r.Says, "rule %q", r.Name)
		require.True(t, asked[r.Name], "rule %q (rules/%s.diff): no edit has skip(%q)", r.Name, r.Book, r.Name)
		delete(asked, r.Name)
	}
	require.Empty(t, asked, "rules that skip asks for, not known or listed twice")
}

// An edit that does not fit tells its rule and its file.
func TestEditsThatDoNotFit(t *testing.T) {
	const book = `# room: cap it
@@ file.go
 	a := 1
-	b := 2
+	b := 3
 	c := 4
`
	for name, c := range map[string]struct{ text, want, err string }{
		"fits":      {"x\n\ta := 1\n\tb := 2\n\tc := 4\n", "x\n\ta := 1\n\tb := 3\n\tc := 4\n", ""},
		"fits none": {"x\n\ta := 1\n\tb := 1\n\tc := 4\n", "", `rule "room" (internal/mutants/rules/driver.diff), file file.go: the edit fits no place`},
		"fits two":  {"\ta := 1\n\tb := 2\n\tc := 4\n\ta := 1\n\tb := 2\n\tc := 4\n", "", "file file.go: the edit fits lines 1 and 4, expected one place"},
		"no file":   {"", "", "rule \"room\": open "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := module(t)
			if c.text != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "file.go"), []byte(c.text), 0o600))
			}
			files, err := switched(dir, parse("driver", book))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, files["file.go"])
		})
	}
	dir := module(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file.go"), []byte("\ta := 1\n\tb := 2\n\tc := 4\n"), 0o600))
	_, err := switched(dir, parse("driver", book+book))
	require.ErrorContains(t, err, "another edit has replaced line 2")
}

// module is a folder with what the overlay changes always.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "internal/mutants"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "internal/mutants/mutants.go"), []byte("const overlaid = false\n"), 0o600))
	return dir
}

func TestInsertsInOnePlace(t *testing.T) {
	s := newSource("a\nb\n")
	for _, lines := range [][]string{{"+first", " a"}, {" a", "+second"}, {" a", "+third", " b"}, {"-b", "+B"}} {
		require.NoError(t, s.note(edit{"", lines}))
	}
	require.Equal(t, "first\na\nsecond\nthird\nB\n", s.text())
}

func TestWriteOverlay(t *testing.T) {
	dir := t.TempDir()
	name, err := WriteOverlay(root, dir)
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var overlay map[string]map[string]string
	require.NoError(t, json.Unmarshal(text, &overlay))
	for file, by := range overlay["Replace"] {
		require.True(t, filepath.IsAbs(file))
		require.FileExists(t, by)
	}
	file, err := filepath.Abs("mutants.go")
	require.NoError(t, err)
	itself, err := os.ReadFile(overlay["Replace"][file])
	require.NoError(t, err)
	require.Contains(t, string(itself), "const overlaid = true\n")
}

func TestLeaveOut(t *testing.T) {
	require.EqualError(t, leaveOut("rooom", true), `rule is "rooom", allowed: those in internal/mutants/rules`)
	require.EqualError(t, leaveOut("room", false), `rule "room" has no switch in this build: start the test with go run ./internal/mutants/run`)
	defer func() { out = "" }()
	require.NoError(t, leaveOut("room", true))
	require.True(t, Skip("room"))
	require.False(t, Skip("clone"))
	require.EqualError(t, leaveOut("clone", true), `rule "room" is left out already, so "clone" cannot be`)
}

// Each rule that names a test has one, which its package plays.
func TestRulesThatNameTheirTests(t *testing.T) {
	for _, r := range Rules("slottags") {
		require.NotEmpty(t, r.Test, "rule %q", r.Name)
		played, err := os.ReadFile(filepath.Join(root, r.Package, "slottags_mutants_test.go"))
		require.NoError(t, err, "rule %q", r.Name)
		require.Contains(t, string(played), `mutants.NeedTheirTests(t, "slottags")`)
	}
	r := Rule{Name: "room", Test: "TestRules"}
	require.EqualError(t, r.fails(t.Context(), false), `rule "room" has no switch in this build: start the test with go run ./internal/mutants/run`)
	require.ErrorContains(t, r.fails(t.Context(), true), `rule "room": TestRules does not fail without it`)
}

func TestRules(t *testing.T) {
	list := Rules("pooldoc", "ceiling")
	require.Len(t, list, 5)
	require.Equal(t, "document-return", list[0].Name)
	require.Equal(t, "give back the documents that the store has lost", list[0].Says)
	require.Equal(t, "hard-override", list[2].Name)
	require.Empty(t, Rules("nothing"))
}
