// Package mutants keeps rules of the product that a test can leave out, to show that the tests notice. The product
// itself has no switches for them. Each rule is a list of edits in rules/*.diff, which put its switch in. Command run
// compiles the tests with the edited files in place of the real ones.
package mutants

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Rule is what a test can leave out.
type Rule struct {
	Name, Says string
	Book       string // the file in rules that lists it, without its end
	// Package is the folder of the test that fails without the rule, and Test its name; see NeedTheirTests. Other rules have tests of their own.
	Package, Test string
	edits         []edit
}

// overlaid tells whether the product was compiled with the switches.
const overlaid = false

//go:embed rules/*.diff
var books embed.FS

// rules are all rules, by their books and names.
var rules = func() (all []Rule) {
	files, err := books.ReadDir("rules")
	for _, f := range files {
		var text []byte
		if text, err = books.ReadFile("rules/" + f.Name()); err != nil {
			break
		}
		all = append(all, parse(strings.TrimSuffix(f.Name(), ".diff"), string(text))...)
	}
	if err != nil {
		panic(err) //nolint:forbidigo // they are embedded
	}
	slices.SortStableFunc(all, func(a, b Rule) int { return strings.Compare(a.Book+" "+a.Name, b.Book+" "+b.Name) })
	return all
}()

// Rules lists the rules of some books, in that order, and in the order of their names.
func Rules(books ...string) (list []Rule) {
	for _, b := range books {
		for _, r := range rules {
			if r.Book == b {
				list = append(list, r)
			}
		}
	}
	return list
}

// out is the rule that is left out: that of a process that NeedTheirTests has started, or that of a test.
var out = os.Getenv(leftOut)

// leftOut is the environment variable that names it.
const leftOut = "NUMATHROTTLE_LEFT_OUT"

// Skip tells whether a rule is left out. It is what the switches ask.
func Skip(rule string) bool { return out == rule }

// A test is what this package needs of a *testing.T.
type test interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(restore func())
	Context() context.Context
}

// LeaveOut leaves a rule out until the test ends. One test at a time may leave out one rule, before it starts what asks for it.
func LeaveOut(t test, rule string) {
	t.Helper()
	if err := leaveOut(rule, overlaid); err != nil {
		t.Fatalf("mutants: %v", err)
	}
	t.Cleanup(func() { out = "" })
}

// NeedTheirTests fails unless each rule of a book, of those with a test in this package, makes its test fail. Each runs in a process of its
// own, from its start without the rule.
func NeedTheirTests(t test, book string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatalf("mutants: %v", err)
	}
	played := 0
	for _, r := range Rules(book) {
		if r.Package == "" || !strings.HasSuffix(filepath.ToSlash(here), "/"+r.Package) {
			continue
		}
		played++
		if err := r.fails(t.Context(), overlaid); err != nil {
			t.Fatalf("mutants: %v", err)
		}
	}
	if played == 0 {
		t.Fatalf("mutants: no rule of %q has a test in %s", book, here)
	}
}

// fails returns an error unless the rule's test fails without it.
func (r *Rule) fails(ctx context.Context, overlaid bool) error {
	if !overlaid {
		return notOverlaid(r.Name)
	}
	again := exec.CommandContext(ctx, os.Args[0], "-test.run", "^"+r.Test+"$", "-test.failfast") //nolint:gosec // this test itself
	again.Env = append(os.Environ(), leftOut+"="+r.Name)
	text, err := again.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "--- FAIL: ") {
		return fmt.Errorf("rule %q: %s does not fail without it (%s):\n%.2000s", r.Name, r.Test, fmt.Sprint(err), text)
	}
	return nil
}

func notOverlaid(rule string) error {
	return fmt.Errorf("rule %q has no switch in this build: start the test with go run ./internal/mutants/run", rule)
}

func leaveOut(rule string, overlaid bool) error {
	switch {
	case !slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == rule }):
		return fmt.Errorf("rule is %q, allowed: those in internal/mutants/rules", rule)
	case !overlaid:
		return notOverlaid(rule)
	case out != "":
		return fmt.Errorf("rule %q is left out already, so %q cannot be", out, rule)
	}
	out = rule
	return nil
}
