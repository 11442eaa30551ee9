package pages

import (
	"errors"
	"fmt"
	"maps"
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

// A shell runs the commands of a page by bash, which knows best what they are: their words, variables, functions and pipes. But
// for what is part of bash, it finds stand-ins only, which do nothing, write down how they were called, and print a placeholder.
type shell struct {
	bash, folder string // folder holds the stand-ins
}

// A call is one command that a page runs.
type call struct {
	settings []string // the variables of this project in its environment, in the form of os.Environ
	words    []string
}

// ending is the call that ends every script: its settings are those that the script leaves behind.
const ending = "the-end"

// standIn is the script of every stand-in, with the paths of cp and mkdir to come. What another one needs, it leaves behind:
// the program that a build makes, and the folder of a clone.
const standIn = `#!%[1]s
settings=()
for name in ${!NUMATHROTTLE_*} ${!LLM_MAP_*} ${!HTTP_SINK_*}; do settings+=("$name=${!name}"); done
printf '%%s\0' "${#settings[@]}" "${settings[@]}" "$(($# + 1))" "${0##*/}" "$@" >>"$RECORD"
case "${0##*/} $1" in
"go build") [[ $2 != -o ]] || %[2]q "$0" "$3" ;;
"git clone") name="${2##*/}" && %[3]q -p "${name%%.git}" ;;
esac
echo placeholder
`

// newShell makes stand-ins for the commands with these names.
func newShell(t *testing.T, names []string) *shell {
	t.Helper()
	var paths []any
	for _, name := range []string{"bash", "cp", "mkdir"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		paths = append(paths, path)
	}
	s := &shell{bash: fmt.Sprint(paths[0]), folder: t.TempDir()}
	for _, name := range append(names, ending) {
		require.NoError(t, os.WriteFile(filepath.Join(s.folder, name), fmt.Appendf(nil, standIn, paths...), 0o700))
	}
	return s
}

// run returns the commands that a script runs, in the order of their starts. The error is what bash says of it: a
// command that there is not, a folder that there is not, what is no shell.
func (s *shell) run(t *testing.T, script string) ([]call, error) {
	t.Helper()
	here := t.TempDir()
	record := filepath.Join(t.TempDir(), "record")
	// With allexport, an assignment without a command shows in the settings of what comes after it.
	cmd := exec.CommandContext(t.Context(), s.bash, "-c", "set -o allexport\n"+script+"\nwait\n"+ending)
	cmd.Dir = here
	cmd.Env = []string{"PATH=" + s.folder, "RECORD=" + record}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		return nil, errors.Join(err, errors.New(complaints.String()))
	}
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	return parseRecord(t, strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")), nil
}

// parseRecord reads what the stand-ins have written: lists, each with its length before it.
func parseRecord(t *testing.T, record []string) []call {
	t.Helper()
	list := func() []string {
		n, err := strconv.Atoi(record[0])
		require.NoError(t, err)
		items := record[1 : n+1]
		record = record[n+1:]
		return items
	}
	var calls []call
	for len(record) > 0 {
		settings := list()
		calls = append(calls, call{settings, list()})
	}
	return calls
}

// A snippet is a piece of a page that is for a shell.
type snippet struct {
	page, script string
}

// fence matches a block with its language.
var fence = regexp.MustCompile("(?sm)^ *```(\\w*)\n(.*?)^ *```$")

// snippets are the shell's blocks of all pages, and the commands within their texts that begin with one of the names.
// Blocks without a language that have such commands are returned apart, and those of languages that nobody checks.
func snippets(t *testing.T, names []string) (found []snippet, unnamed []string) {
	t.Helper()
	texts := pages(t)
	command := `(?:` + strings.Join(names, "|") + `)`
	inText := regexp.MustCompile("`((?:NUMATHROTTLE_\\w+=\\S* ?)*(?:" + command + " [^`]+)?)`")
	line := regexp.MustCompile(`(?m)^(?:\$ )?` + command + ` `)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		for _, block := range fence.FindAllStringSubmatch(texts[page], -1) {
			switch language, text := block[1], block[2]; language {
			case "sh", "bash", "shell":
				found = append(found, snippet{page, text})
			case "console": // commands behind a prompt, and what they print
				for _, typed := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(text, -1) {
					found = append(found, snippet{page, typed[1]})
				}
			case "go", "python", "yaml", "json", "promql": // checked elsewhere, but for answers of services
			default:
				if language != "" && language != "text" || line.MatchString(text) {
					unnamed = append(unnamed, page+": "+text)
				}
			}
		}
		for _, m := range inText.FindAllStringSubmatch(fence.ReplaceAllString(texts[page], ""), -1) {
			if m[1] != "" {
				found = append(found, snippet{page, m[1]})
			}
		}
	}
	return found, unnamed
}
