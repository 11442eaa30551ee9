package numathrottle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// imports maps the package names that the README's code may use to their paths.
var imports = map[string]string{
	"context":      "context",
	"http":         "net/http",
	"httpthrottle": "github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle",
	"log":          "log",
	"mapper":       "github.com/numaproj-contrib/numathrottle/pkg/mapper",
	"mapsdk":       "github.com/numaproj/numaflow-go/pkg/mapper",
	"numathrottle": "github.com/numaproj-contrib/numathrottle",
	"throttle":     "github.com/numaproj-contrib/numathrottle/pkg/throttle",
}

// Every block of Go in the README compiles, given what a reader has to bring: a
// handler, a service to call, the usual imports.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, blocks)

	root, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	var packages []string
	for i, block := range blocks {
		pkg := fmt.Sprintf("internal/readme%d", i)
		file := filepath.Join(dir, fmt.Sprintf("block%d.go", i))
		require.NoError(t, os.WriteFile(file, []byte(program(block[1])), 0o600))
		overlay["Replace"][filepath.Join(root, pkg, "main.go")] = file
		packages = append(packages, "./"+pkg)
	}
	encoded, err := json.Marshal(overlay)
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, encoded, 0o600))

	out, err := exec.CommandContext(t.Context(), "go", append([]string{"build", "-overlay", overlayFile, "-o", dir + "/out/"}, packages...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// program makes a whole program of a block: one with a main function as it is,
// statements within a function.
func program(block string) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for name, path := range imports {
		if name != "context" && regexp.MustCompile(`\b`+name+`\.`).MatchString(block) {
			fmt.Fprintf(&b, "\t%s %q\n", name, path)
		}
	}
	b.WriteString("\t\"context\"\n)\n\nvar _ context.Context\n\n")
	if strings.Contains(block, "func main()") {
		if strings.Contains(block, "handler") {
			b.WriteString("var handler mapsdk.Mapper\n\n")
		}
		return b.String() + block
	}
	b.WriteString("func callTheService() {}\n\nfunc block(ctx context.Context) error {\n" + block + "\nreturn err\n}\n\n")
	b.WriteString("func main() { _ = block(context.Background()) }\n")
	return b.String()
}
