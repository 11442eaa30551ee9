package meta

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// TestMain runs the tests in the root of the repository: the paths in the pages are their paths.
func TestMain(m *testing.M) {
	var err error
	built, err = os.MkdirTemp("", "meta-")
	// Programs are compiled as for users, not once more for the race detector of this process.
	if err = errors.Join(err, os.Chdir("../.."), os.Setenv("CGO_ENABLED", "0")); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// pages returns the files that users read, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*/*.md", "manifests/*.md", "charts/*/*.md", "pkg/*/*/*.md", "plugins/*/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all[file] = string(text)
		}
	}
	return all
}

// blocks returns the texts between fences of one language.
func blocks(page, language string) []string {
	var found []string
	for _, block := range regexp.MustCompile("(?sm)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		found = append(found, block[1])
	}
	return found
}

// imports maps the package names that code in the pages may use to their paths.
var imports = map[string]string{
	"consensus":    "github.com/numaproj-contrib/numathrottle/pkg/consensus",
	"errors":       "errors",
	"grpc":         "google.golang.org/grpc",
	"grpcthrottle": "github.com/numaproj-contrib/numathrottle/pkg/throttle/grpcthrottle",
	"handlertest":  "github.com/numaproj-contrib/numathrottle/pkg/handlertest",
	"http":         "net/http",
	"httpthrottle": "github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle",
	"log":          "log",
	"mapper":       "github.com/numaproj-contrib/numathrottle/pkg/mapper",
	"mapsdk":       "github.com/numaproj/numaflow-go/pkg/mapper",
	"numathrottle": "github.com/numaproj-contrib/numathrottle",
	"open":         "github.com/numaproj-contrib/numathrottle/pkg/open",
	"proto":        "google.golang.org/protobuf/proto",
	"rate":         "golang.org/x/time/rate",
	"sinker":       "github.com/numaproj-contrib/numathrottle/pkg/sinker",
	"throttle":     "github.com/numaproj-contrib/numathrottle/pkg/throttle",
	"time":         "time",
}

// bring declares the reader's part of the code: handlers, limits, a store, a service to call.
const bring = `package page

import (
	"context"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/grpcthrottle"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

var (
	handler interface {
		mapsdk.Mapper
		sinksdk.Sinker
	}
	ctx                              context.Context
	store                            consensus.Store
	limiter, tokens, requests, slots throttle.Limiter
	estimate                         func(*http.Request) int
	prompt                           string
	throttled                        *grpcthrottle.Interceptor
	retrying                         grpc.UnaryClientInterceptor
	creds                            credentials.TransportCredentials
)

func callTheService()                                    {}
func ask(context.Context, string) (string, error)        { return "", nil }
func nackAfter(time.Duration) any                        { return nil }
func deadLetter(string) any                              { return nil }
`

// Every block of Go in the pages compiles with these declarations. Tests in them pass.
func TestPagesCompile(t *testing.T) {
	testkit.SkipShort(t, "it compiles every block")
	root, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	var packages, tests []string
	add := func(pkg, name, text string) {
		file := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		overlay["Replace"][filepath.Join(root, pkg, name)] = file
	}
	texts := pages(t)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		for i, block := range blocks(texts[page], "go") {
			pkg := fmt.Sprintf("internal/pages/%s%d", strings.ToLower(strings.TrimSuffix(filepath.Base(page), ".md")), i)
			if strings.Contains(block, "\nfunc Test") {
				add(pkg, "main_test.go", block)
				tests = append(tests, "./"+pkg)
				continue
			}
			if strings.HasPrefix(block, "package main\n") { // a whole program brings its imports itself
				add(pkg, "main.go", block)
			} else {
				add(pkg, "bring.go", bring)
				add(pkg, "block.go", program(block))
			}
			packages = append(packages, "./"+pkg)
		}
	}
	require.Greater(t, len(packages), 6)
	require.NotEmpty(t, tests)
	encoded, err := json.Marshal(overlay)
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, encoded, 0o600))

	out, err := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlayFile}, packages...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, pkg := range tests { // the go command would run a test in its folder, which there is not
		binary := filepath.Join(dir, "page.test")
		out, err = exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", overlayFile, "-c", "-o", binary, pkg).CombinedOutput()
		require.NoError(t, err, "%s", out)
		out, err = exec.CommandContext(t.Context(), binary, "-test.v").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: Test")
	}
}

// program makes a file of a block. It puts statements into a function.
func program(block string) string {
	var b strings.Builder
	b.WriteString("package page\n\nimport (\n\t\"context\"\n")
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(block) {
			fmt.Fprintf(&b, "\t%s %q\n", name, imports[name])
		}
	}
	b.WriteString(")\n\nvar _ context.Context\n\n")
	if strings.HasPrefix(block, "func ") {
		return b.String() + block
	}
	b.WriteString("func block() any {\n" + block + "\n")
	for _, names := range regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`).FindAllStringSubmatch(block, -1) {
		for name := range strings.SplitSeq(names[1], ", ") {
			fmt.Fprintf(&b, "\t_ = %s\n", name)
		}
	}
	b.WriteString("\treturn nil\n}\n")
	return b.String()
}

// Load accepts every block of YAML in docs/, except those of other programs.
func TestPagesSettings(t *testing.T) {
	loaded := 0
	for page, text := range pages(t) {
		if filepath.Dir(page) != "docs" && page != "README.md" {
			continue // the programs' own settings, and manifests, are checked in manifests/check
		}
		for _, block := range blocks(text, "yaml") {
			if strings.Contains(block, "apiVersion:") || strings.Contains(block, "rateLimit:") {
				continue // in manifests/check
			}
			file := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(block), 0o600))
			t.Setenv("NUMATHROTTLE_CONFIG", file)
			// As in the pod of a vertex, which names the pool.
			t.Setenv("NUMAFLOW_NAMESPACE", "ns")
			t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", "mono")
			_, err := numathrottle.Load()
			require.NoError(t, err, "%s:\n%s", page, block)
			loaded++
		}
	}
	require.Greater(t, loaded, 3)
}

// Every link from a page into the project leads to a file, and to an existing heading. The index of docs/ names every page.
func TestPagesLinks(t *testing.T) {
	texts := pages(t)
	followed := 0
	for page, text := range texts {
		prose := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(text, "")
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(link[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			require.FileExists(t, target, "%s: %s", page, link[1])
			if anchor != "" {
				require.Contains(t, anchors(texts[target]), anchor, "%s: %s", page, link[1])
			}
			followed++
		}
		if name, inDocs := strings.CutPrefix(page, "docs/"); inDocs && name != "README.md" {
			require.Contains(t, texts["docs/README.md"], "]("+name+")", "docs/README.md does not name %s", name)
		}
	}
	require.Greater(t, followed, 50)
}

// anchors returns GitHub's names of the headings of a page.
func anchors(page string) (names []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		names = append(names, regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(strings.ToLower(strings.ReplaceAll(heading[1], " ", "-")), ""))
	}
	return names
}

// Text fits a window of 140 columns. Rows of tables, headings and code may be longer, and so may the list of changes.
func TestLinesAreShort(t *testing.T) {
	for page, text := range pages(t) {
		if dir := filepath.Dir(page); dir != "docs" && dir != "." || page == "CHANGELOG.md" {
			continue
		}
		for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
			fixed := strings.ContainsAny(line[:1], "|#<!")
			words := strings.Fields(regexp.MustCompile("`[^`]*`").ReplaceAllString(line, "x")) // code is not broken
			require.True(t, fixed || len(words) == 1 || utf8.RuneCountInString(line) <= 141, "%s: a line has more than 140 columns: %s", page, line)
		}
	}
}
