package meta

import (
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

	"github.com/stretchr/testify/require"
)

// A shell runs the commands of a page with bash. It finds only stand-ins, which record their calls and print a placeholder.
type shell struct {
	bash, folder string // folder holds the stand-ins
}

// A call is one command that a page runs.
type call struct {
	settings []string // the variables of this project in its environment, in the form of os.Environ
	words    []string
}

// ending is the call that ends every script. Its settings are those that the script leaves behind.
const ending = "the-end"

// standIn is the script of every stand-in, for the paths of bash, cp and mkdir. Later commands may need a built program or a cloned folder.
const standIn = `#!%[1]s
for name in ${!NUMATHROTTLE_*} ${!LLM_MAP_*} ${!HTTP_SINK_*}; do printf '%%s\0' "$name=${!name}" >>"$RECORD"; done
printf '\1'"${0##*/}"'\0' >>"$RECORD"
for word; do printf '%%s\0' "$word" >>"$RECORD"; done
printf '\2' >>"$RECORD"
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

// run returns the commands of a script. The error has the complaints of bash: an unknown command, a missing folder, wrong syntax.
func (s *shell) run(t *testing.T, script string) (calls []call, err error) {
	t.Helper()
	record := filepath.Join(t.TempDir(), "record")
	// With allexport, a later call shows an assignment without a command in its settings.
	cmd := exec.CommandContext(t.Context(), s.bash, "-c", "set -o allexport\n"+script+"\nwait\n"+ending)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + s.folder, "RECORD=" + record}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		return nil, errors.Join(err, errors.New(complaints.String()))
	}
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	words := func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00") }
	for part := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x02"), "\x02") {
		settings, command, _ := strings.Cut(part, "\x01")
		calls = append(calls, call{slices.DeleteFunc(words(settings), func(w string) bool { return w == "" }), words(command)})
	}
	return calls, nil
}

// A snippet is a piece of a page that is for a shell.
type snippet struct {
	page, script string
}

// fence matches a block with its language.
var fence = regexp.MustCompile("(?sm)^ *```(\\w*)\n(.*?)^ *```$")

// snippets returns the shell's blocks of all pages, and the commands within their texts. unnamed are unchecked blocks: of commands
// without a language, or of others.
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
			case "console": // commands behind a prompt, and their output
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
