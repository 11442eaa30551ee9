package pages

import (
	"errors"
	"fmt"
	"go/build"
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

// modulePath is what the paths of the project's packages begin with.
const modulePath = "github.com/numaproj-contrib/numathrottle"

// make says which target or variable of a call there is not.
func (j *judge) make(t *testing.T, args []string) error {
	t.Helper()
	given := map[string]string{}
	var targets []string
	for _, arg := range args {
		name, value, isVariable := strings.Cut(arg, "=")
		switch {
		case isVariable:
			given[name] = value
		case !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(arg) + `:(?:[^=]|$)`).MatchString(j.makefile):
			return fmt.Errorf("the Makefile has no target %s", arg)
		default:
			targets = append(targets, arg)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !j.reads(t, targets, name) {
			return fmt.Errorf("neither %s nor a script of it reads %s", strings.Join(targets, ", "), name)
		}
	}
	if slices.Contains(targets, "test") {
		return j.script(t, "go test "+given["TEST_FLAGS"]+" "+given["PKG"])
	}
	return nil
}

// reads tells whether a target, one that it makes first, or a script that one of them runs, reads a variable.
func (j *judge) reads(t *testing.T, targets []string, name string) bool {
	t.Helper()
	seen := map[string]bool{}
	for len(targets) > 0 {
		target := targets[0]
		targets = targets[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		rules := j.rulesOf(t, target)
		if regexp.MustCompile(`\$[({]?` + name + `\b`).MatchString(rules) {
			return true
		}
		for _, m := range regexp.MustCompile(`(?m)^[\w-]+: ([a-z -]*)|\$\(MAKE\) (?:-j\d )?([a-z ]+)`).FindAllStringSubmatch(rules, -1) {
			targets = append(targets, strings.Fields(m[1]+" "+m[2])...)
		}
	}
	return false
}

// rulesOf are the rules of a target, with the scripts that they run.
func (j *judge) rulesOf(t *testing.T, target string) string {
	t.Helper()
	rules := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:.*\n(?:(?:\t|ifeq|else|endif).*\n)*`).FindAllString(j.makefile, -1)
	text := strings.Join(rules, "")
	for _, script := range regexp.MustCompile(`scripts/[\w-]+\.sh`).FindAllString(text, -1) {
		content, err := os.ReadFile(script)
		require.NoError(t, err)
		text += string(content)
	}
	return text
}

// goCommand judges a call of go: are there the packages, their tests and the flags?
func (j *judge) goCommand(t *testing.T, c call, args []string) error {
	t.Helper()
	switch verb := args[0]; verb {
	case "run":
		if args[1] == "./internal/mutants/run" { // which hands them to go test
			return j.goCommand(t, c, append([]string{"test"}, args[2:]...))
		}
		pkg, err := packageAt(args[1])
		if err != nil || pkg.Name != "main" {
			return fmt.Errorf("%s is no program: %w", args[1], err)
		}
		if name := filepath.Base(args[1]); slices.Contains(commands(), name) {
			return j.call(t, call{c.settings, append([]string{name}, args[2:]...)})
		}
		return j.flags(t, args[1], args[2:])
	case "get":
		_, err := packageAt(args[1])
		return err
	case "build", "install", "test":
		flags, packages := splitFlags(args[1:])
		for _, flag := range slices.Sorted(maps.Keys(flags)) {
			if !regexp.MustCompile(`(?m)^\t-` + flag + `\b`).MatchString(j.goFlags()) {
				return fmt.Errorf("go %s has no flag -%s", verb, flag)
			}
		}
		return goPackages(verb == "test", packages, flags["run"], c.settings)
	default:
		return fmt.Errorf("nobody knows what is right for go %s", verb)
	}
}

// splitFlags parts the flags of the go command, of which some take the next word as their value, from what follows.
func splitFlags(args []string) (flags map[string]string, rest []string) {
	flags = map[string]string{}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, whole := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		args = args[1:]
		if !whole && slices.Contains([]string{"count", "o", "run", "tags", "timeout"}, name) && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		flags[name] = value
	}
	// go test takes flags behind the packages, too.
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			more, _ := splitFlags([]string{arg})
			maps.Copy(flags, more)
		} else {
			rest = append(rest, arg)
		}
	}
	return flags, rest
}

// packageAt finds a package by its path as a page gives it.
func packageAt(path string) (*build.Package, error) {
	path, _, _ = strings.Cut(path, "@")
	path = strings.Replace(path, modulePath, ".", 1)
	if path != "." && !strings.HasPrefix(path, "./") {
		return nil, fmt.Errorf("%s is not below the project", path)
	}
	return build.ImportDir(filepath.FromSlash(path), 0)
}

// goPackages says which package there is not, which test is in none of them, and which variable none of them reads.
func goPackages(test bool, packages []string, run string, environ []string) error {
	var all strings.Builder
	for _, path := range packages {
		pkg, err := packageAt(path)
		if test && pkg != nil && len(pkg.TestGoFiles)+len(pkg.XTestGoFiles)+len(pkg.IgnoredGoFiles) > 0 {
			err = nil // it has tests alone, or files behind a tag
		}
		if err != nil {
			return err
		}
		text, err := sources(pkg.Dir)
		if err != nil {
			return err
		}
		all.WriteString(text)
	}
	if !test {
		return nil
	}
	outside := regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(run, "") // of groups, which are of subtests
	for pattern := range strings.SplitSeq(outside, "|") {
		if name := regexp.MustCompile(`\w+`).FindString(pattern); name != "" && !strings.Contains(all.String(), "\nfunc "+name) {
			return fmt.Errorf("%v has no test %s", packages, name)
		}
	}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); !namesVariable(all.String(), name) {
			return fmt.Errorf("%v does not read %s", packages, name)
		}
	}
	return nil
}

// namesVariable tells whether a text of Go names a variable, in one piece or in two: NUMATHROTTLE_SIM_ and SEEDS.
func namesVariable(text, name string) bool {
	parts := strings.SplitAfterN(name, "_", 3)
	last := len(parts) - 1
	return strings.Contains(text, `"`+name+`"`) ||
		strings.Contains(text, `"`+strings.Join(parts[:last], "")+`"`) && strings.Contains(text, `"`+parts[last]+`"`)
}

// sources are the texts of a folder's files of Go.
func sources(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	var all strings.Builder
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		all.Write(text)
	}
	return all.String(), err
}

// flags holds the flags of a call against those that the program lists.
func (j *judge) flags(t *testing.T, path string, args []string) error {
	t.Helper()
	usage, err := exec.CommandContext(t.Context(), "go", "run", path, "-h").CombinedOutput()
	for _, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if isFlag && !regexp.MustCompile(`(?m)^  -`+regexp.QuoteMeta(name)+`\b`).Match(usage) {
			return fmt.Errorf("%s has no flag -%s: %w", path, name, err)
		}
	}
	return nil
}
