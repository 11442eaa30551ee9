package pages

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/meta/wrap"
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

// A number with a dot at the beginning of a line is an item of a list, also in the middle of a sentence: items are counted from 1 on.
func TestListsAreCounted(t *testing.T) {
	item := regexp.MustCompile(`^ *(\d+)\. `)
	for page, text := range pages(t) {
		code, last := false, 0
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			number := item.FindStringSubmatch(line)
			if code || number == nil {
				continue
			}
			n, err := strconv.Atoi(number[1])
			require.NoError(t, err)
			require.Contains(t, []int{1, last + 1}, n, "%s:%d: %s", page, i+1, line)
			last = n
		}
	}
}

// update breaks lines that are too long: go test ./internal/meta/pages -run TestLinesAreShort -update.
var update = flag.Bool("update", false, "break the lines of pages that are too long")

// Text fits a window of 140 columns. Rows of tables and code are as long as they are. The list of changes is for machines, too: a
// line of it is an entry.
func TestLinesAreShort(t *testing.T) {
	var long []string
	for page, text := range pages(t) {
		if dir := filepath.Dir(page); dir != "docs" && dir != "." || page == "CHANGELOG.md" {
			continue
		}
		if *update {
			text = wrap.Markdown(text)
			require.NoError(t, os.WriteFile(page, []byte(text), 0o600)) // it is there, and keeps its mode
		}
		for _, line := range wrap.Long(text) {
			long = append(long, fmt.Sprintf("%s:%d", page, line))
		}
	}
	require.Empty(t, long, "lines have more than %d columns; run the test with -update", wrap.Most)
}
