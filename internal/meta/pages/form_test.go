package pages

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README is read in one go, and shows the two commands that everything begins with.
func TestReadme(t *testing.T) {
	text := pages(t)["README.md"]
	require.LessOrEqual(t, strings.Count(text, "\n"), 120)
	for _, says := range []string{"\nmake demo ", "\nmake test ", "\npackage main\n", "\n## Supported versions\n"} {
		require.Contains(t, text, says)
	}
}

// Every page of docs/ stands in the index once, in one of its five groups.
func TestIndex(t *testing.T) {
	texts := pages(t)
	index := texts["docs/README.md"]
	for _, group := range []string{"Start", "Guides", "Reference", "Operations", "Internals"} {
		require.Contains(t, index, "\n## "+group+"\n")
	}
	for page := range texts {
		name, inDocs := strings.CutPrefix(page, "docs/")
		if inDocs && name != "README.md" {
			require.Equal(t, 1, strings.Count(index, "| ["+name+"]("+name+") |"), "docs/README.md does not name %s once", name)
		}
	}
}

// wide are the pages with lines that are still too long: generated ones, and those that nobody has wrapped yet.
var wide = map[string]bool{
	"CHANGELOG.md": true, "CONTRIBUTING.md": true, "SECURITY.md": true, "docs/any-language.md": true, "docs/architecture.md": true,
	"docs/benchmarks.md": true, "docs/choose-a-limit.md": true, "docs/cli.md": true, "docs/configuration.md": true,
	"docs/http-proxy.md": true, "docs/metrics.md": true, "docs/operations.md": true,
	"docs/pause.md": true, "docs/permits.md": true, "docs/refusals.md": true, "docs/reliability.md": true, "docs/stores.md": true,
	"docs/wrappers.md": true,
}

// Text fits a window of 140 columns. Rows of tables and code are as long as they are.
func TestLinesAreShort(t *testing.T) {
	var long []string
	for page, text := range pages(t) {
		if wide[page] || filepath.Dir(page) != "docs" && page != "README.md" {
			continue
		}
		code := false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if n := len([]rune(line)); n > 140 && !code && !strings.HasPrefix(line, "|") {
				long = append(long, fmt.Sprintf("%s:%d has %d columns", page, i+1, n))
			}
		}
	}
	require.Empty(t, long)
}
