// Package failpoints keeps the switches of rules that a test build can leave out, to
// show that its tests notice. Only builds with the tag numathrottle_mutants import it.
package failpoints

import (
	"fmt"
	"maps"
	"slices"
)

// A Rule is a switch: its number among those of its package, and what the rule says.
type Rule struct {
	Number int
	Says   string
}

// A Board is the switches of one package. It is not safe for concurrent use: tests
// set it before they start what looks at it.
type Board struct {
	owner string
	rules map[string]Rule
	left  []bool
}

// New returns a board on which nothing is left out. owner names the package in errors.
func New(owner string, rules map[string]Rule) *Board {
	most := 0
	for _, r := range rules {
		most = max(most, r.Number)
	}
	return &Board{owner: owner, rules: rules, left: make([]bool, most+1)}
}

// Skip tells whether the rule with this number is left out.
func (b *Board) Skip(number int) bool { return b.left[number] }

// Names lists the rules in the order of their names.
func (b *Board) Names() []string { return slices.Sorted(maps.Keys(b.rules)) }

// Says tells what a rule says; empty for one that is not known.
func (b *Board) Says(name string) string { return b.rules[name].Says }

// LeaveOut leaves a rule out until restore is called. The error names what is allowed.
func (b *Board) LeaveOut(name string) (restore func(), err error) {
	r, ok := b.rules[name]
	if !ok {
		return nil, fmt.Errorf("%s: rule is %q, allowed: %q", b.owner, name, b.Names())
	}
	return b.Leave(r.Number), nil
}

// Leave is LeaveOut for the rule with this number.
func (b *Board) Leave(number int) (restore func()) {
	b.left[number] = true
	return func() { b.left[number] = false }
}
