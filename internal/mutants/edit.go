package mutants

import (
	"fmt"
	"slices"
	"strings"
)

// An edit puts a switch into one file. As in a unified diff, each line begins with a blank (it stays), a minus (it goes)
// or a plus (it comes). There are no line numbers: the lines that stay or go must be in exactly one place of the file.
type edit struct {
	file  string // from the root of the module
	lines []string
}

// parse reads a book. A line with # begins a rule, one with = names the folder and the name of its test, one with @@ begins an edit.
func parse(book, text string) (list []Rule) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, is := strings.CutPrefix(line, "# "); is {
			name, says, _ := strings.Cut(name, ": ")
			list = append(list, Rule{Name: name, Says: says, Book: book})
			continue
		}
		if line == "" || len(list) == 0 {
			continue
		}
		r := &list[len(list)-1]
		if test, is := strings.CutPrefix(line, "= "); is {
			r.Package, r.Test, _ = strings.Cut(test, " ")
			continue
		}
		if file, is := strings.CutPrefix(line, "@@ "); is {
			r.edits = append(r.edits, edit{file: file})
		} else if n := len(r.edits); n > 0 {
			r.edits[n-1].lines = append(r.edits[n-1].lines, line)
		}
	}
	return list
}

// A source is the text of a file, in which edits are noted before any is made: they are all of the text as it is.
type source struct {
	lines []string
	after map[int][]string // what comes after so many lines
	gone  map[int]bool
}

func newSource(text string) *source {
	return &source{lines: strings.Split(text, "\n"), after: map[int][]string{}, gone: map[int]bool{}}
}

// note notes an edit. The error tells that it fits none, or more than one place, or goes for a line that is gone.
func (s *source) note(e edit) error {
	var is []string
	for _, line := range e.lines {
		if line[0] != '+' {
			is = append(is, line[1:])
		}
	}
	at := -1
	for i := range len(s.lines) - len(is) + 1 {
		if !slices.Equal(s.lines[i:i+len(is)], is) {
			continue
		}
		if at >= 0 {
			return fmt.Errorf("the edit fits lines %d and %d, expected one place:\n%s", at+1, i+1, strings.Join(e.lines, "\n"))
		}
		at = i
	}
	if at < 0 {
		return fmt.Errorf("the edit fits no place any more:\n%s", strings.Join(e.lines, "\n"))
	}
	for _, line := range e.lines {
		if line[0] == '+' {
			s.after[at] = append(s.after[at], line[1:])
			continue
		}
		if line[0] == '-' {
			if s.gone[at] {
				return fmt.Errorf("another edit has replaced line %d:\n%s", at+1, strings.Join(e.lines, "\n"))
			}
			s.gone[at] = true
		}
		at++
	}
	return nil
}

// text is the file with all edits.
func (s *source) text() string {
	out := slices.Clone(s.after[0])
	for i, line := range s.lines {
		if !s.gone[i] {
			out = append(out, line)
		}
		out = append(out, s.after[i+1]...)
	}
	return strings.Join(out, "\n")
}
