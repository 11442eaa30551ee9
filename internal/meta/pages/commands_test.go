package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/short"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
)

// Every command of the pages is one that there is, with flags, targets, variables and paths that there are; what can be run
// without a network is run.
func TestPagesCommands(t *testing.T) {
	short.Skip(t, "it builds and runs the programs")
	j := newJudge(t)
	t.Run("right", func(t *testing.T) {
		found, unnamed := snippets(t, commands())
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

// unjudged are the commands, and the subcommands of kubectl and docker, of which nothing here knows what is right.
var unjudged = map[string]string{
	"base64":               "of the system, and its input is a placeholder",
	"gh":                   "asks GitHub about a release",
	"git":                  "acts on another machine's repository, or on a release",
	"grep":                 "of the system, and its input is a placeholder",
	"head":                 "of the system, and its input is a placeholder",
	"docker tag":           "names an image that make image has built",
	"kind":                 "loads an image into a cluster; manifests/check knows its name",
	"helm":                 "manifests/check renders the chart",
	"kubectl create":       "manifests/check reads the names and keys of the Secrets",
	"kubectl get":          "asks a cluster; manifests/check knows the names",
	"kubectl kustomize":    "renders the reader's own folder",
	"kubectl logs":         "asks a cluster; manifests/check knows the names",
	"kubectl port-forward": "asks a cluster; manifests/check knows the names",
	"nats":                 "asks a server",
	"openssl":              "of the system",
}

// A judge says what is wrong with calls of the pages.
type judge struct {
	shell    *shell
	programs string // the folder of the project's binaries
	store    string // the URL of an empty one
	makefile string
	goFlags  func() string // what the go command says about flags
}

// commands are the names that a judge knows.
func commands() []string {
	names := []string{"docker", "go", "http-sink", "kubectl", "kustomize", "llm-map", "make", "nice", "numathrottle"}
	for name := range unjudged {
		if !strings.Contains(name, " ") {
			names = append(names, name)
		}
	}
	return names
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	j := &judge{shell: newShell(t, commands()), programs: t.TempDir(), store: testenv.NATS(t).URL(), makefile: string(makefile)}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", j.programs+"/", "./cmd/numathrottle", "./examples/llm-map", "./examples/http-sink").
		CombinedOutput()
	require.NoError(t, err, "%s", out)
	j.goFlags = sync.OnceValue(func() string {
		var text []byte
		for _, topic := range []string{"build", "test", "testflag"} {
			out, err := exec.CommandContext(t.Context(), "go", "help", topic).Output()
			require.NoError(t, err)
			text = append(text, out...)
		}
		return string(text)
	})
	return j
}

// script says what is wrong with a script.
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

// call says what is wrong with one call.
func (j *judge) call(t *testing.T, c call) error {
	t.Helper()
	switch name, args := c.words[0], c.words[1:]; name {
	case ending:
		return j.settings(c.settings)
	case "nice":
		require.Equal(t, "-n", args[0])
		return j.call(t, call{c.settings, args[2:]})
	case "make":
		return j.make(t, args)
	case "go":
		return j.goCommand(t, c, args)
	case "numathrottle":
		return j.numathrottle(t, c.settings, args)
	case "llm-map", "http-sink":
		return j.program(t, name, c.settings, args)
	case "kubectl", "kustomize", "docker":
		return j.tool(name, args)
	default:
		if unjudged[name] == "" {
			return fmt.Errorf("nobody knows what is right for %s", name)
		}
		return nil
	}
}

// settings says which of the variables that a script leaves behind are none, or are wrong. Those that only tests and the Makefile
// read are judged by name.
func (j *judge) settings(environ []string) error {
	environ = slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !strings.HasPrefix(name, "NUMATHROTTLE_") || strings.Contains(j.makefile, name)
	})
	_, err := open.LoadFlags(environ, nil)
	return err
}

// numathrottle holds the settings of a call against the command's own check, and runs it on a store of the test's.
func (j *judge) numathrottle(t *testing.T, environ, args []string) error {
	t.Helper()
	if err := j.start(t, environ, "numathrottle", "check"); err != nil {
		return err
	}
	here := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, "NUMATHROTTLE_STORE") })
	switch proxy := slices.Index(args, "proxy"); { // what would go on is not begun
	case slices.Contains(args, "--watch"), args[0] == "stop-notice", args[0] == "console", proxy >= 0 && len(args) <= proxy+2, slices.Contains(args, "--check"):
		args = append(slices.Clone(args), "--help")
	case proxy >= 0:
		args = append(slices.Clone(args), "--check")
	}
	err := j.start(t, append(here, "NUMATHROTTLE_STORE="+j.store), "numathrottle", args...)
	if err != nil && strings.Contains(err.Error(), "has no record; the store has no pool at all") {
		return nil // it got as far as to look for the pool
	}
	return err
}

// program runs a ready-made one with the flags that start nothing. Without settings it would miss some.
func (j *judge) program(t *testing.T, name string, environ, args []string) error {
	t.Helper()
	if len(environ) == 0 || !slices.Contains(args, "--check") {
		args = append(slices.Clone(args), "--help")
	}
	return j.start(t, environ, name, args...)
}

// start runs a program of the project with nothing but the given environment.
func (j *judge) start(t *testing.T, environ []string, name string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(j.programs, name), args...)
	cmd.Env = environ
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// tool judges the calls of others' programs by what they name of the project.
func (j *judge) tool(name string, args []string) error {
	verb := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	switch subcommand := name + " " + args[max(verb, 0)]; subcommand {
	case "docker build":
		return dockerTarget(args)
	case "docker buildx":
		if verb+1 < len(args) && args[verb+1] == "build" {
			return dockerTarget(args)
		}
		return nil // imagetools asks a registry
	case "kubectl apply", "kubectl delete":
		return applied(args)
	case "kubectl patch":
		if patch := after(args, "-p"); !json.Valid([]byte(patch)) {
			return fmt.Errorf("%s is no JSON", patch)
		}
		return nil
	case "kustomize build":
		return overlayAt(args[len(args)-1])
	default:
		if unjudged[subcommand] == "" {
			return fmt.Errorf("nobody knows what is right for %s", subcommand)
		}
		return nil
	}
}

// after returns the word behind a flag.
func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func dockerTarget(args []string) error {
	dockerfile, err := os.ReadFile("Dockerfile")
	if target := after(args, "--target"); err == nil && !regexp.MustCompile(`(?m)^FROM .* AS `+regexp.QuoteMeta(target)+`$`).Match(dockerfile) {
		return fmt.Errorf("the Dockerfile has no target %q", target)
	}
	return err
}

// applied judges what kubectl shall apply or delete: an overlay, a file, or what another project serves.
func applied(args []string) error {
	if overlay := after(args, "-k"); overlay != "" {
		return overlayAt(overlay)
	}
	file := after(args, "-f")
	if strings.HasPrefix(file, "https://") {
		return nil
	}
	_, err := os.Stat(file)
	return err
}

// overlayAt says whether an overlay is one that manifests/check renders.
func overlayAt(path string) error {
	if remote, ok := strings.CutPrefix(path, "https://"+modulePath+"//"); ok {
		path, _, _ = strings.Cut(remote, "?ref=")
	}
	if !regexp.MustCompile(`^manifests/(overlays/[\w-]+|monitoring)$`).MatchString(path) {
		return fmt.Errorf("%s is no overlay", path)
	}
	_, err := os.Stat(filepath.Join(path, "kustomization.yaml"))
	return err
}

// wrongCommands are scripts that a page must not have, with what has to be said of each: without these, a judge that lets everything pass
// would look like a good one.
var wrongCommands = map[string]string{
	"numa-throttle status":       "numa-throttle: command not found",
	"cd docs && make test":       "docs: No such file",
	"./http-sink --check":        "./http-sink: No such file",
	"make test | ( grep":         "syntax error",
	"make tests":                 "no target tests",
	"make test PACKAGE=./docs":   "reads PACKAGE",
	"make lint FUZZ_TIME=1m":     "neither lint nor a script of it reads FUZZ_TIME",
	"make test PKG=./pkg/nobody": "nobody",
	"make test PKG=./pkg/throttle TEST_FLAGS='-run TestNothingOfTheKind -v'": "no test TestNothingOfTheKind",

	"go test -runn TestX ./pkg/throttle":             "no flag -runn",
	"go test -run 'TestX|TestY' ./pkg/throttle":      "no test TestX",
	"NUMATHROTTLE_SEED=1 go test ./pkg/throttle":     "does not read NUMATHROTTLE_SEED",
	"go build -o llm ./examples/llm":                 "examples/llm",
	"go run ./pkg/throttle":                          "is no program",
	"go run ./cmd/numathrottle stat":                 `"stat" is no command`,
	"go run ./examples/llm-map/fakellm/cmd -rpm 600": "no flag -rpm",
	"go install example.com/cmd/numathrottle@latest": "not below the project",
	"go get example.com/numathrottle":                "not below the project",
	"go vet ./...":                                   "nobody knows what is right for go vet",

	"numathrottle limit set --maximum 300":                                     "--maximum is no flag",
	"numathrottle limit set --max many":                                        "many",
	"numathrottle status --wach --watch":                                       "--wach is no flag",
	"NUMATHROTTLE_STORE=etcd://e numathrottle status":                          "etcd",
	"NUMATHROTTLE_MAXIMUM=5 numathrottle check":                                "NUMATHROTTLE_MAXIMUM",
	"export NUMATHROTTLE_STOR=nats://n:4222":                                   "NUMATHROTTLE_STOR",
	"NUMATHROTTLE_PER=1 fortnight":                                             "fortnight: command not found",
	"NUMATHROTTLE_PER=fortnight":                                               "fortnight",
	"llm-map --chek":                                                           "-chek",
	"HTTP_SINK_URI=https://example.com/ http-sink --check":                     "HTTP_SINK_URI",
	"HTTP_SINK_URL=https://example.com/ NUMATHROTTLE_MAX=-1 http-sink --check": "NUMATHROTTLE_MAX",
	"go build -o sink ./examples/http-sink; ./sink --check":                    "nobody knows what is right for sink",

	"kubectl apply -k manifests/overlays/other": "no such file",
	"kubectl delete -k \"https://github.com/numaproj-contrib/numathrottle//manifest/overlays/first-pipeline?ref=v0.1.0\"": "is no overlay",
	"kubectl apply -f pipeline.yaml":                    "pipeline.yaml",
	"kubectl patch pipeline first --type=json -p '[{]'": "is no JSON",
	"kubectl scale pipeline first":                      "nobody knows what is right for kubectl scale",
	"kustomize build manifests/base/pipeline":           "is no overlay",
	"docker build --target sink .":                      "no target \"sink\"",
	"docker buildx build --target sink .":               "no target \"sink\"",
	"docker push numathrottle":                          "nobody knows what is right for docker push",
}
