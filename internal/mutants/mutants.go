// Package mutants keeps rules of the product that a test can leave out, to show that the tests notice. The product
// itself has no switches for them. Each rule is a list of edits in rules/*.diff, which put its switch in. Command run
// compiles the tests with the edited files in place of the real ones.
package mutants

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// A Rule is what a test can leave out.
type Rule struct {
	Name, Says string
	Book       string // the file in rules that lists it, without its end
	edits      []edit
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

// out is the rule that is left out.
var out string

// Skip tells whether a rule is left out. It is what the switches ask.
func Skip(rule string) bool { return out == rule }

// A test is what LeaveOut needs of a *testing.T.
type test interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(restore func())
}

// LeaveOut leaves a rule out until the test ends. One test at a time may leave out one rule, before it starts what asks for it.
func LeaveOut(t test, rule string) {
	t.Helper()
	if err := leaveOut(rule, overlaid); err != nil {
		t.Fatalf("mutants: %v", err)
	}
	t.Cleanup(func() { out = "" })
}

func leaveOut(rule string, overlaid bool) error {
	switch {
	case !slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == rule }):
		return fmt.Errorf("rule is %q, allowed: those in internal/mutants/rules", rule)
	case !overlaid:
		return fmt.Errorf("rule %q has no switch in this build: start the test with go run ./internal/mutants/run", rule)
	case out != "":
		return fmt.Errorf("rule %q is left out already, so %q cannot be", out, rule)
	}
	out = rule
	return nil
}
