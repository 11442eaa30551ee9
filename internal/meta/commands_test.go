package meta

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// Every command of the pages exists, with its flags, targets, variables and paths. Commands that need no network run.
func TestPagesCommands(t *testing.T) {
	testkit.SkipShort(t, "it builds and runs the programs")
	j := newJudge(t)
	t.Run("right", func(t *testing.T) {
		found, unnamed := snippets(t, commands)
		require.Empty(t, unnamed, "a block of commands that does not say sh or console")
		var faults []string
		for _, s := range found {
			if err := j.script(t, s.script); err != nil {
				faults = append(faults, fmt.Sprintf("%s: %s\n%v", s.page, s.script, err))
			}
		}
		require.Empty(t, faults)
		require.Greater(t, len(found), 80)
	})
	t.Run("wrong", func(t *testing.T) {
		for script, says := range wrongCommands {
			require.ErrorContains(t, j.script(t, script), says, script)
		}
	})
}

// wrongCommands are scripts that a page must not have, with a part of the error: without them, a judge that accepts everything would look good.
var wrongCommands = map[string]string{
	"numa-throttle status":       "numa-throttle: command not found",
	"cd docs && make test":       "docs: No such file",
	"make test | ( grep":         "syntax error",
	"make tests":                 "no target tests",
	"make test PACKAGE=./docs":   "reads PACKAGE",
	"make test PKG=./pkg/nobody": "nobody",
	"make test TEST_FLAGS='-run TestNothingOfTheKind -v' PKG=./pkg/throttle": "no test TestNothing",

	"go test -run 'TestX|TestY' ./pkg/throttle":      "no test TestX",
	"NUMATHROTTLE_SEED=1 go test ./pkg/throttle":     "does not read NUMATHROTTLE_SEED",
	"go build -o llm ./examples/llm":                 "examples/llm",
	"go run ./pkg/throttle":                          "is no program",
	"go run ./examples/llm-map/fakellm/cmd -rpm 600": "no flag -rpm",
	"go get example.com/numathrottle":                "not below the project",

	"numathrottle limit set --maximum 300":                 "--maximum is no flag",
	"NUMATHROTTLE_STORE=etcd://e numathrottle status":      "etcd",
	"export NUMATHROTTLE_STOR=nats://n:4222":               "NUMATHROTTLE_STOR",
	"NUMATHROTTLE_PER=fortnight":                           "fortnight",
	"llm-map --chek":                                       "-chek",
	"HTTP_SINK_URI=https://example.com/ http-sink --check": "HTTP_SINK_URI",

	"kubectl apply -k manifests/overlays/other":       "no such file",
	"kubectl patch pipeline first --type=json -p [{]": "is no JSON",
	"docker build --target sink .":                    `no target "sink"`,
}

// commands are the names that stand for a call in the pages. Of those after numathrottle only paths and targets can be checked here.
var commands = strings.Fields("go http-sink llm-map make nice numathrottle base64 docker gh git grep head helm kind kubectl kustomize nats openssl")

// A judge returns the faults of a page's calls.
type judge struct {
	shell    *shell
	programs string // the folder of the project's binaries
	store    string // the URL of an empty one
	makefile string // with the scripts
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	j := &judge{shell: newShell(t, commands), programs: t.TempDir(), store: testenv.NATS(t).URL()}
	scripts, err := filepath.Glob("scripts/*.sh")
	require.NoError(t, err)
	for _, path := range append(scripts, "Makefile") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		j.makefile += string(text)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "scripts/build.sh", j.programs).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return j
}

// script returns the faults of a script.
func (j *judge) script(t *testing.T, script string) error {
	t.Helper()
	calls, err := j.shell.run(t, script)
	for _, c := range calls {
		if fault := j.call(t, c); fault != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", strings.Join(c.words, " "), fault))
		}
	}
	return err
}

func (j *judge) call(t *testing.T, c call) error {
	t.Helper()
	switch name, args := c.words[0], c.words[1:]; name {
	case ending:
		// The variables that only tests and the Makefile read are judged by name.
		_, err := opening.LoadFlags(slices.DeleteFunc(slices.Clone(c.settings), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return !strings.HasPrefix(name, "NUMATHROTTLE_") || strings.Contains(j.makefile, name)
		}), nil)
		return err
	case "nice":
		return j.call(t, call{c.settings, args[2:]}) // -n and a number
	case "make":
		return j.make(t, args)
	case "go":
		return j.goCommand(t, c, args)
	case "numathrottle":
		return j.numathrottle(t, c.settings, args)
	case "llm-map", "http-sink":
		if len(c.settings) == 0 || !slices.Contains(args, "--check") { // it would start, or miss some setting
			args = append(slices.Clone(args), "--help")
		}
		return j.start(t, c.settings, name, args...)
	default:
		return other(args)
	}
}

// make checks targets and variables.
func (j *judge) make(t *testing.T, args []string) error {
	t.Helper()
	given := map[string]string{}
	for _, arg := range args {
		name, value, isVariable := strings.Cut(arg, "=")
		if given[name] = value; isVariable && !regexp.MustCompile(`\$[({]?`+name+`\b`).MatchString(j.makefile) {
			return fmt.Errorf("neither the Makefile nor a script reads %s", name)
		} else if !isVariable && !strings.Contains(j.makefile, "\n"+arg+":") {
			return fmt.Errorf("the Makefile has no target %s", arg)
		}
	}
	if slices.Contains(args, "test") {
		return j.script(t, "go test "+given["TEST_FLAGS"]+" "+given["PKG"])
	}
	return nil
}

// goCommand checks packages, tests and flags.
func (j *judge) goCommand(t *testing.T, c call, args []string) error {
	t.Helper()
	verb, args := args[0], args[1:]
	if verb == "run" && args[0] != "./internal/mutants/run" { // which passes them to go test
		return j.goRun(t, c, args)
	}
	run := regexp.MustCompile(`(?:^| )-run[= ](\S+)`).FindStringSubmatch(strings.Join(args, " "))
	var sources string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "./") && (verb != "get" && verb != "install" || strings.HasPrefix(arg, "-")) {
			continue
		}
		pkg, err := packageAt(arg)
		if err != nil && (verb != "test" || pkg == nil || len(pkg.TestGoFiles)+len(pkg.XTestGoFiles)+len(pkg.IgnoredGoFiles) == 0) {
			return err
		}
		files, err := filepath.Glob(filepath.Join(pkg.Dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources += string(text)
		}
	}
	if verb != "test" {
		return nil
	}
	topLevel := regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(strings.Join(run[min(1, len(run)):], ""), "") // groups are of subtests
	for pattern := range strings.SplitSeq(topLevel, "|") {
		if name := regexp.MustCompile(`\w+`).FindString(pattern); name != "" && !strings.Contains(sources, "\nfunc "+name) {
			return fmt.Errorf("there is no test %s", name)
		}
	}
	for _, entry := range c.settings {
		name, _, _ := strings.Cut(entry, "=")
		// In one piece or in two: NUMATHROTTLE_SIM_ and SEEDS.
		if last := name[strings.LastIndex(name, "_")+1:]; !strings.Contains(sources, `"`+name+`"`) && !strings.Contains(sources, `"`+last+`"`) {
			return fmt.Errorf("the package does not read %s", name)
		}
	}
	return nil
}

// goRun checks the call of a program: by running the project's, else by the flags that the program lists.
func (j *judge) goRun(t *testing.T, c call, args []string) error {
	t.Helper()
	pkg, err := packageAt(args[0])
	if err != nil || pkg.Name != "main" {
		return fmt.Errorf("%s is no program: %w", args[0], err)
	}
	if name := filepath.Base(args[0]); slices.Contains(commands, name) {
		return j.call(t, call{c.settings, append([]string{name}, args[1:]...)})
	}
	usage, err := exec.CommandContext(t.Context(), "go", "run", args[0], "-h").CombinedOutput()
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && !strings.Contains(string(usage), "\n  -"+name) {
			return fmt.Errorf("%s has no flag -%s: %w", args[0], name, err)
		}
	}
	return nil
}

// packageAt finds a package by its path on a page.
func packageAt(path string) (*build.Package, error) {
	path, _, _ = strings.Cut(path, "@")
	path = strings.Replace(path, "github.com/numaproj-contrib/numathrottle", ".", 1)
	if path != "." && !strings.HasPrefix(path, "./") {
		return nil, fmt.Errorf("%s is not below the project", path)
	}
	return build.ImportDir(filepath.FromSlash(path), 0)
}

// numathrottle lets the command check the settings of a call, and runs it on the test's store.
func (j *judge) numathrottle(t *testing.T, environ, args []string) error {
	t.Helper()
	if err := j.start(t, environ, "numathrottle", "check"); err != nil {
		return err
	}
	if args[0] == "whatif" {
		return j.whatif(t, args)
	}
	here := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, "NUMATHROTTLE_STORE") })
	switch proxy := slices.Index(args, "proxy"); { // nothing starts that would not end
	case slices.Contains(args, "--watch"), args[0] == "stop-notice", args[0] == "console", proxy >= 0 && len(args) <= proxy+2, slices.Contains(args, "--check"):
		args = append(slices.Clone(args), "--help")
	case proxy >= 0:
		args = append(slices.Clone(args), "--check")
	}
	err := j.start(t, append(here, "NUMATHROTTLE_STORE="+j.store), "numathrottle", args...)
	if err != nil && strings.Contains(err.Error(), "has no record; the store has no pool at all") {
		return nil // it looked for the pool
	}
	return err
}

// whatif replays the recording that the page shows, with the files that the page names.
func (j *judge) whatif(t *testing.T, args []string) error {
	t.Helper()
	page, err := os.ReadFile("docs/whatif.md")
	require.NoError(t, err)
	recording := regexp.MustCompile("(?s)```\n(time,tag.*?)```").FindSubmatch(page)
	require.NotNil(t, recording)
	dir := t.TempDir()
	for name, text := range map[string]string{"traffic.csv": string(recording[1]), "new.yaml": "max: 2000\n", "old.yaml": "max: 4000\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"data": {"resultType": "matrix", "result": [{"metric": {"tag": "acme"}, "values": [[%s, "20"]]}]}}`, r.FormValue("end"))
	}))
	defer server.Close()
	args = slices.Clone(args)
	if at := slices.Index(args, "http://prometheus:9090"); at >= 0 {
		args[at] = server.URL
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(j.programs, "numathrottle"), args...)
	cmd.Dir, cmd.Env = dir, []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	_, err = os.Stat(filepath.Join(dir, "whatif.html"))
	return err
}

// start runs a program of the project with only the given environment.
func (j *judge) start(t *testing.T, environ []string, name string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(j.programs, name), args...)
	cmd.Env = append([]string{}, environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// other checks the overlays, files, patches and targets in a call of another program.
func other(args []string) error {
	dockerfile, err := os.ReadFile("Dockerfile")
	for i, arg := range args {
		before := args[max(i-1, 0)]
		path, ours := strings.CutPrefix(arg, "https://github.com/numaproj-contrib/numathrottle//")
		path, _, _ = strings.Cut(path, "?ref=")
		switch _, missing := os.Stat(path); {
		case (ours || strings.HasPrefix(arg, "manifests/") || before == "-f" && !strings.Contains(arg, "://")) && missing != nil:
			return missing
		case before == "-k" && !strings.HasPrefix(path, "manifests/overlays/") && path != "manifests/monitoring":
			return fmt.Errorf("%s is no overlay", path)
		case before == "-p" && !json.Valid([]byte(arg)):
			return fmt.Errorf("%s is no JSON", arg)
		case before == "--target" && !strings.Contains(string(dockerfile), " AS "+arg+"\n"):
			return fmt.Errorf("the Dockerfile has no target %q", arg)
		}
	}
	return err
}
